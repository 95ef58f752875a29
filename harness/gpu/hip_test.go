package gpu_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/gpu"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/task"
)

// TestHIPTarget sends candidates of the hip target the whole way, over HIP's functions of the emulated driver: one that is
// right, and one each that leaves its tail unwritten, writes outside and dies.
func TestHIPTarget(t *testing.T) {
	cache := filepath.Join(os.TempDir(), "ridgepoint-test")
	if _, err := emulator.Install(t.Context(), cache); errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	target := gpu.New(gpu.Config{HIP: true, RunDir: t.TempDir(), CacheDir: cache, ReducedSandbox: true, Version: "test"})
	j, err := judge.New(judge.Config{CacheDir: cache, RunDir: t.TempDir(), OracleFunc: judge.Oracle(nil), Targets: []judge.Target{target}, ReducedSandbox: true, LaunchLimit: 3 * time.Second, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile("testdata/cases/vadd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hip := strings.NewReplacer("{cuda: {arch: sm_90", "{hip: {arch: emulated", ", {n: 4194304}", "", "n: [1, 3000000]", "n: [1, 300000]").Replace(string(text))
	if err := errors.Join(os.CopyFS(dir, os.DirFS("testdata/cases")), os.WriteFile(filepath.Join(dir, "hip.yaml"), []byte(hip), 0o600)); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(filepath.Join(dir, "hip.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]harness.Fault{"01_control_vadd_honest": harness.FaultNone, "15_tail_dropped": harness.FaultIncorrect, "27_oob_write": harness.FaultIncorrect, "30_sticky_fault": harness.FaultCrash} {
		source, err := os.ReadFile(filepath.Join("testdata/cases", name+".cu"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := task.ParseStructure("case", disguise(string(source)), tk, harness.TargetHIP)
		if err != nil {
			t.Fatal(err)
		}
		c, err := task.NewCandidate(tk, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		q := &harness.Request{Task: tk, Candidate: c, Plan: harness.Plan{Stage: harness.StageSearch, Seed: 1}}
		build, r, err := j.Compile(t.Context(), q)
		if err != nil || r != nil {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if r, err = j.Benchmark(t.Context(), q, build); err != nil {
			t.Fatal(err)
		}
		if r.Fault != want || r.Target != harness.TargetHIP || want == harness.FaultNone && !strings.HasPrefix(r.Environment.Driver, "HIP ") {
			t.Errorf("%s: %v (%s) by %q, want %v", name, r.Fault, r.Reason, r.Environment.Driver, want)
		}
	}
}
