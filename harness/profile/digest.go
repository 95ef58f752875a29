// Package profile says where a kernel's time goes: it runs Nsight Compute on a candidate's launches and reads its CSV, or,
// where that cannot run, works from the compiler's report, the computed occupancy and the roofline, and says so. Each Digest
// carries diagnoses, each from stated evidence with a direction of change.
//
// It judges no candidate and keeps nothing.
package profile

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"ridgepoint/harness"
)

// Digest is a harness.Digest that can be diagnosed and printed.
type Digest harness.Digest

// unknown marks a share that was not measured.
const unknown = -1

// Thresholds, set so that each of the five kernels profiled on an H200 (testdata) is named for what it was written to show and
// for nothing that it is not.
const (
	boundShare       = 0.70 // of a unit's peak: the unit is what limits the kernel
	conflictShare    = 0.20 // of shared-memory wavefronts
	efficientShare   = 0.50 // of the bytes of a sector that a request uses
	sectorsWide      = 17   // a request of 32 lanes × 16 bytes takes 16 sectors; more cannot be coalesced
	lowOccupancy     = 0.35
	fewWaves         = 4.0  // above it a partly filled last wave costs little
	tailFill         = 0.75 // of the last wave
	partialThreads   = 28.0 // of 32
	launchBoundUntil = 5 * time.Microsecond
	busyIssue        = 0.60
	localTraffic     = 1e5 // sectors: below it the stack of a slow path, not spills
)

// diagnose fills Diagnoses, the gravest first.
func (d *Digest) diagnose() {
	for _, find := range []func(*Digest) (harness.Diagnosis, bool){spilling, uncoalesced, conflicts, memoryBound, computeBound, occupancy, tail, predicated, launchBound, latencyBound} {
		if x, ok := find(d); ok {
			d.Diagnoses = append(d.Diagnoses, x)
		}
	}
}

func spilling(d *Digest) (harness.Diagnosis, bool) {
	if d.SpillBytes <= 0 && d.LocalSectors < localTraffic {
		return harness.Diagnosis{}, false
	}
	evidence := fmt.Sprintf("%d registers a thread", d.Registers)
	if d.LocalSectors > 0 {
		evidence = fmt.Sprintf("%.3g sectors of local memory moved, %s", d.LocalSectors, evidence)
	}
	return harness.Diagnosis{Code: "register_spills", Problem: "registers spill to local memory", Evidence: evidence,
		Direction: "keep fewer values alive: smaller tiles or less unrolling, or a higher maxrregcount with fewer threads"}, true
}

func uncoalesced(d *Digest) (harness.Diagnosis, bool) {
	for _, a := range []struct {
		what                string
		efficiency, sectors float64
	}{{"loads", d.LoadEfficiency, d.SectorsLoad}, {"stores", d.StoreEfficiency, d.SectorsStore}} {
		poor := a.efficiency >= 0 && a.efficiency < efficientShare && a.sectors > 4
		if !poor && a.sectors < sectorsWide {
			continue
		}
		evidence := fmt.Sprintf("%.1f sectors a request", a.sectors)
		if a.efficiency >= 0 {
			evidence += fmt.Sprintf(", %.0f %% of the bytes fetched are used", 100*a.efficiency)
		}
		return harness.Diagnosis{Code: "uncoalesced_access", Problem: "global " + a.what + " are not coalesced", Evidence: evidence,
			Direction: "let neighbouring threads touch neighbouring addresses; go through shared memory where the layout forbids it"}, true
	}
	return harness.Diagnosis{}, false
}

func conflicts(d *Digest) (harness.Diagnosis, bool) {
	if d.BankConflicts < conflictShare {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "bank_conflicts", Problem: "shared-memory accesses conflict on banks", Evidence: fmt.Sprintf("%.0f %% of shared-memory wavefronts are conflicts", 100*d.BankConflicts),
		Direction: "pad each row of the tile by one element (one vector for vector accesses), or swizzle its index"}, true
}

func memoryBound(d *Digest) (harness.Diagnosis, bool) {
	if d.DRAMShare < boundShare {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "memory_bound", Problem: "device memory is what limits the kernel", Evidence: fmt.Sprintf("%.0f %% of the memory's peak, %.0f %% of the multiprocessors'", 100*d.DRAMShare, 100*max(d.ComputeShare, 0)),
		Direction: "move fewer bytes: read each input once, keep what is reused on chip, fuse passes"}, true
}

func computeBound(d *Digest) (harness.Diagnosis, bool) {
	if d.ComputeShare < boundShare || d.DRAMShare >= boundShare {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "instruction_bound", Problem: "issuing instructions is what limits the kernel", Evidence: fmt.Sprintf("%.0f %% of the multiprocessors' peak, %.0f %% of the memory's", 100*d.ComputeShare, 100*max(d.DRAMShare, 0)),
		Direction: "do fewer instructions for each result: wider vectors, cheaper index arithmetic, fused multiply-adds, matrix units where the task allows them"}, true
}

func occupancy(d *Digest) (harness.Diagnosis, bool) {
	if d.Occupancy < 0 || d.Occupancy >= lowOccupancy || d.ComputeShare >= boundShare || d.DRAMShare >= boundShare {
		return harness.Diagnosis{}, false
	}
	direction := map[string]string{
		"registers": "use fewer registers: less unrolling, smaller tiles, or a lower maxrregcount", "shared memory": "make the tile smaller, or let more threads share one",
		"threads": "use smaller blocks, so that more of them fit", "blocks": "use larger blocks", "grid": "start more blocks: split the work further",
	}[d.OccupancyLimit]
	if direction == "" {
		direction = "start more blocks or give each more independent work"
	}
	return harness.Diagnosis{Code: "low_occupancy", Problem: fmt.Sprintf("few warps are resident; %s limit them", orUnknown(d.OccupancyLimit)), Evidence: fmt.Sprintf("achieved occupancy %.0f %%", 100*d.Occupancy), Direction: direction}, true
}

func tail(d *Digest) (harness.Diagnosis, bool) {
	last := d.Waves - float64(int(d.Waves))
	if d.Waves <= 1 || d.Waves > fewWaves || last == 0 || last > tailFill {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "tail_effect", Problem: "the last wave of blocks leaves multiprocessors idle", Evidence: fmt.Sprintf("%.2f waves", d.Waves),
		Direction: "choose a grid that is a whole number of waves, smaller blocks, or a persistent grid that loops over the work"}, true
}

func predicated(d *Digest) (harness.Diagnosis, bool) {
	if d.ActiveThreads > 0 && d.ActiveThreads < partialThreads {
		return harness.Diagnosis{Code: "divergence", Problem: "warps run with part of their threads", Evidence: fmt.Sprintf("%.1f of 32 threads active an instruction", d.ActiveThreads),
			Direction: "let whole warps take the same branch; give each warp full rows of work"}, true
	}
	if d.PredicatedOn <= 0 || d.PredicatedOn >= partialThreads-4 {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "predicated_tails", Problem: "many threads are predicated off", Evidence: fmt.Sprintf("%.1f of 32 threads do work an instruction", d.PredicatedOn),
		Direction: "choose vector and tile sizes that divide the extents, and handle the tail apart from the loop"}, true
}

func launchBound(d *Digest) (harness.Diagnosis, bool) {
	if d.Duration <= 0 || d.Duration >= launchBoundUntil || d.ComputeShare >= boundShare || d.DRAMShare >= boundShare {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "launch_bound", Problem: "the launch costs as much as the work", Evidence: fmt.Sprintf("%.1f us in all", float64(d.Duration)/1e3),
		Direction: "do the work in one launch with fewer blocks; nothing inside the kernel matters much at this size"}, true
}

// latencyBound is what is left when no unit is busy and nothing above explains it.
func latencyBound(d *Digest) (harness.Diagnosis, bool) {
	if len(d.Diagnoses) > 0 || d.TopStall == "" || d.IssueShare >= busyIssue {
		return harness.Diagnosis{}, false
	}
	direction := map[string]string{
		"long_scoreboard": "keep more independent loads in flight before the first use: wider vectors, unrolling, more warps",
		"barrier":         "wait at fewer barriers: smaller blocks, or shuffles within a warp", "short_scoreboard": "touch shared memory less often or in wider pieces",
		"mio_throttle": "touch shared memory less often or in wider pieces", "lg_throttle": "use fewer and wider global accesses", "math_pipe_throttle": "spread the arithmetic over more kinds of units",
	}[d.TopStall]
	if direction == "" {
		direction = "give each warp more independent instructions"
	}
	return harness.Diagnosis{Code: "latency_bound", Problem: "warps wait and no unit is busy", Evidence: fmt.Sprintf("top stall %s, %.1f warps for each that issues", d.TopStall, d.TopStallRatio), Direction: direction}, true
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown causes"
	}
	return s
}

// Text prints the digest for people, a few lines.
func (d *Digest) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %.2f us, %s", d.Kernel, float64(d.Duration)/1e3, d.Source)
	if d.Grid != "" {
		fmt.Fprintf(&b, ", grid %s block %s", d.Grid, d.Block)
	}
	fmt.Fprintf(&b, "\n  registers %d, shared %d bytes, occupancy %s (limited by %s), compute %s, memory %s, dram %s\n", d.Registers, d.SharedBytes, percent(d.Occupancy), orUnknown(d.OccupancyLimit),
		percent(d.ComputeShare), percent(d.MemoryShare), percent(d.DRAMShare))
	if d.Source == "ncu" {
		fmt.Fprintf(&b, "  sectors a load %.1f, a store %.1f, bank conflicts %s, local sectors %.3g, waves %.2f, top stall %s\n", d.SectorsLoad, d.SectorsStore, percent(d.BankConflicts), d.LocalSectors, d.Waves, orUnknown(d.TopStall))
	}
	for i, x := range d.Diagnoses {
		mark := "minor"
		if i == 0 {
			mark = "main"
		}
		fmt.Fprintf(&b, "  %s: %s: %s (%s); %s\n", mark, x.Code, x.Problem, x.Evidence, x.Direction)
	}
	return b.String()
}

func percent(v float64) string {
	if v < 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// Codes lists the diagnoses' codes, in order.
func (d *Digest) Codes() []string {
	out := make([]string, 0, len(d.Diagnoses))
	for _, x := range d.Diagnoses {
		out = append(out, x.Code)
	}
	return out
}

// Slowest sorts digests by time, the longest first.
func Slowest(all []Digest) {
	sort.SliceStable(all, func(i, j int) bool { return all[i].Duration > all[j].Duration })
}
