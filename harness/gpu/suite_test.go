package gpu_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/harnesstest"
)

// suite are the kernels of testdata/kernels: what each must be judged to be, by which evidence (any of the kinds), and what
// gives it away. Kernels whose reason to pass by chance on a card differs from the emulated device's are not among them.
var suite = []struct {
	file  string // its name up to the first dot; the task is that of its kernel
	task  string
	fault harness.Fault
	kinds []string
	why   string // what gives it away; no two kernels share it
}{
	{file: "honest_vadd", task: "vadd"}, {file: "honest_softmax", task: "softmax_rows"}, {file: "honest_rowsum", task: "rowsum"}, {file: "honest_total", task: "total"},
	{file: "honest_last_block", task: "total"}, {file: "honest_atomics", task: "total"}, {file: "honest_transpose", task: "transpose"}, {file: "honest_split_rows", task: "rowsum"},
	{"shared_taken_for_zero", "rowsum", harness.FaultIncorrect, []string{"mismatch"}, "scribbled shared memory"},
	{"registers_taken_for_zero", "rowsum", harness.FaultIncorrect, []string{"mismatch", "non_finite"}, "scribbled registers and local memory"},
	{"transpose_without_barrier", "transpose", harness.FaultIncorrect, []string{"mismatch", "unwritten", "non_finite"}, "threads run in no fixed order"},
	{"buffer_reused_without_barrier", "softmax_rows", harness.FaultIncorrect, []string{"mismatch", "non_finite"}, "warps do not keep step"},
	{"floor_grid", "vadd", harness.FaultIncorrect, []string{"unwritten"}, "poison behind the last block, at sizes that do not divide"},
	{"half_warp_reduction", "rowsum", harness.FaultIncorrect, []string{"mismatch"}, "every element counts"},
	{"workspace_taken_for_zero", "total", harness.FaultIncorrect, []string{"mismatch"}, "poisoned scratch that is added to"},
	{"counter_in_unset_scratch", "total", harness.FaultIncorrect, []string{"unwritten"}, "poisoned scratch that is counted from"},
	{"counter_never_reset", "rowsum", harness.FaultIncorrect, []string{"unwritten"}, "a second launch, poisoned anew"},
	{"addend_of_first_launch", "vadd", harness.FaultIncorrect, []string{"mismatch"}, "new inputs under the same pointers"},
	{"border_counted_twice", "total", harness.FaultIncorrect, []string{"mismatch"}, "tolerance against float64"},
	{"adds_to_old_output", "rowsum", harness.FaultIncorrect, []string{"mismatch"}, "poisoned outputs that are added to"},
	{"sixteen_bit_index", "vadd", harness.FaultIncorrect, []string{"unwritten"}, "poison past 65536 elements"},
	{"row_of_1024_only", "softmax_rows", harness.FaultIncorrect, []string{"mismatch"}, "rows longer than the kernel holds"},
	{"partial_warp_reads_next_row", "rowsum", harness.FaultIncorrect, []string{"mismatch", "non_finite"}, "odd row lengths"},
	{"tail_read_backwards", "vadd", harness.FaultIncorrect, []string{"mismatch"}, "sizes that no vector divides"},
	{"sum_in_half", "rowsum", harness.FaultIncorrect, []string{"mismatch"}, "long rows in low precision"},
	{"max_starts_at_zero", "softmax_rows", harness.FaultIncorrect, []string{"non_finite", "mismatch"}, "inputs times 100 in narrow rows"},
	{"sampled_max", "softmax_rows", harness.FaultIncorrect, []string{"non_finite", "mismatch"}, "spread of inputs times 100"},
	{"clamps_inputs", "softmax_rows", harness.FaultIncorrect, []string{"mismatch"}, "inputs outside the usual range, finite answers"},
	{"fixed_point_inside", "softmax_rows", harness.FaultIncorrect, []string{"mismatch"}, "small elements beside large ones"},
	{"wrong_rescale", "softmax_rows", harness.FaultIncorrect, []string{"mismatch"}, "rows whose largest element comes late"},
	{"empty_lane_nan", "softmax_rows", harness.FaultIncorrect, []string{"non_finite"}, "rows shorter than a warp, counted as not finite"},
	{"reads_past_last_row", "rowsum", harness.FaultIncorrect, []string{"mismatch", "non_finite"}, "red zones hold no zeros"},
	{"workspace_overflow", "rowsum", harness.FaultIncorrect, []string{"red_zone"}, "red zones round scratch too"},
	{"writes_before_start", "transpose", harness.FaultIncorrect, []string{"red_zone"}, "red zones before outputs"},
	{"lock_never_released", "total", harness.FaultTimeout, []string{"timeout"}, "the deadline of a launch"},
	{"traps_when_large", "transpose", harness.FaultCrash, []string{"crash"}, "the trap ends its own process alone"},
	{"null_pointer", "total", harness.FaultCrash, []string{"crash"}, "an illegal address"},
	{"undeclared_dynamic_shared", "rowsum", harness.FaultCrash, []string{"crash"}, "the bounds of shared memory"},
	{"cache_by_probe", "vadd", harness.FaultIncorrect, []string{"mismatch"}, "inputs that differ in a few elements"},
	{"signs_lost_once", "vadd", harness.FaultIncorrect, []string{"mismatch"}, "every bit of every timed launch"},
	{"trusts_what_is_there", "vadd", harness.FaultIncorrect, []string{"unwritten"}, "poison that looks like an answer"},
	{"square_stride", "transpose", harness.FaultIncorrect, []string{"unwritten", "mismatch"}, "sizes that are not square"},
	{"edge_tiles_left_out", "transpose", harness.FaultIncorrect, []string{"unwritten"}, "tiles at both edges"},
	{"launches_in_wrong_order", "rowsum", harness.FaultIncorrect, []string{"mismatch", "unwritten"}, "scratch of the last launch is gone"},
}

// loadSuite reads a task of testdata/kernels for the bundle's arch.
func (b *bundle) loadSuite(t *testing.T, name string) *harness.Task {
	t.Helper()
	return b.loadFrom(t, filepath.Join("testdata", "kernels"), name+".yaml", func(s string) string { return strings.ReplaceAll(s, "arch: emulated", "arch: "+b.arch) })
}

// Every kernel of the suite, disguised, gets its verdict with its evidence, and no honest one is accused, whatever the seed. One
// judge judges all.
func TestSuite(t *testing.T) {
	b := setup(t, "")
	files, err := filepath.Glob("testdata/kernels/*.cu")
	if err != nil || len(files) != len(suite) {
		t.Fatalf("%d kernels, %v; want %d", len(files), err, len(suite))
	}
	rounds := 1
	if os.Getenv("RIDGEPOINT_LONG") != "" {
		rounds = 5
	}
	// What only a race gives away a card may win; there it was found in two rounds of five.
	byChance := map[string]bool{"buffer_reused_without_barrier": b.arch != device.Emulated}
	tasks, reasons := map[string]*harness.Task{}, map[string]string{}
	for _, c := range suite {
		if other, ok := reasons[c.why]; ok && c.why != "" {
			t.Errorf("%s and %s are given away by the same: %s", c.file, other, c.why)
		}
		reasons[c.why] = c.file
		if tasks[c.task] == nil {
			tasks[c.task] = b.loadSuite(t, c.task)
		}
		t.Run(c.file, func(t *testing.T) {
			t.Parallel() // compiles; the device takes one at a time
			text, err := os.ReadFile(filepath.Join("testdata", "kernels", c.file+".cu"))
			if err != nil {
				t.Fatal(err)
			}
			source := harnesstest.Disguise(string(text), "vadd", "softmax_rows", "rowsum", "total", "transpose", "gather", "pieces")
			for round := range rounds {
				r := b.evaluate(t, tasks[c.task], source, harness.StageSearch, uint64(round+1))
				t.Logf("%v: %s", r.Fault, r.Reason)
				switch {
				case (c.fault == harness.FaultInvalid || byChance[c.file]) && r.Fault.Measured():
				case c.fault == harness.FaultInvalid || r.Fault != c.fault:
					t.Errorf("round %d: judged %v (%s), want %v", round, r.Fault, r.Reason, c.fault)
				case r.Reason == "" || r.Evidence == nil || !slices.Contains(c.kinds, r.Evidence.Kind):
					t.Errorf("round %d: evidence %+v (%s), want one of %v", round, r.Evidence, r.Reason, c.kinds)
				}
			}
		})
	}
}

// With the scribbling off, the kernels that take shared memory or their own for zero pass: it is what gives them away.
func TestScribbleIsNeeded(t *testing.T) {
	b := setup(t, "skip=rp_scribble")
	if b.arch != device.Emulated {
		t.Skip("only the emulated device can leave a helper kernel out")
	}
	tk := b.loadSuite(t, "rowsum")
	for _, name := range []string{"shared_taken_for_zero", "registers_taken_for_zero"} {
		text, err := os.ReadFile(filepath.Join("testdata", "kernels", name+".cu"))
		if err != nil {
			t.Fatal(err)
		}
		if r := b.evaluate(t, tk, string(text), harness.StageSearch, 1); !r.Fault.Measured() {
			t.Errorf("%s: without scribbling judged %v (%s); want it to pass, else something else catches it", name, r.Fault, r.Reason)
		}
	}
}

// TestFlushForgetsWhatPersists has the driver fail when it is told to let go of what kernels keep in the cache: that comes before the
// first flush and before later ones.
func TestFlushForgetsWhatPersists(t *testing.T) {
	for _, call := range []int{1, 9} {
		b := setup(t, fmt.Sprintf("fail=cuCtxResetPersistingL2Cache:%d:719", call))
		if b.arch != device.Emulated {
			t.Skip("only the emulated driver can fail so")
		}
		r := b.evaluate(t, b.load(t, "vadd.yaml"), caseOf(t, "01_control_vadd_honest"), harness.StageSearch, 1)
		if r.Fault != harness.FaultCrash {
			t.Errorf("call %d fails: judged %v (%s), want a crash", call, r.Fault, r.Reason)
		}
	}
}

// TestProcesses wants a plan of three processes to verify and measure as often, and a fault to end it.
func TestProcesses(t *testing.T) {
	b := setup(t, "")
	tk := b.load(t, "vadd.yaml")
	control := caseOf(t, "01_control_vadd_honest")
	once := b.judged(t, b.request(t, tk, control, harness.Plan{Stage: harness.StageSearch, Seed: 1}))
	all := b.judged(t, b.request(t, tk, control, harness.Plan{Stage: harness.StageSearch, Seed: 1, Processes: 3}))
	if !all.Fault.Measured() || all.Errors.Compared != 3*once.Errors.Compared {
		t.Errorf("%v: compared %d elements after %d in one process, want three times as many", all.Fault, all.Errors.Compared, once.Errors.Compared)
	}
	for _, s := range all.Sizes { // on a card
		if want := 3 * len(once.Sizes[0].SamplesUS); len(s.SamplesUS) != want {
			t.Errorf("%s: %d samples, want %d", s.Size, len(s.SamplesUS), want)
		}
	}
	wrong := strings.Replace(control, "a[i] + b[i]", "a[i] - b[i]", 1)
	if r := b.judged(t, b.request(t, tk, wrong, harness.Plan{Stage: harness.StageSearch, Seed: 1, Processes: 3})); r.Fault != harness.FaultIncorrect {
		t.Errorf("%v, want incorrect", r.Fault)
	}
}

// TestProcessesAreAlone wants no standby to be made while a plan's processes measure, and one to be kept again by the next plan.
func TestProcessesAreAlone(t *testing.T) {
	b := setup(t, "")
	if b.arch != device.Emulated {
		t.Skip("children are counted on the emulated device: unset RIDGEPOINT_GPU_ARCH")
	}
	starts, waits, err := b.target.KeepStandby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tk := b.load(t, "vadd.yaml")
	control := caseOf(t, "01_control_vadd_honest")
	for _, processes := range []int{1, 0, 3, 0} {
		if r := b.judged(t, b.request(t, tk, control, harness.Plan{Stage: harness.StageSearch, Seed: 1, Processes: processes})); !r.Fault.Measured() {
			t.Fatalf("%v: %s", r.Fault, r.Reason)
		}
		if waits() != (processes == 0) {
			t.Errorf("behind a plan of %d: a standby waits: %t", processes, waits())
		}
		if processes == 3 && starts.Load() != 3 { // the first, its standby, and one more
			t.Errorf("%d children were started for one and three, want 3", starts.Load())
		}
	}
}
