package judge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cc"
)

// A report holds what a record needs: times with raw samples, the baseline's, the environment, where the time went.
func TestReportIsComplete(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	tk := loadTask(t, "vadd")
	q := request(t, tk, "honest_vectors.c", harness.Plan{Stage: harness.StageSearch, Seed: 7})
	q.Rivals = []harness.Rival{baseline(t, tk)}
	r := evaluate(t, j, q)
	if !r.Fault.Measured() || r.Runtime != harness.StatusPass || r.Numerical != harness.StatusPass || r.Compile != harness.StatusPass || r.Rules != harness.StatusPass {
		t.Fatalf("judged %s: %s", r.Fault, r.Reason)
	}
	for i, s := range r.Sizes {
		if !s.Size.Equal(tk.Sizes[i]) || s.MedianUS <= 0 || s.BaselineUS <= 0 || len(s.SamplesUS) < 3 || s.Warmups < 2 {
			t.Errorf("size %d: %+v", i, s)
		}
	}
	e := r.Environment
	if e.Device == "" || e.Cores == 0 || !strings.HasPrefix(e.Toolchain, "gcc ") && !strings.HasPrefix(e.Toolchain, "clang ") || e.Flush != "block" || e.Sandbox == "" || e.Ridgepoint != "test" {
		t.Errorf("environment %+v", e)
	}
	if r.Split.Total <= 0 || r.Split.Load <= 0 || r.Split.Verify <= 0 || r.Split.Measure <= 0 || r.Split.Device <= 0 || r.Build == nil || r.Build.Key == "" || r.Arch == "" || r.CandidateID == "" {
		t.Errorf("split %+v, build %+v", r.Split, r.Build)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back harness.Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &back); diff != "" {
		t.Errorf("the report does not survive JSON:\n%s", diff)
	}
}

// An A/A run pairs the baseline with itself, and confirmations hold every contestant in every round.
func TestContestOnTheCPU(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	tk := loadTask(t, "vadd")
	base := baseline(t, tk)
	q := &harness.Request{Task: tk, Candidate: base.Candidate, Rivals: []harness.Rival{base}, Plan: harness.Plan{Stage: harness.StageConfirm, Seed: 3, Rounds: 4}}
	r := evaluate(t, j, q)
	if r.Contest == nil || !cmp.Equal(r.Contest.Contestants, []string{"baseline", "candidate"}) || len(r.Contest.MedianUS) != 4 {
		t.Fatalf("A/A run: %s, contest %+v", r.Reason, r.Contest)
	}
	q = request(t, tk, "honest_vectors.c", harness.Plan{Stage: harness.StageConfirm, Seed: 4, Rounds: 2})
	q.Rivals = []harness.Rival{base, {Role: "incumbent", Candidate: request(t, tk, "honest_tiny.c", harness.Plan{}).Candidate}}
	r = evaluate(t, j, q)
	if r.Contest == nil || !cmp.Equal(r.Contest.Contestants, []string{"baseline", "incumbent", "candidate"}) {
		t.Fatalf("confirmation: %s, contest %+v", r.Reason, r.Contest)
	}
	for round, contestants := range r.Contest.MedianUS {
		for who, sizes := range contestants {
			for size, us := range sizes {
				if us <= 0 || len(sizes) != len(tk.Sizes) {
					t.Errorf("round %d, %s, size %d: %v us", round, r.Contest.Contestants[who], size, us)
				}
			}
		}
	}
	if len(r.Sizes) != len(tk.Sizes) || r.Sizes[0].BaselineUS <= 0 {
		t.Errorf("sizes %+v", r.Sizes)
	}
}

// A replay builds anew, draws all distributions with fresh seeds, and still passes what is right.
func TestReplay(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	tk := loadTask(t, "softmax_rows")
	first := evaluate(t, j, request(t, tk, "honest_online.c", harness.Plan{Stage: harness.StageSearch, Seed: 1}))
	again := evaluate(t, j, request(t, tk, "honest_online.c", harness.Plan{Stage: harness.StageSearch, Seed: 2}))
	replay := evaluate(t, j, request(t, tk, "honest_online.c", harness.Plan{Stage: harness.StageReplay, Seed: 99, FreshCache: true}))
	if first.Build.Cached || !again.Build.Cached || replay.Build.Cached || replay.Build.Artifact != first.Build.Artifact {
		t.Errorf("builds cached %v, %v, %v; want only the second", first.Build.Cached, again.Build.Cached, replay.Build.Cached)
	}
	if !replay.Fault.Measured() || replay.Errors.Compared <= first.Errors.Compared {
		t.Errorf("replay judged %s (%s), %d elements compared, %d in the search", replay.Fault, replay.Reason, replay.Errors.Compared, first.Errors.Compared)
	}
}

// A wrong baseline is nobody's verdict: it is an error that says so.
func TestWrongBaseline(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	tk := loadTask(t, "vadd")
	q := request(t, tk, "honest_vadd.c", harness.Plan{Stage: harness.StageSearch, Seed: 1})
	q.Rivals = []harness.Rival{{Role: "baseline", Candidate: request(t, tk, "tail_dropped.c", harness.Plan{}).Candidate}}
	b, _, err := j.Compile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var rival *RivalError
	if _, err := j.Benchmark(t.Context(), q, b); err == nil {
		q.Rivals[0].Candidate = request(t, tk, "stale_output.c", harness.Plan{}).Candidate // a tail may fit the scored sizes
		_, err = j.Benchmark(t.Context(), q, b)
		if !errors.As(err, &rival) || rival.Role != "baseline" {
			t.Errorf("a wrong baseline gives %v", err)
		}
	} else if !errors.As(err, &rival) || rival.Role != "baseline" {
		t.Errorf("a wrong baseline gives %v", err)
	}
}

// A deadline ends the evaluation as the candidate's timeout; a cancelled caller gets its own error.
func TestDeadline(t *testing.T) {
	j := newJudge(t, time.Minute)
	tk := loadTask(t, "vadd")
	q := request(t, tk, "hang.c", harness.Plan{Stage: harness.StageSearch, Seed: 1, Deadline: 700 * time.Millisecond})
	if r := evaluate(t, j, q); r.Fault != harness.FaultTimeout || !strings.Contains(r.Reason, "deadline") {
		t.Errorf("judged %s: %s", r.Fault, r.Reason)
	}
	q.Plan.Deadline = 0
	b, _, err := j.Compile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if _, err := j.Benchmark(ctx, q, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled caller gets %v", err)
	}
	if r := evaluate(t, j, request(t, tk, "honest_vadd.c", harness.Plan{Stage: harness.StageSearch, Seed: 1})); !r.Fault.Measured() {
		t.Errorf("the next candidate is judged %s: %s", r.Fault, r.Reason)
	}
}

// Builds travel: what one judge built, another runs.
func TestArtifactsTravel(t *testing.T) {
	j, other := newJudge(t, 5*time.Second), newJudge(t, 5*time.Second)
	tk := loadTask(t, "vadd")
	q := request(t, tk, "honest_vadd.c", harness.Plan{Stage: harness.StageSearch, Seed: 1})
	b, _, err := j.Compile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Benchmark(t.Context(), q, b); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a build that is not here gives %v", err)
	}
	data, err := j.Artifact(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Import(b, data[:len(data)-1]); err == nil {
		t.Error("a cut artifact was imported")
	}
	if err := other.Import(b, data); err != nil {
		t.Fatal(err)
	}
	if r, err := other.Benchmark(t.Context(), q, b); err != nil || !r.Fault.Measured() {
		t.Errorf("%v, %+v", err, r)
	}
}

// Many callers at once take turns and all get their verdict.
func TestConcurrentCallers(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	tk := loadTask(t, "vadd")
	var wg sync.WaitGroup
	for i, file := range []string{"honest_vadd.c", "stale_output.c", "honest_tiny.c", "segfault.c", "compile_error.c"} {
		q := request(t, tk, file, harness.Plan{Stage: harness.StageSearch, Seed: uint64(i)})
		want := []harness.Fault{harness.FaultNone, harness.FaultIncorrect, harness.FaultNone, harness.FaultCrash, harness.FaultCompile}[i]
		wg.Go(func() {
			b, r, err := j.Compile(t.Context(), q)
			if err == nil && b != nil {
				r, err = j.Benchmark(t.Context(), q, b)
			}
			if err != nil || r.Fault != want && !(want == harness.FaultNone && r.Fault.Measured()) {
				t.Errorf("%s: %v, %+v", file, err, r)
			}
		})
	}
	wg.Wait()
}

// A missing compiler is an error that names it, not a verdict.
func TestNoCompiler(t *testing.T) {
	t.Parallel()
	j, err := New(Config{CacheDir: t.TempDir(), RunDir: t.TempDir(), Compiler: "no-such-compiler"})
	if err != nil {
		t.Fatal(err)
	}
	q := request(t, loadTask(t, "vadd"), "honest_vadd.c", harness.Plan{Stage: harness.StageSearch})
	if _, _, err := j.Compile(t.Context(), q); !errors.Is(err, cc.ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a judge without folders was made")
	}
}

// A reference that is wrong is the task file's fault.
func TestWrongReference(t *testing.T) {
	j := newJudge(t, 5*time.Second)
	b, err := os.ReadFile(filepath.Join("testdata", "kernels", "vadd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "reference: a + b", "reference: torch.cat([a, b])", 1)
	dir := t.TempDir()
	for name, content := range map[string]string{"vadd.yaml": text, "honest_vadd.c": "void vadd(const float *a, const float *b, float *c, int n) {}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tk, err := task.Load(filepath.Join(dir, "vadd.yaml"))
	if err != nil {
		t.Skipf("the loader refuses it already: %v", err)
	}
	q := request(t, tk, "honest_vadd.c", harness.Plan{Stage: harness.StageSearch})
	built, _, err := j.Compile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *task.Error
	if _, err := j.Benchmark(t.Context(), q, built); !errors.As(err, &wrong) {
		t.Errorf("got %v, want an error of the task file", err)
	}
}
