package gpu_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/gpu"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/nvrtc"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || nvrtc.Main(os.Args[1:]) || gpu.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// verdicts are the README's of testdata/cases.
var verdicts = map[string]struct {
	fault harness.Fault
	kind  string // of the evidence; "": any
}{
	"00_control_softmax_honest": {fault: harness.FaultNone}, "01_control_vadd_honest": {fault: harness.FaultNone},
	"02_control_softmax_slow_but_honest": {fault: harness.FaultNone}, "10_zeros_below_atol": {fault: harness.FaultIncorrect},
	"12_no_max_subtraction": {harness.FaultIncorrect, "non_finite"}, "14_size_branch": {fault: harness.FaultIncorrect},
	"15_tail_dropped": {harness.FaultIncorrect, "unwritten"}, "16_stale_output_noop": {harness.FaultIncorrect, "unwritten"},
	"18_first_calls_honest": {harness.FaultIncorrect, "unwritten"}, "19_cache_by_pointer": {fault: harness.FaultIncorrect},
	"21_nan_writer": {harness.FaultIncorrect, "non_finite"}, "24_half_precision_inside": {fault: harness.FaultIncorrect},
	"25_mutates_inputs": {harness.FaultIncorrect, "inputs_changed"}, "27_oob_write": {harness.FaultIncorrect, "red_zone"},
	"29_hang_on_odd_size": {fault: harness.FaultTimeout}, "30_sticky_fault": {fault: harness.FaultCrash},
	"31_compile_error": {fault: harness.FaultCompile}, "37_one_size_regression": {fault: harness.FaultNone},
}

var (
	comments    = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	identifiers = regexp.MustCompile(`\b(wmax|wsum|block_max|block_sum|honest_row|buf|lazy|same|stay|seen|lim|g_\w+|inv|t0|hs|n4)\b`)
)

// disguise strips a source's comments and renames what could tell its intent.
func disguise(source string) string {
	return identifiers.ReplaceAllString(comments.ReplaceAllString(source, ""), "q_${1}_z")
}

// bundle is a judge over the cuda target.
type bundle struct {
	judge  *judge.Judge
	target *gpu.Target
	arch   string
}

// setup makes a judge for the emulated device, or with RIDGEPOINT_GPU_ARCH set for the card.
func setup(t *testing.T, knobs string) *bundle {
	t.Helper()
	cache := filepath.Join(os.TempDir(), "ridgepoint-test")
	b := &bundle{arch: device.Emulated}
	if arch := os.Getenv("RIDGEPOINT_GPU_ARCH"); arch != "" {
		b.arch = arch
	} else if _, err := emulator.Install(t.Context(), cache); errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	b.target = gpu.New(gpu.Config{RunDir: t.TempDir(), CacheDir: cache, ReducedSandbox: true, EmulatorKnobs: knobs, Version: "test"})
	limit := 3 * time.Second
	if os.Getenv("RIDGEPOINT_LONG") != "" { // what else runs on the machine may then be long, too
		limit = 15 * time.Second
	}
	j, err := judge.New(judge.Config{CacheDir: cache, RunDir: t.TempDir(), OracleFunc: judge.Oracle(nil), Targets: []judge.Target{b.target}, ReducedSandbox: true, LaunchLimit: limit, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.judge = j
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// load reads a task of testdata/cases for the bundle's arch; on the emulator its larger sizes are left out.
func (b *bundle) load(t *testing.T, name string) *harness.Task {
	t.Helper()
	return b.loadFrom(t, filepath.Join("testdata", "cases"), name, func(s string) string {
		s = strings.ReplaceAll(s, "arch: sm_90", "arch: "+b.arch)
		if b.arch == device.Emulated {
			s = strings.ReplaceAll(s, ", {rows: 1024, cols: 1024}, {rows: 256, cols: 4096}", ", {rows: 64, cols: 4096}")
			s = strings.ReplaceAll(s, ", {n: 4194304}", "")
			s = strings.ReplaceAll(s, "rows: [1, 600]", "rows: [1, 60]")
			s = strings.ReplaceAll(s, "n: [1, 3000000]", "n: [1, 300000]")
		}
		return s
	})
}

// loadFrom reads a task of a folder, changed by edit, with the files beside it.
func (b *bundle) loadFrom(t *testing.T, folder, name string, edit func(text string) string) *harness.Task {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(edit(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// evaluate judges a source.
func (b *bundle) evaluate(t *testing.T, tk *harness.Task, source string, stage harness.Stage, seed uint64) *harness.Report {
	t.Helper()
	return b.judged(t, b.request(t, tk, source, harness.Plan{Stage: stage, Seed: seed}))
}

func (b *bundle) request(t *testing.T, tk *harness.Task, source string, plan harness.Plan) *harness.Request {
	t.Helper()
	s, err := task.ParseStructure("case", source, tk, harness.TargetCUDA)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &harness.Request{Task: tk, Candidate: c, Plan: plan}
}

func (b *bundle) judged(t *testing.T, q *harness.Request) *harness.Report {
	t.Helper()
	build, r, err := b.judge.Compile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if r != nil {
		return r
	}
	if r, err = b.judge.Benchmark(t.Context(), q, build); err != nil {
		t.Fatal(err)
	}
	return r
}

// caseOf is the source of a kernel of testdata/cases.
func caseOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/cases/" + name + ".cu")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func taskOf(source string) string {
	if strings.Contains(source, "softmax_rows(") {
		return "softmax_rows.yaml"
	}
	return "vadd.yaml"
}

// hangs is 29_hang_on_odd_size in a form that no compiler may take away: it waits for memory to change. CUDA 13's ptxas removes
// the loop of the file itself, which has no effect, so that there the kernel is honest.
const hangs = `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const volatile float* watched = a;
    float first = watched[0];
    if (n & 1) while (watched[0] == first) { }
    if (i < n) c[i] = a[i] + b[i];
}`

// TestAfterHangAndFault wants a hang to end as a timeout and a fault as a crash, and the next candidate to be measured as
// usual soon after.
func TestAfterHangAndFault(t *testing.T) {
	b := setup(t, "")
	tk := b.load(t, "vadd.yaml")
	control := caseOf(t, "01_control_vadd_honest")
	fault := caseOf(t, "30_sticky_fault")
	if r := b.evaluate(t, tk, control, harness.StageSearch, 1); !r.Fault.Measured() {
		t.Fatalf("before: %v (%s)", r.Fault, r.Reason)
	}
	for name, c := range map[string]struct {
		source string
		want   harness.Fault
	}{"hang": {hangs, harness.FaultTimeout}, "fault": {fault, harness.FaultCrash}} {
		if r := b.evaluate(t, tk, disguise(c.source), harness.StageFirst, 3); r.Fault != c.want {
			t.Errorf("%s: %v (%s), want %v", name, r.Fault, r.Reason, c.want)
		}
		begin := time.Now()
		r := b.evaluate(t, tk, control, harness.StageSearch, 1)
		took := time.Since(begin)
		if !r.Fault.Measured() {
			t.Errorf("after the %s: %v (%s)", name, r.Fault, r.Reason)
		}
		if b.arch != device.Emulated && took > 3*time.Second {
			t.Errorf("after the %s the next candidate took %v, want 3 s at most", name, took)
		}
		t.Logf("after the %s: %v in %v", name, r.Fault, took.Round(time.Millisecond))
	}
}

// TestCases judges every kernel of testdata/cases, disguised, in one judge, so that each one's fault must leave the next
// alone.
func TestCases(t *testing.T) {
	b := setup(t, "")
	files, err := filepath.Glob("testdata/cases/*.cu")
	if err != nil || len(files) != len(verdicts) {
		t.Fatalf("%d cases, %v; want %d", len(files), err, len(verdicts))
	}
	rounds := 1
	if os.Getenv("RIDGEPOINT_LONG") != "" {
		rounds = 5
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cu")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tk := b.load(t, taskOf(string(text)))
			for round := range rounds {
				begin := time.Now()
				r := b.evaluate(t, tk, disguise(string(text)), harness.StageFirst, uint64(round+1))
				want := verdicts[name]
				removed := name == "29_hang_on_odd_size" && b.arch != device.Emulated && r.Fault.Measured() // see hangs
				if r.Fault != want.fault && !removed && !(want.fault == harness.FaultNone && r.Fault.Measured()) {
					t.Errorf("round %d: %v (%s), want %v", round, r.Fault, r.Reason, want.fault)
				}
				if want.kind != "" && (r.Evidence == nil || r.Evidence.Kind != want.kind) {
					t.Errorf("round %d: evidence %+v, want %s", round, r.Evidence, want.kind)
				}
				if b.arch == device.Emulated && len(r.Sizes) > 0 {
					t.Error("times were reported on the emulated device")
				}
				t.Logf("%v in %v: %s", r.Fault, time.Since(begin).Round(time.Millisecond), r.Reason)
				for _, s := range r.Sizes {
					t.Logf("  %s: median %.2f us, spread %.1f %%, clock %v", s.Size, s.MedianUS, 100*s.SpreadRatio, s.ClockMHz)
				}
			}
		})
	}
}
