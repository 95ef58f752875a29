package feedback

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func size(rows, cols int64) harness.Size {
	return harness.Size{{Name: "rows", Value: rows}, {Name: "cols", Value: cols}}
}

func softmax() *harness.Task {
	return &harness.Task{Name: "softmax_2d", Agent: harness.Agent{FeedbackSchema: "structured_v1"}, Tensors: []harness.Tensor{
		{Name: "input", DType: harness.Float32, Role: harness.RoleIn}, {Name: "output", DType: harness.Float32, Role: harness.RoleOut}}}
}

// timed is a size of n elements that takes us, and the baseline base.
func timed(rows, cols int64, us, base float64) harness.SizeTime {
	n := float64(rows * cols)
	return harness.SizeTime{Size: size(rows, cols), MedianUS: us, BaselineUS: base, FLOPs: 5 * n, Bytes: 8 * n, SamplesUS: []float64{us, us, us}}
}

func passed(sizes ...harness.SizeTime) *harness.Report {
	return &harness.Report{Fault: harness.FaultNone, Rules: harness.StatusPass, Compile: harness.StatusPass, Runtime: harness.StatusPass, Numerical: harness.StatusPass,
		Errors: &harness.Errors{MaxAbs: 1.2e-7, MeanAbs: 3.4e-9, Compared: 1 << 20}, Sizes: sizes}
}

func incorrect(e harness.Evidence, errs harness.Errors) *harness.Report {
	return &harness.Report{Fault: harness.FaultIncorrect, Rules: harness.StatusPass, Compile: harness.StatusPass, Runtime: harness.StatusPass, Numerical: harness.StatusFail,
		Reason: "outputs differ", Evidence: &e, Errors: &errs}
}

func died(f harness.Fault, reason string, e harness.Evidence) *harness.Report {
	return &harness.Report{Fault: f, Rules: harness.StatusPass, Compile: harness.StatusPass, Runtime: harness.StatusFail, Reason: reason, Evidence: &e}
}

// reports holds a report for each way to fail and to pass; each has a golden file of its name.
func reports() map[string]*harness.Report {
	spilling := passed(timed(128, 128, 5, 6), timed(1024, 1024, 30, 60))
	spilling.Build = &harness.Build{Kernels: []harness.KernelResource{{Name: "softmax", Registers: 128, SpillStoreBytes: 64, SpillLoadBytes: 64}}}
	roof := passed(timed(128, 128, 5, 6), timed(1024, 1024, 30, 60))
	roof.Sizes[0].FloorUS, roof.Sizes[1].FloorUS = 0.9, 24.3
	floor := passed(timed(128, 128, 5, 6))
	floor.Sizes[0].FloorUS = 9
	noisyRun := passed(timed(128, 128, 5, 6))
	noisyRun.Fault, noisyRun.Sizes[0].Noisy = harness.FaultNoisy, true
	raced := passed(timed(128, 128, 5, 6))
	raced.Censored = &harness.Censored{MeasuredSizes: 3, LowerBound: 1.31}
	suspect := incorrect(harness.Evidence{Kind: "mismatch", Size: size(77, 1023), Hidden: true, Distribution: "normal", Tensor: "output", Index: []int64{0, 511}, Got: 0.25, Want: 0.001, Pattern: "tail of rows: from column 511 in 77 of 77 rows"},
		harness.Errors{MaxAbs: 0.25, MeanAbs: 0.01, MismatchRatio: 0.5})
	suspect.Warnings = []harness.Diagnosis{{Code: "size_branch", Problem: "compares cols with 1024, one of the scored sizes", Direction: "handle every cols the same way", Evidence: "line 12"},
		{Code: "writable_global", Problem: "calls keeps its value", Direction: "keep state in a workspace", Evidence: "line 3"}}
	bare := passed(timed(128, 128, 5, 6))
	bare.Sizes[0].FLOPs, bare.Sizes[0].Bytes = 0, 0
	return map[string]*harness.Report{
		"no_work": bare,
		"rules": {Fault: harness.FaultRules, Rules: harness.StatusFail, Reason: "forbid at 3:1: the task forbids \"cublas\"",
			Warnings: []harness.Diagnosis{{Code: "forbid", Problem: "the task forbids \"cublas\"", Direction: "write the kernel without it", Evidence: "line 3"}}},
		"rules_bare": {Fault: harness.FaultRules, Rules: harness.StatusFail, Reason: "the task forbids \"cublas\""},
		"compile": {Fault: harness.FaultCompile, Rules: harness.StatusPass, Compile: harness.StatusFail, Reason: "kernel.c:7:5: error: 'x' undeclared (first use in this function)",
			Detail: []string{"kernel.c:7:5: error: 'x' undeclared (first use in this function)\n    x += 1;", "kernel.c:9:1: error: expected ';' before '}' token\n    }", "kernel.c:2:1: warning: unused"}},
		"launch":           died(harness.FaultLaunch, "too many resources requested for launch", harness.Evidence{Kind: "launch", Size: size(128, 128)}),
		"segfault":         died(harness.FaultCrash, "SIGSEGV", harness.Evidence{Kind: "crash", Size: size(4096, 4096), Signal: "SIGSEGV"}),
		"exit":             died(harness.FaultCrash, "exited with status 0", harness.Evidence{Kind: "exit", Size: size(128, 128)}),
		"sandbox":          died(harness.FaultCrash, "openat /etc/shadow", harness.Evidence{Kind: "sandbox", Size: size(128, 128)}),
		"division":         died(harness.FaultCrash, "SIGFPE", harness.Evidence{Kind: "crash", Size: size(1, 1), Hidden: true, Signal: "SIGFPE"}),
		"hang":             died(harness.FaultTimeout, "still running after 5s: killed", harness.Evidence{Kind: "timeout", Size: size(77, 1023), Hidden: true}),
		"tail":             incorrect(harness.Evidence{Kind: "unwritten", Size: size(128, 127), Distribution: "normal", Tensor: "output", Index: []int64{127, 124}, Got: 7.5, Want: 0.01, Pattern: "tail: the last 3 elements"}, harness.Errors{MaxAbs: 7.5, MeanAbs: 1e-3, MismatchRatio: 0.000185}),
		"stale":            incorrect(harness.Evidence{Kind: "unwritten", Size: size(128, 128), Distribution: "normal", Tensor: "output", Index: []int64{0, 0}, Pattern: "all", Launch: 3, Timed: true}, harness.Errors{MaxAbs: 8, MeanAbs: 2, MismatchRatio: 1}),
		"overflow":         incorrect(harness.Evidence{Kind: "non_finite", Size: size(128, 128), Distribution: "times_100", InputSet: 2, Tensor: "output", Index: []int64{0, 4}, Got: harness.Number(nan()), Want: 0.99, Pattern: "rows: 100 of 128 whole, from row 0"}, harness.Errors{MaxAbs: harness.Number(nan()), MeanAbs: harness.Number(nan()), MismatchRatio: 0.78, NonFinite: 12800}),
		"half_precision":   incorrect(harness.Evidence{Kind: "mismatch", Size: size(128, 128), Distribution: "normal", Tensor: "output", Index: []int64{0, 0}, Got: 0.010003, Want: 0.01, Pattern: "scattered"}, harness.Errors{MaxAbs: 2.3e-3, MeanAbs: 8.1e-5, MismatchRatio: 0.18}),
		"zeros":            incorrect(harness.Evidence{Kind: "mismatch", Size: size(128, 128), Distribution: "normal", Tensor: "output", Index: []int64{0, 0}, Got: 0, Want: 0.01, Pattern: "all"}, harness.Errors{MaxAbs: 0.2, MeanAbs: 0.0078, MismatchRatio: 1}),
		"red_zone":         incorrect(harness.Evidence{Kind: "red_zone", Size: size(128, 127), Tensor: "output"}, harness.Errors{}),
		"inputs_changed":   incorrect(harness.Evidence{Kind: "inputs_changed", Size: size(128, 127), Tensor: "input", Index: []int64{3, 4}}, harness.Errors{}),
		"suspected":        suspect,
		"good":             passed(timed(128, 128, 5, 6), timed(1024, 1024, 400, 700), timed(4096, 4096, 7000, 12000)),
		"slower_somewhere": passed(timed(128, 128, 8, 6), timed(1024, 1024, 400, 700), timed(4096, 4096, 7000, 12000)),
		"slower":           passed(timed(128, 128, 8, 6), timed(1024, 1024, 800, 700)),
		"fixed_cost":       passed(timed(128, 128, 8, 9), timed(256, 256, 8.2, 9.4)),
		"spills":           spilling,
		"roof":             roof,
		"below_floor":      floor,
		"noisy":            noisyRun,
		"censored":         raced,
		"infra":            {Fault: harness.FaultInfra, Reason: "another process is on the card"},
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Text(softmax(), r, 3)
			prose := softmax()
			prose.Agent.FeedbackSchema = "plain"
			got += "\n" + Text(prose, r, 3)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The form of structured_v1: these keys in this order and no others; a value after the stage that failed is empty.
func TestForm(t *testing.T) {
	t.Parallel()
	keys := []string{"COMPILE_STATUS", "RUNTIME_STATUS", "NUMERICAL_STATUS", "MAX_ABS_ERROR", "MEAN_ABS_ERROR", "MISMATCH_RATIO", "GFLOPS", "BASELINE_GFLOPS", "SPEEDUP", "WARNINGS"}
	filled := map[harness.Fault]int{harness.FaultRules: 0, harness.FaultInfra: 0, harness.FaultCompile: 1, harness.FaultLaunch: 2, harness.FaultCrash: 2, harness.FaultTimeout: 2,
		harness.FaultIncorrect: 6, harness.FaultNone: 9, harness.FaultNoisy: 9}
	for name, r := range reports() {
		lines := strings.Split(strings.TrimSuffix(Text(softmax(), r, 3), "\n"), "\n")
		if len(lines) != 1+len(keys) || lines[0] != "ITERATION 3 / TASK softmax_2d" {
			t.Errorf("%s: %d lines, the first is %q", name, len(lines), lines[0])
			continue
		}
		for i, key := range keys {
			got, value, _ := strings.Cut(lines[1+i], " :")
			unknown := name == "no_work" && (key == "GFLOPS" || key == "BASELINE_GFLOPS")
			if got != key || key != "WARNINGS" && (value != "") != (i < filled[r.Fault] && !unknown) {
				t.Errorf("%s: line %q; want the key %s, filled %v", name, lines[1+i], key, i < filled[r.Fault])
			}
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		text := Text(softmax(), r, 1)
		Fill(softmax(), r)
		if len(r.Warnings) < 1 || len(r.Warnings) > 3 {
			t.Errorf("%s: %d warnings, want one to three", name, len(r.Warnings))
		}
		for _, d := range r.Warnings {
			if d.Code == "" || d.Problem == "" || d.Direction == "" {
				t.Errorf("%s: %+v lacks a part", name, d)
			}
		}
		if again := Text(softmax(), r, 1); again != text {
			t.Errorf("%s: filling changes the text: %s", name, cmp.Diff(text, again))
		}
		once := *r
		Fill(softmax(), r)
		if d := cmp.Diff(once.Warnings, r.Warnings) + cmp.Diff(once.Detail, r.Detail); d != "" {
			t.Errorf("%s: filling twice differs: %s", name, d)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 2.3e-3: "2.3e-3", 8.14e-5: "8.1e-5", 9.96e-5: "1.0e-4", 123: "1.2e2", 0.5: "5.0e-1"} {
		if got := scientific(v); got != want {
			t.Errorf("scientific(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.18: "0.18", 0.5: "0.5", 1: "1", 0.000186: "1.9e-4", 0.1849: "0.18"} {
		if got := share(v); got != want {
			t.Errorf("share(%v) = %q, want %q", v, got, want)
		}
	}
	s := Summarise(passed(timed(10, 10, 1, 2), timed(10, 10, 4, 2)))
	if s.Speedup != 1 || s.GFLOPS != 0.25 || s.BaselineGFLOPS != 0.25 {
		t.Errorf("summary %+v, want geometric means 1, 0.25 and 0.25", s)
	}
}

// TestProfileTellsWhy wants what a profile's slowest launch shows before what times alone show, each problem once, and nothing
// before what makes a candidate worthless.
func TestProfileTellsWhy(t *testing.T) {
	t.Parallel()
	r := passed(timed(128, 128, 5, 6), timed(1024, 1024, 30, 20))
	r.Build = &harness.Build{Kernels: []harness.KernelResource{{Name: "softmax", Registers: 128, SpillStoreBytes: 64}}}
	r.Profile = []harness.Digest{
		{Kernel: "first", Duration: 10, Diagnoses: []harness.Diagnosis{{Code: "low_occupancy", Problem: "few warps", Direction: "more"}}},
		{Kernel: "second", Duration: 90, Diagnoses: []harness.Diagnosis{{Code: "bank_conflicts", Problem: "conflicts", Direction: "pad"}, {Code: "register_spills", Problem: "spills", Direction: "fewer"}}},
	}
	Fill(softmax(), r)
	var codes []string
	for _, d := range r.Warnings {
		codes = append(codes, d.Code)
	}
	if diff := cmp.Diff([]string{"bank_conflicts", "register_spills", "slower_than_baseline"}, codes); diff != "" || r.Warnings[0].Problem != "second: conflicts" {
		t.Errorf("%s\n%+v", diff, r.Warnings)
	}
	if text := strings.Join(r.Detail, "\n"); strings.Contains(text, "few warps") || strings.Contains(text, "register_spills") {
		t.Errorf("detail repeats or tells of the quicker launch: %s", text)
	}
	floor := passed(timed(128, 128, 5, 6))
	floor.Sizes[0].FloorUS, floor.Profile = 9, r.Profile
	if Fill(softmax(), floor); floor.Warnings[0].Code != "below_physical_floor" {
		t.Errorf("first is %s, want below_physical_floor", floor.Warnings[0].Code)
	}
}
