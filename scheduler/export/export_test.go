package export_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/reference"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/export"
)

// winner makes an export of the first structure of a shipped task, at its smallest size, as if it had won.
func winner(t *testing.T, name string, target harness.Target) *export.Winner {
	t.Helper()
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	tk := *loaded.Task
	sizes := tk.ScoredSizes(target)
	tk.Targets = slices.Clone(tk.Targets)
	for i := range tk.Targets {
		tk.Targets[i].Sizes = sizes[:1]
	}
	structures, err := loaded.Structures(target)
	if err != nil || len(structures) == 0 {
		t.Fatalf("no structures: %v", err)
	}
	c, err := task.NewCandidate(&tk, structures[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := task.Baseline(&tk, target)
	if err != nil {
		t.Fatal(err)
	}
	base, err := task.NewCandidate(&tk, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &export.Winner{Campaign: &scheduler.Campaign{ID: "test", Task: &tk, Target: target, Baseline: base, Seed: 5}, Candidate: c,
		Result: &scheduler.Winner{Speedup: 2, ReplayedSpeedup: 2}, Command: []string{"gcc", "-O3", "-std=gnu17", "-march=native", "-fopenmp"}}
}

func write(t *testing.T, files []export.File) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// drive compiles and runs an exported driver.
func drive(t *testing.T, dir string) (string, error) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "cc", "-O2", "-std=gnu17", "-march=native", "-fopenmp", "-Wall", "-Werror=implicit-function-declaration", "driver.c", "winner_launch.c", "baseline_launch.c", "-lm", "-o", "driver")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), "./driver")
	run.Dir = dir
	out, err := run.CombinedOutput()
	return string(out), err
}

func TestExportedDriversCheckAndTime(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler on PATH: install one (Debian: apt-get install gcc libc6-dev)")
	}
	for _, name := range tasks.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := winner(t, name, harness.TargetCPU)
			files, err := export.Files(t.Context(), w, reference.NewOracle(nil).Expected)
			if err != nil {
				t.Fatal(err)
			}
			dir := write(t, files)
			out, err := drive(t, dir)
			if err != nil || !strings.Contains(out, "PASSED") {
				t.Fatalf("driver: %v\n%s", err, out)
			}
		})
	}
}

// TestExportedDriverSeesWrongOutputs breaks the exported kernel and expects the driver to say so.
func TestExportedDriverSeesWrongOutputs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler on PATH: install one (Debian: apt-get install gcc libc6-dev)")
	}
	w := winner(t, "vector_add", harness.TargetCPU)
	files, err := export.Files(t.Context(), w, reference.NewOracle(nil).Expected)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		if f.Name == "data/0_output.expected" || strings.HasPrefix(f.Name, "data/0_") && strings.HasSuffix(f.Name, ".expected") {
			files[i].Data = slices.Clone(f.Data)
			files[i].Data[8*17+6] ^= 0x10 // one element of the expectation
		}
	}
	out, err := drive(t, write(t, files))
	if err == nil || !strings.Contains(out, "WRONG") || strings.Contains(out, "PASSED") {
		t.Fatalf("one wrong element went unseen: %v\n%s", err, out)
	}
}

func TestExportHoldsPlanAndParameters(t *testing.T) {
	t.Parallel()
	w := winner(t, "softmax_2d", harness.TargetCUDA)
	files, err := export.Files(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, f := range files {
		byName[f.Name] = string(f.Data)
	}
	for _, m := range task.Macros(w.Candidate.Structure, w.Candidate.Configuration) {
		if want := "#define " + strings.Replace(m, "=", " ", 1); !strings.Contains(byName["winner.cu"], want) {
			t.Errorf("winner.cu does not hold %q", want)
		}
	}
	var plan struct {
		Candidate string
		Sizes     []json.RawMessage
	}
	if err := json.Unmarshal([]byte(byName["plan.json"]), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Candidate != w.Candidate.ID() || len(plan.Sizes) != 1 {
		t.Errorf("plan.json: %+v", plan)
	}
	if !strings.Contains(byName["winner.cu"], "Launch plan") || !strings.Contains(byName["driver.cu"], "cudaEventRecord") || byName["winner_launch.cu"] == "" {
		t.Error("the launch plan, the CUDA driver or its launches are missing")
	}
}
