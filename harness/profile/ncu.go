package profile

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// ErrNoProfiler is wrapped when Nsight Compute is absent, forbidden or failing: the fallback digest serves then.
var ErrNoProfiler = errors.New("profile with Nsight Compute: it is absent, forbidden or failing here")

// stalls are the reasons for which a warp may wait, as smsp__average_warps_issue_stalled_NAME_per_issue_active counts them.
var stalls = []string{
	"long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle", "math_pipe_throttle", "wait", "not_selected", "branch_resolving",
	"dispatch_stall", "drain", "imc_miss", "membar", "no_instruction", "sleeping", "tex_throttle", "misc",
}

const stallPrefix, stallSuffix = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"

// metrics are what a digest is made from.
func metrics() []string {
	out := []string{
		"gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
		"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "dram__bytes_write.sum",
		"launch__registers_per_thread", "launch__occupancy_limit_registers", "launch__occupancy_limit_shared_mem", "launch__occupancy_limit_warps",
		"launch__occupancy_limit_blocks", "launch__waves_per_multiprocessor", "launch__grid_size", "launch__block_size",
		"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
		"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
		"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
		"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
		"smsp__thread_inst_executed_per_inst_executed.ratio", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
		"smsp__issue_active.avg.pct_of_peak_sustained_active",
	}
	for _, s := range stalls {
		out = append(out, stallPrefix+s+stallSuffix)
	}
	return out
}

// Find looks for ncu on PATH and where toolkits put it. The error wraps ErrNoProfiler.
func Find() (string, error) {
	if p, err := exec.LookPath("ncu"); err == nil {
		return p, nil
	}
	for _, pattern := range []string{"/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"} {
		found, _ := filepath.Glob(pattern) // the patterns are constant and well formed
		if len(found) > 0 {
			sort.Strings(found)
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: ncu is not installed (it comes with the CUDA toolkit)", ErrNoProfiler)
}

// Run is one profiling: Command is a program that launches the kernels named, Skip of their launches are passed over and Count
// profiled.
type Run struct {
	NCU     string
	Command []string
	Kernels []string
	Skip    int
	Count   int
	Report  string // where the .ncu-rep is kept; "": nowhere
	Timeout time.Duration
}

// Profile runs ncu and reads its digests, one a launch. The error wraps ErrNoProfiler when ncu failed or was forbidden.
func Profile(ctx context.Context, r Run) ([]Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	args := []string{"--clock-control", "none", "--target-processes", "all", "--csv", "--page", "raw", "--metrics", strings.Join(metrics(), ","),
		"--kernel-name", "regex:^(" + strings.Join(r.Kernels, "|") + ")$", "--launch-skip", strconv.Itoa(r.Skip), "--launch-count", strconv.Itoa(r.Count)}
	if r.Report != "" {
		args = append(args, "--export", r.Report, "--force-overwrite")
	}
	cmd := exec.CommandContext(ctx, r.NCU, append(args, r.Command...)...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	if r.Report != "" && err == nil { // with --export the CSV must be asked for again
		out, err = exec.CommandContext(ctx, r.NCU, "--import", r.Report, "--csv", "--page", "raw").CombinedOutput()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoProfiler, reason(string(out), err))
	}
	all, err := Parse(string(out))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoProfiler, err)
	}
	return all, nil
}

// reason finds ncu's own error line, such as ERR_NVGPUCTRPERM.
func reason(out string, err error) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "==ERROR==") {
			return strings.TrimSpace(strings.ReplaceAll(line, "==ERROR==", ""))
		}
	}
	return err.Error()
}

// Parse reads ncu's raw CSV page, whatever else the program printed round it: one digest a profiled launch. Metrics that are
// missing stay unknown.
func Parse(text string) ([]Digest, error) {
	var table strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `"`) {
			table.WriteString(line)
		}
	}
	reader := csv.NewReader(strings.NewReader(table.String()))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read ncu's CSV: %w", err)
	}
	if len(rows) < 3 {
		return nil, errors.New("ncu profiled no launch: the kernels named were not launched often enough")
	}
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	if _, ok := columns["Kernel Name"]; !ok {
		return nil, errors.New("ncu's CSV has no column \"Kernel Name\"")
	}
	units := rows[1]
	var all []Digest
	for _, row := range rows[2:] {
		d := digestOf(row, units, columns)
		d.diagnose()
		all = append(all, d)
	}
	return all, nil
}

// units bring a value to bytes, nanoseconds and counts.
var unitFactor = map[string]float64{
	"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
	"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
}

// maxNumber is above what any metric of a launch reaches in bytes, nanoseconds or counts, and fits an int64. NaN and infinities, which
// a report cannot hold, are not below it.
const maxNumber = 1e18

func digestOf(row, units []string, columns map[string]int) Digest {
	text := func(name string) string {
		if i, ok := columns[name]; ok && i < len(row) {
			return row[i]
		}
		return ""
	}
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(strings.ReplaceAll(text(name), ",", ""), 64)
		if err != nil {
			return unknown
		}
		if i := columns[name]; i < len(units) {
			if f, ok := unitFactor[units[i]]; ok {
				v *= f
			}
		}
		if !(math.Abs(v) <= maxNumber) {
			return unknown
		}
		return v
	}
	share := func(name string) float64 {
		if v := number(name); v >= 0 {
			return v / 100
		}
		return unknown
	}
	d := Digest{
		Kernel: text("Kernel Name"), Source: "ncu", Grid: text("Grid Size"), Block: text("Block Size"), Duration: time.Duration(number("gpu__time_duration.sum")),
		Registers: int(number("launch__registers_per_thread")), SharedBytes: int(max(number("launch__shared_mem_per_block"), 0)), TheoreticalShare: share("sm__maximum_warps_per_active_cycle_pct"),
		Occupancy: share("sm__warps_active.avg.pct_of_peak_sustained_active"), ComputeShare: share("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
		MemoryShare: share("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"), DRAMShare: share("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
		DRAMBytes:      max(number("dram__bytes_read.sum"), 0) + max(number("dram__bytes_write.sum"), 0),
		LoadEfficiency: share("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"), StoreEfficiency: share("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"),
		SectorsLoad: number("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"), SectorsStore: number("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"),
		LocalSectors: max(number("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"), 0) + max(number("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"), 0),
		IssueShare:   share("smsp__issue_active.avg.pct_of_peak_sustained_active"), Waves: number("launch__waves_per_multiprocessor"),
		ActiveThreads: number("smsp__thread_inst_executed_per_inst_executed.ratio"), PredicatedOn: number("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
	}
	d.BankConflicts = unknown
	if waves := number("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"); waves > 0 {
		d.BankConflicts = (max(number("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 0) + max(number("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"), 0)) / waves
	}
	least := -1.0
	for _, l := range []struct{ name, column string }{{"registers", "registers"}, {"shared memory", "shared_mem"}, {"threads", "warps"}, {"blocks", "blocks"}} {
		if v := number("launch__occupancy_limit_" + l.column); v > 0 && (least < 0 || v < least) {
			least, d.OccupancyLimit = v, l.name
		}
	}
	if d.Waves > 0 && d.Waves < 1 {
		d.OccupancyLimit = "grid"
	}
	for _, s := range stalls {
		if v := number(stallPrefix + s + stallSuffix); v > d.TopStallRatio {
			d.TopStall, d.TopStallRatio = s, v
		}
	}
	return d
}
