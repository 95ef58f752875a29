package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/task"
)

// bad is a task that is wrong in one way: what of scaleTask is replaced by what, and the finding that must say so.
type bad struct {
	name    string
	replace []string // old, new, ...
	check   string
	verdict Verdict
	text    string // part of the finding
}

var badTasks = []bad{
	{"the answer is always zero", []string{"REFERENCE", "x * 0 + b * 0"}, "nulls", Fail, "zeros at rows=64,cols=96"},
	{"the answer is always one", []string{"REFERENCE", "x * 0 + b * 0 + 1"}, "nulls", Fail, "ones at"},
	{"the answer is the input", []string{"REFERENCE", "x + b * 1e-9"}, "nulls", Fail, "a copy of the input"},
	{"the written atol is above the outputs", []string{"atol: 1e-6", "atol: 100"}, "tolerance", Warn, "zeros at rows=64,cols=96"},
	{"rtol lets bfloat16 pass", []string{"REFERENCE", "2 * x.abs() + b.abs()", "rtol: 1e-6", "rtol: 2e-2"}, "cheap", Warn, "the loosest cheap wrong kernel that would pass at rows=64,cols=96: one that computes in bfloat16"},
	{"rtol lets float16 pass", []string{"REFERENCE", "2 * x.abs() + b.abs()", "rtol: 1e-6", "rtol: 3e-3"}, "cheap", Warn, "one that computes in float16"},
	{"a sum that a column does not move", []string{"REFERENCE", "(x + b).abs().sum().expand(rows, cols) * 1.0", "rtol: 1e-6", "rtol: 0.05"}, "cheap", Fail, "the loosest cheap wrong kernel that would pass"},
	{"the reference ignores an input", []string{"REFERENCE", "2 * x + b * 0"}, "inputs", Fail, "do not depend on b"},
	{"the reference is not finite", []string{"REFERENCE", "torch.log(x) + b"}, "reference", Fail, "are not finite on plain inputs"},
	{"the reference is another computation", []string{"REFERENCE", "3 * x + b"}, "baseline", Fail, "does not pass: incorrect"},
	{"the reference is transposed by a slip", []string{"REFERENCE", "2 * x + b.flip(0)"}, "baseline", Fail, "does not pass: incorrect"},
	{"the baseline drops its tail", []string{"i < (long)rows * cols", "i + 1 < (long)rows * cols"}, "baseline", Fail, "never written"},
	{"the baseline writes past its end", []string{"i < (long)rows * cols", "i <= (long)rows * cols"}, "baseline", Fail, "wrote outside out"},
	{"the tolerances refuse an honest kernel", []string{"rtol: 1e-6", "rtol: 1e-12", "atol: 1e-6", "atol: 1e-12", "2 * x[i] + b", "2.0000001f * x[i] + b"}, "baseline", Fail, "does not pass: incorrect"},
	{"sizes that only time the launch", []string{"SIZES", "[{rows: 1, cols: 1}]"}, "launches", Fail, "over half of the baseline's time at rows=1,cols=1"},
	{"no work is stated", []string{"work: {flops: \"2*rows*cols\", bytes: \"8*rows*cols + 4*cols\"}\n", ""}, "work", Warn, "does not say how much work"},
	{"bytes are counted a hundredfold", []string{"8*rows*cols + 4*cols", "800*rows*cols"}, "work", Fail, "would be called impossible"},
	{"bytes are counted in elements", []string{"8*rows*cols + 4*cols", "rows"}, "work", Warn, "the work is 64 bytes, and all tensors together"},
	{"vary holds the scored sizes alone", []string{"vary: {rows: [1, 70], cols: [1, 100]}", "vary: {rows: [64, 64], cols: [96, 96]}", "SIZES", "[{rows: 64, cols: 96}]"}, "hidden", Fail, "no hidden size can be drawn"},
	{"vary holds two sizes more", []string{"vary: {rows: [1, 70], cols: [1, 100]}", "vary: {rows: [64, 64], cols: [94, 96]}", "SIZES", "[{rows: 64, cols: 96}]"}, "hidden", Warn, "hidden sizes can be drawn, of the 8"},
	{"no hidden sizes", []string{"vary: {rows: [1, 70], cols: [1, 100]}", "vary: none"}, "hidden", Warn, "vary is none"},
	{"hidden sizes are larger than memory is meant for", []string{"vary: {rows: [1, 70], cols: [1, 100]}", "vary: {rows: [4000, 5000], cols: [4000, 5000]}"}, "hidden", Fail, "no hidden size can be drawn"},
}

// badLinter is a linter over scaleTask with one thing spoiled.
func badLinter(t *testing.T, b bad, j *judge.Judge) (*linter, *[]Finding) {
	t.Helper()
	text, kernel := scaleTask, "void scale(const float *x, const float *b, float *out, int rows, int cols) {\n  "+honest+"\n}\n"
	swap := func(old, to string) {
		if !strings.Contains(text, old) && !strings.Contains(kernel, old) {
			t.Fatalf("%q is neither in the task nor in the kernel", old)
		}
		text, kernel = strings.ReplaceAll(text, old, to), strings.ReplaceAll(kernel, old, to)
	}
	for i := 0; i < len(b.replace); i += 2 {
		if old := b.replace[i]; old == "REFERENCE" || old == "SIZES" {
			swap(old, b.replace[i+1])
		}
	}
	text = strings.NewReplacer("REFERENCE", "2 * x + b", "SIZES", "[{rows: 64, cols: 96}]", "EVAL", eval).Replace(text)
	for i := 0; i < len(b.replace); i += 2 {
		if old := b.replace[i]; old != "REFERENCE" && old != "SIZES" {
			swap(old, b.replace[i+1])
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"task.yaml": text, "naive.c": kernel} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tk, err := task.Load(filepath.Join(dir, "task.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := &[]Finding{}
	return &linter{Config: Config{Task: tk, Judge: j, Targets: []harness.Target{harness.TargetCPU}, Seed: 1, ReportFunc: func(f Finding) { *found = append(*found, f) }}}, found
}

// Every bad task is caught, by the check that it is for and with its reason, and told what to do.
func TestBadTasks(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	j, err := judge.New(judge.Config{CacheDir: t.TempDir(), RunDir: t.TempDir(), OracleFunc: judge.Oracle(nil), LaunchLimit: 20 * time.Second, ReducedSandbox: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, b := range badTasks {
		t.Run(b.name, func(t *testing.T) {
			l, found := badLinter(t, b, j)
			steps := map[string][]func(context.Context) error{"reference": {l.reference}, "nulls": {l.nulls}, "tolerance": {l.nulls}, "cheap": {l.cheapKernels}, "inputs": {l.inputs},
				"work": {func(context.Context) error { return l.work() }}, "hidden": {func(context.Context) error { l.hidden(harness.TargetCPU); return nil }},
				"baseline": {func(ctx context.Context) error { return l.target(ctx, harness.TargetCPU) }}, "launches": {func(ctx context.Context) error { return l.target(ctx, harness.TargetCPU) }}}
			for _, step := range steps[b.check] {
				if err := step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			at := slices.IndexFunc(*found, func(f Finding) bool { return f.Check == b.check && f.Verdict == b.verdict })
			if at < 0 || !strings.Contains((*found)[at].Text, b.text) || (*found)[at].Remedy == "" || l.failed != (b.verdict == Fail) {
				t.Errorf("found %v (failed %t), want a %s of %s with %q and what to do", *found, l.failed, b.verdict, b.check, b.text)
			}
		})
	}
}

// A reference that answers by chance is told.
func TestRandomReference(t *testing.T) {
	t.Parallel()
	l, found := setup(t, "2 * x + b", sizes, eval, honest)
	calls := 0.0
	l.Judge = drawn(t, func(out map[string][]float64) {
		calls++
		out["out"][17] += 1e-9 * calls
	})
	if err := l.reference(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*found) != 1 || (*found)[0].Verdict != Fail || !strings.Contains((*found)[0].Text, "two answers for the same inputs at rows=64,cols=96: out[17]") {
		t.Errorf("%v", *found)
	}
}

// drawn is a judge whose expected values are spoiled.
func drawn(t *testing.T, spoil func(out map[string][]float64)) *judge.Judge {
	t.Helper()
	oracle := judge.Oracle(nil)
	j, err := judge.New(judge.Config{CacheDir: t.TempDir(), RunDir: t.TempDir(), ReducedSandbox: true, Version: "test",
		OracleFunc: func(ctx context.Context, tk *harness.Task, size harness.Size, in map[string][]float64, key string) (map[string][]float64, error) {
			out, err := oracle(ctx, tk, size, in, key)
			if err == nil {
				spoil(out)
			}
			return out, errors.Join(err)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// The checks that need no device fail for no task that is shipped.
func TestShippedTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	j := drawn(t, func(map[string][]float64) {})
	for _, name := range tasks.Names() {
		loaded, err := task.Loader{Shipped: tasks.FS}.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		var found []Finding
		l := &linter{Config: Config{Task: loaded.Task, Judge: j, Seed: 1, ReportFunc: func(f Finding) { found = append(found, f) }}}
		for _, spec := range loaded.Task.Targets {
			l.Targets = append(l.Targets, spec.Target)
			l.hidden(spec.Target)
		}
		if err := errors.Join(l.reference(t.Context()), l.cheapKernels(t.Context()), l.work()); err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Logf("%s: %s", name, f)
			if f.Verdict == Fail {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
}
