package check

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/runner"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cc"
	"ridgepoint/harness/verify"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || runner.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// scaleTask doubles a matrix and adds a bias; KERNEL is its baseline's body.
const scaleTask = `
task_name: scale
problem_shape: {rows: 64, cols: 96, dtype: float32}
tensors:
  x:   {shape: [rows, cols], role: in}
  b:   {shape: [cols], role: in}
  out: {shape: [rows, cols], role: out}
reference: REFERENCE
sizes: SIZES
vary: {rows: [1, 70], cols: [1, 100]}
eval: EVAL
work: {flops: "2*rows*cols", bytes: "8*rows*cols + 4*cols"}
targets: {cpu: {arch: x86-64, baseline: naive.c}}
default_launch: {kernel: scale, args: [x, b, out, rows, cols]}
`

const (
	honest = "for (long i = 0; i < (long)rows * cols; i++) out[i] = 2 * x[i] + b[i % cols];"
	sizes  = "[{rows: 64, cols: 96}, {rows: 512, cols: 512}]"
	eval   = "{atol: 1e-6, rtol: 1e-6}"
)

// setup makes a linter over a task spoiled as asked, and the list of what it finds.
func setup(t *testing.T, reference, sizes, eval, body string) (*linter, *[]Finding) {
	t.Helper()
	dir := t.TempDir()
	text := strings.NewReplacer("REFERENCE", reference, "SIZES", sizes, "EVAL", eval).Replace(scaleTask)
	kernel := "void scale(const float *x, const float *b, float *out, int rows, int cols) {\n  " + body + "\n}\n"
	for name, content := range map[string]string{"task.yaml": text, "naive.c": kernel} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tk, err := task.Load(filepath.Join(dir, "task.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := judge.New(judge.Config{CacheDir: t.TempDir(), RunDir: t.TempDir(), OracleFunc: judge.Oracle(nil), LaunchLimit: 20 * time.Second, ReducedSandbox: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	found := &[]Finding{}
	return &linter{Config: Config{Task: tk, Judge: j, Targets: []harness.Target{harness.TargetCPU}, Seed: 1, ReportFunc: func(f Finding) { *found = append(*found, f) }}}, found
}

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := cc.Find(t.Context(), "", cc.Config{}); errors.Is(err, cc.ErrNoCompiler) {
		t.Skip("no C compiler: install gcc (`ridgepoint doctor` prints the command)")
	}
}

func verdicts(found []Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.Check+" "+string(f.Verdict))
	}
	return strings.Join(out, ", ")
}

func TestGoodTask(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	needCompiler(t)
	l, found := setup(t, "2 * x + b", "[{rows: 512, cols: 512}, {rows: 600, cols: 512}]", eval, honest)
	said := ""
	l.ProgressFunc = func(what string) { said += what + "\n" }
	ok, err := Run(t.Context(), l.Config)
	if err != nil {
		t.Fatal(err)
	}
	want := "reference PASS, nulls PASS, cheap PASS, inputs PASS, mutants PASS, work PASS, hidden PASS, baseline PASS, shifted PASS, launches PASS"
	for _, step := range []string{"the reference at", "null answers at rows=600,cols=512 (2 of 2 sizes)", "cheap wrong kernels", "mutated references", "the baseline of cpu: compile"} {
		if !strings.Contains(said, step) {
			t.Errorf("nobody was told of %q:\n%s", step, said)
		}
	}
	if got := verdicts(*found); !ok || got != want {
		t.Errorf("ok %v: %s, want %s\n%v", ok, got, want, *found)
	}
}

func TestWrongBaseline(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	l, found := setup(t, "2 * x + b", sizes, eval, "for (long i = 0; i + 1 < (long)rows * cols; i++) out[i] = 2 * x[i] + b[i % cols];")
	if err := l.target(t.Context(), harness.TargetCPU); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(*found); got != "baseline FAIL" || !l.failed || !strings.Contains((*found)[0].Text, "incorrect") {
		t.Errorf("%s: %v", got, *found)
	}
}

func TestLaunchBound(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	l, found := setup(t, "2 * x + b", "[{rows: 1, cols: 1}, {rows: 600, cols: 512}]", eval, honest)
	if err := l.target(t.Context(), harness.TargetCPU); err != nil {
		t.Fatal(err)
	}
	last := (*found)[len(*found)-1]
	if last.Check != "launches" || last.Verdict != Fail || !strings.Contains(last.Text, "rows=1,cols=1") || strings.Contains(last.Text, "rows=600") {
		t.Errorf("%v", *found)
	}
}

// What a task can be wrong in without a kernel being run.
func TestHostChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reference, eval, want, text string
	}{
		{"good", "2 * x + b", eval, "nulls PASS, inputs PASS, mutants PASS", ""},
		{"constant", "x * 0 + b * 0 + 1", eval, "nulls FAIL, inputs FAIL, mutants FAIL", "ones at rows=64,cols=96"},
		{"idle input", "2 * x + b * 0", eval, "nulls PASS, inputs FAIL, mutants FAIL", "do not depend on b"},
		{"copy", "x + b * 1e-9", eval, "nulls FAIL, inputs FAIL, mutants FAIL", "a copy of the input"},
		{"loose", "2 * x + b", "{atol: 100, rtol: 1e-6}", "nulls PASS, tolerance WARN, inputs PASS, mutants PASS", "zeros at rows=64,cols=96"},
		{"a function", "|\n  def f(x, b):\n      return torch.exp(x) + b", eval, "nulls PASS, inputs PASS, mutants PASS", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, found := setup(t, c.reference, sizes, c.eval, honest)
			if err := errors.Join(l.nulls(t.Context()), l.inputs(t.Context()), l.mutants(t.Context())); err != nil {
				t.Fatal(err)
			}
			all := ""
			for _, f := range *found {
				all += f.String() + "\n"
				if (f.Verdict == Fail || f.Verdict == Warn) && f.Remedy == "" {
					t.Errorf("no remedy: %s", f)
				}
			}
			if got := verdicts(*found); got != c.want || !strings.Contains(all, c.text) {
				t.Errorf("%s, want %s with %q\n%s", got, c.want, c.text, all)
			}
		})
	}
}

// Each null answer fails against a softmax, and passes for a reference that it is.
func TestNulls(t *testing.T) {
	t.Parallel()
	e := task.Extent{Name: "out", Shape: []int64{4}, Strides: []int64{1}, DType: harness.Float32, Role: harness.RoleOut, Elements: 4, Span: 4}
	in := task.Extent{Name: "in", Shape: []int64{4}, Strides: []int64{1}, DType: harness.Float32, Role: harness.RoleIn, Elements: 4, Span: 4}
	raw := make([]byte, 16)
	verify.Encode(raw, []float64{3, 1, 4, 1}, in)
	tol := func(int) verify.Tolerance { return verify.Tolerance{Abs: 1e-9} }
	for i, want := range [][]float64{{0, 0, 0, 0}, {1, 1, 1, 1}, {7, 7, 7, 7}, {3, 1, 4, 1}, {math.NaN(), math.NaN(), math.NaN(), math.NaN()}} {
		for k, n := range Nulls() {
			set := &verify.Set{Inputs: [][]byte{raw, nil}, Expected: [][]float64{nil, want}}
			passes, known := Passes(n, []task.Extent{in, e}, set, tol)
			right := k == i || n.Name == "the mean" && i < 3 // a constant is its own mean
			if !known || passes != right {
				t.Errorf("%s for %v: passes %v, known %v, want %v", n.Name, want, passes, known, right)
			}
		}
	}
}

func TestCalibrate(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	// The kernel errs by 3e-4 of the value at one element in a hundred, and by a rounding elsewhere.
	l, _ := setup(t, "2 * x + b * 1e-3 + 8", sizes, "{atol: 1e-9, rtol: 1e-9}",
		"for (long i = 0; i < (long)rows * cols; i++) out[i] = (2 * x[i] + b[i % cols] * 1e-3f + 8) * (i % 100 ? 1.f : 1.0003f);")
	base, err := task.Baseline(l.Task, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(l.Task, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Calibrate(t.Context(), l.Judge, l.Task, c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Report.Fault != harness.FaultNone || len(p.Report.Survey) != 4 {
		t.Fatalf("fault %s (%s), %d spectra, want 2 sizes of 2 sets", p.Report.Fault, p.Report.Reason, len(p.Report.Survey))
	}
	for _, s := range p.Report.Survey {
		if s.MaxRel < 2.9e-4 || s.MaxRel > 3.6e-4 {
			t.Errorf("%s %s: largest relative error %.3g, want 3e-4 to a tenth", s.Size, s.Distribution, s.MaxRel)
		}
		if over := s.Over[len(s.Over)-4]; math.Abs(float64(over)/float64(s.Elements)-0.01) > 0.003 && s.Distribution == p.Report.Survey[0].Distribution {
			t.Errorf("%s: %d of %d elements err by more than 2^-9 of the largest error, want one in a hundred", s.Size, over, s.Elements)
		}
	}
	if p.RTol < 2*3e-4 || p.RTol > 3*3.3e-4 {
		t.Errorf("proposed rtol %g, want 2 to 3 times 3e-4", p.RTol)
	}
	notes := strings.Join(p.Notes, "\n")
	if !strings.Contains(notes, "may refuse this kernel") || !strings.Contains(notes, "no null answer") {
		t.Errorf("notes: %s", notes)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	s := harness.Spectrum{Elements: 1000, MaxAbs: 8, Over: []int64{1, 5, 400}} // over 4: 1, over 2: 5, over 1: 400
	for share, want := range map[float64]float64{0.9999: 8, 0.999: 4, 0.99: 2, 0.5: 1} {
		if got := Quantile(s, share); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", share, got, want)
		}
	}
}
