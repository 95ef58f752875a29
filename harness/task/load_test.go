package task_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/configs/expr"
	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

const sevenLines = `task_name: softmax_2d
description: Row-wise softmax on 2D tensor.
problem_shape: {rows: 8192, cols: 512, dtype: float32}
reference: torch.softmax(input, dim=-1)
compile: {target: cuda, arch: sm_86, maxrregcount: 128, fast_math: false}
eval: {atol: 1e-4, rtol: 1e-5, warmup_iters: 10, timed_iters: 50, metric: gflops}
agent: {max_iterations: 8, temperature: 0.2, feedback_schema: structured_v1}
`

func TestSevenLines(t *testing.T) {
	t.Parallel()
	got, err := task.Parse("task.yaml", sevenLines, nil)
	if err != nil {
		t.Fatal(err)
	}
	size := harness.Size{{Name: "rows", Value: 8192}, {Name: "cols", Value: 512}}
	want := &harness.Task{
		Name: "softmax_2d", Description: "Row-wise softmax on 2D tensor.", Dims: []string{"rows", "cols"}, Problem: size, Sizes: []harness.Size{size},
		Tensors: []harness.Tensor{
			{Name: "input", Shape: []string{"rows", "cols"}, DType: harness.Float32, Role: harness.RoleIn, Init: "normal", AlignmentBytes: 256},
			{Name: "output", Shape: []string{"rows", "cols"}, DType: harness.Float32, Role: harness.RoleOut, AlignmentBytes: 256},
		},
		Reference: harness.Reference{Expr: "torch.softmax(input, dim=-1)"},
		Eval:      harness.Eval{ATol: 1e-4, RTol: 1e-5, WarmupIters: 10, TimedIters: 50, Metric: "gflops", Protocol: harness.Protocol{Statistic: "median"}},
		Rules:     harness.Rules{MaxSizeRegression: 0.30},
		Agent:     harness.Agent{MaxIterations: 8, Temperature: 0.2, FeedbackSchema: "structured_v1"},
		Reward:    harness.Reward{Kind: "mean_std_fail", StdWeight: 0.1, FailWeight: 0.05, Per: "ratio_to_baseline"},
		Targets:   []harness.TargetSpec{{Target: harness.TargetCUDA, Arch: "sm_86", MaxRegisters: 128}},
		File:      "task.yaml", Digest: got.Digest,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	again, err := task.Parse("elsewhere.yaml", sevenLines, nil)
	if err != nil || again.Digest != got.Digest || len(got.Digest) != 64 {
		t.Errorf("digest %q, elsewhere %q (%v): want the same", got.Digest, again.Digest, err)
	}
	other, err := task.Parse("task.yaml", strings.Replace(sevenLines, "1e-4", "1e-3", 1), nil)
	if err != nil || other.Digest == got.Digest {
		t.Errorf("another tolerance has the same digest (%v)", err)
	}
}

func TestShippedTasks(t *testing.T) {
	t.Parallel()
	l := task.Loader{Shipped: tasks.FS}
	names := l.Names()
	if len(names) < 7 {
		t.Fatalf("shipped tasks: %v, want at least 7", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := l.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			fromDisk, err := task.Load(filepath.Join("..", "..", "configs", "tasks", name, "task.yaml"))
			if err != nil || fromDisk.Digest != loaded.Task.Digest {
				t.Errorf("from disk: digest %v, embedded %v, err %v", fromDisk, loaded.Task.Digest, err)
			}
			for _, target := range []harness.Target{harness.TargetCPU, harness.TargetCUDA} {
				checkTarget(t, loaded, target)
			}
		})
	}
}

func checkTarget(t *testing.T, loaded *task.Loaded, target harness.Target) {
	t.Helper()
	base, err := task.Baseline(loaded.Task, target)
	if err != nil {
		t.Fatal(err)
	}
	structures, err := loaded.Structures(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(structures, base) {
		c, err := task.NewCandidate(loaded.Task, s, nil)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if c.ID() == "" || c.Options.Arch == "" || c.Options.Arch == "native" {
			t.Errorf("%s: id %q, arch %q", s.Name, c.ID(), c.Options.Arch)
		}
	}
}

const rowsStructure = `// a comment first
/* ridgepoint
direction: warp-per-row
launch:
  - kernel: softmax_rows
    grid:  [ceil_div(rows, WARPS)]
    block: [32, WARPS]
    shared_bytes: 0
    args:  [input, output, rows, cols:int64]
workspace: {partial: {shape: [rows, 8], dtype: float32, init: none}}
requires: {toolkit: ">=12.0"}
params:
  WARPS: {values: [1, 2, 4, 8, 16]}
  VEC:   [1, 2, 4]
  FAST:  {type: bool, when: VEC > 1}
  UNROLL: {min: 1, max: 8, log: true}
constraints: ["WARPS * 32 <= 1024", "VEC <= cols"]
default: {WARPS: 4, VEC: 4}
*/
extern "C" __global__ void softmax_rows(const float* in, float* out, int rows, long long cols) { }
`

func TestStructure(t *testing.T) {
	t.Parallel()
	tk, err := task.Parse("task.yaml", strings.Replace(sevenLines, "maxrregcount: 128, ", "", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.ParseStructure("dir/rows.cu", rowsStructure, tk, harness.TargetCUDA)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "rows" || s.Direction != "warp-per-row" || len(s.Params) != 4 || s.Launches[0].Grid[0] != "ceil_div(rows, WARPS)" {
		t.Errorf("structure: %+v", s)
	}
	c, err := task.NewCandidate(tk, s, harness.Configuration{"WARPS": expr.Int(8), "VEC": expr.Int(1), "FAST": expr.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	want := harness.Configuration{"WARPS": expr.Int(8), "VEC": expr.Int(1), "FAST": expr.Bool(false), "UNROLL": expr.Int(1)}
	if d := cmp.Diff(want, c.Configuration, cmp.Comparer(expr.Value.Equal)); d != "" {
		t.Errorf("configuration (FAST is off while VEC is 1): %s", d)
	}
	if d := cmp.Diff([]string{"WARPS=8", "VEC=1", "FAST=0", "UNROLL=1"}, task.Macros(s, c.Configuration)); d != "" {
		t.Error(d)
	}
	if c.Options.MaxRegisters != 128 {
		t.Errorf("maxrregcount %d, want min(128, 65536/256)", c.Options.MaxRegisters)
	}
	p, err := task.Plan(tk, s, c.Configuration, harness.Size{{Name: "rows", Value: 100}, {Name: "cols", Value: 7}})
	if err != nil {
		t.Fatal(err)
	}
	l := p.Launches[0]
	if l.Grid != [3]int64{13, 1, 1} || l.Block != [3]int64{32, 8, 1} || l.Args[3].DType != harness.Int64 || l.Args[3].Int != 7 {
		t.Errorf("launch: %+v", l)
	}
	if d := cmp.Diff([]int64{100, 8}, p.Workspace[0].Shape); d != "" {
		t.Error(d)
	}
}

func TestNative(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ arch, file, march, feature string }{
		{"amd64", "flags\t: " + v3flags + " aes sha_ni\n", "x86-64-v3", "sha"},
		{"amd64", "flags\t: " + v3flags + " avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni\n", "x86-64-v4", "avx512vnni"},
		{"amd64", "flags : fpu sse2 avx\n", "x86-64", "avx"},
		{"arm64", "Features\t: fp asimd atomics asimdrdm dcpop asimddp\n", "armv8.2-a", "dotprod"},
	} {
		h, err := task.ParseHost(c.arch, []byte(c.file))
		if err != nil || h.March != c.march || !strings.Contains(strings.Join(h.Features, " "), c.feature) {
			t.Errorf("%s: %+v (%v), want %s with %s", c.file, h, err, c.march, c.feature)
		}
	}
	if _, err := task.ParseHost("amd64", nil); err == nil {
		t.Error("an empty cpuinfo resolves")
	}
	cpu := strings.Replace(sevenLines, "{target: cuda, arch: sm_86, maxrregcount: 128, fast_math: false}", "{target: cpu, arch: native}", 1)
	tk, err := task.Parse("task.yaml", cpu, &task.Host{March: "x86-64-v3", Features: []string{"aes"}})
	if err != nil || tk.Targets[0].Arch != "x86-64-v3" || tk.Targets[0].Features[0] != "aes" {
		t.Errorf("native: %+v, %v", tk, err)
	}
}

const v3flags = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"

func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../gpu/testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	for _, f := range files {
		if _, err := task.Load(f); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
}
