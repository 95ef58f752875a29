package gpu_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/gpu"
	"ridgepoint/harness/judge"
)

// fakeNCU is a program that runs what it is told to profile and then prints what Nsight Compute said of the golden file's
// memory-bound kernel. It keeps its arguments in a file.
const fakeNCU = `#!/bin/sh
printf '%%s\n' "$@" > %[1]s/args
while [ "$1" != --launch-count ]; do shift; done
shift 2
"$@" || exit 1
grep -E '^"(ID"|")' %[2]s
grep '"memory_bound"' %[2]s
`

// TestProfileGoesIntoTheReport asks for a profile with the plan: the digest is in the report, its main diagnosis in the
// feedback; without ncu the fallback is, with one line that says why.
func TestProfileGoesIntoTheReport(t *testing.T) {
	golden, err := filepath.Abs("../profile/testdata/ncu_h200.csv")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(os.TempDir(), "ridgepoint-test")
	if _, err := emulator.Install(t.Context(), cache); errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	dir := t.TempDir()
	ncu := filepath.Join(dir, "ncu")
	if err := os.WriteFile(ncu, fmt.Appendf(nil, fakeNCU, dir, golden), 0o700); err != nil {
		t.Fatal(err)
	}
	source := caseOf(t, "01_control_vadd_honest")
	for _, c := range []struct{ name, ncu, source, code string }{{"counters", ncu, "ncu", "memory_bound"}, {"fallback", "", "fallback: ", ""}} {
		b := &bundle{arch: device.Emulated, target: gpu.New(gpu.Config{RunDir: t.TempDir(), CacheDir: cache, ReducedSandbox: true, NCU: c.ncu, Version: "test"})}
		b.judge, err = judge.New(judge.Config{CacheDir: cache, RunDir: t.TempDir(), OracleFunc: judge.Oracle(nil), Targets: []judge.Target{b.target}, ReducedSandbox: true, LaunchLimit: 3 * time.Second, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		tk := b.load(t, "vadd.yaml")
		q := b.request(t, tk, source, harness.Plan{Stage: harness.StageSearch, Seed: 1, Profile: true})
		r := b.judged(t, q)
		if err := b.judge.Close(); err != nil {
			t.Error(err)
		}
		if !r.Fault.Measured() || len(r.Profile) != 1 || !strings.HasPrefix(r.Profile[0].Source, c.source) {
			t.Fatalf("%s: %v (%s), profile %+v", c.name, r.Fault, r.Reason, r.Profile)
		}
		if c.code != "" && (len(r.Warnings) == 0 || r.Warnings[0].Code != c.code) {
			t.Errorf("%s: warnings %+v, want %s first", c.name, r.Warnings, c.code)
		}
		noted := strings.Count(strings.Join(r.Detail, "\n"), "Nsight Compute")
		if want := map[bool]int{true: 0, false: 1}[c.ncu != ""]; noted != want {
			t.Errorf("%s: %d lines of detail speak of the profiler, want %d: %q", c.name, noted, want, r.Detail)
		}
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil || !strings.Contains(string(args), "regex:^(vadd)$") || !strings.Contains(string(args), "--clock-control\nnone") {
		t.Errorf("ncu was told %q, %v", args, err)
	}
}
