package judge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/rules"
	"ridgepoint/harness/runner"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cc"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || runner.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// newJudge makes a judge with folders of its own; launches hang after limit.
func newJudge(t *testing.T, limit time.Duration) *Judge {
	t.Helper()
	if _, err := cc.Find(t.Context(), "", cc.Config{}); errors.Is(err, cc.ErrNoCompiler) {
		t.Skip("no C compiler: install gcc (`ridgepoint doctor` prints the command)")
	}
	j, err := New(Config{CacheDir: t.TempDir(), RunDir: t.TempDir(), OracleFunc: Oracle(nil), LaunchLimit: limit, ReducedSandbox: true, Version: "test",
		RulesFunc: func(*harness.Task, *harness.Structure) []rules.Violation { return nil }}) // what runs must be caught by what it does
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

// loadTask loads testdata/kernels/NAME.yaml.
func loadTask(t *testing.T, name string) *harness.Task {
	t.Helper()
	loaded, err := task.Load(filepath.Join("testdata", "kernels", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// request asks for one kernel of testdata/kernels.
func request(t *testing.T, tk *harness.Task, file string, plan harness.Plan) *harness.Request {
	t.Helper()
	s, err := task.LoadStructure(filepath.Join("testdata", "kernels", file), tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	return requestFor(t, tk, s, plan)
}

// requestOf asks for a kernel by its source.
func requestOf(t *testing.T, tk *harness.Task, name, source string, plan harness.Plan) *harness.Request {
	t.Helper()
	s, err := task.ParseStructure(name, source, tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	return requestFor(t, tk, s, plan)
}

func requestFor(t *testing.T, tk *harness.Task, s *harness.Structure, plan harness.Plan) *harness.Request {
	t.Helper()
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &harness.Request{Task: tk, Candidate: c, Plan: plan}
}

// baseline is the task's own as a rival.
func baseline(t *testing.T, tk *harness.Task) harness.Rival {
	t.Helper()
	s, err := task.Baseline(tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Rival{Role: "baseline", Candidate: c}
}

// evaluate compiles and benchmarks.
func evaluate(t *testing.T, j *Judge, q *harness.Request) *harness.Report {
	t.Helper()
	b, r, err := j.Compile(t.Context(), q)
	if err != nil {
		t.Fatalf("compile %s: %v", q.Candidate.Structure.Name, err)
	}
	if b == nil {
		return r
	}
	r, err = j.Benchmark(t.Context(), q, b)
	if err != nil {
		t.Fatalf("benchmark %s: %v", q.Candidate.Structure.Name, err)
	}
	return r
}
