package task_test

import (
	"testing"
	"testing/fstest"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// everything is the task file of the design page with every key that it adds, and those that this package adds to it.
const everything = sevenLines + `
tensors:                      # default: input and output
  input:  {shape: [rows, cols], dtype: float32, role: in,  init: normal, strides: [cols, 1], alignment: 64}
  output: {shape: [rows, cols], dtype: float32, role: out}
scalars: {alpha: 1.5, count: {value: 3, dtype: int32}}
sizes: [{rows: 128, cols: 128}, {rows: 4096, cols: 4096}]
vary:  {rows: [4096, 16384], cols: [256, 1024]}
work:  {flops: "5*rows*cols", bytes: "8*rows*cols"}
rules: {forbid: [cublas, "wmma::"], max_size_regression: 0.30, size_branching: allow, writable_globals: forbid}
targets:
  cuda: {arch: sm_90, baseline: naive.cu, std: c++17, flags: [--restrict], include_dirs: [headers], search_flags: {level: [-O2, -O3]}, fast_math: search}
  cpu: {arch: native, baseline: naive.c, sizes: [{rows: 64, cols: 64}], flags: [-funroll-loops]}
reward: {kind: mean_std_fail, std_weight: 0.1, fail_weight: 0.05, per: ratio_to_baseline}
default_launch: {kernel: softmax, grid: [rows], block: [256], args: [input, output, rows:int64, cols]}
structures: structures/*.cu
`

func TestEveryKey(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"night/task.yaml":           {Data: []byte(everything)},
		"night/naive.cu":            {Data: []byte("extern \"C\" __global__ void softmax(const float* in, float* out, long long rows, int cols) {}\n")},
		"night/naive.c":             {Data: []byte("void softmax(const float *in, float *out, long long rows, int cols) {}\n")},
		"night/headers/a.cuh":       {Data: []byte("#pragma once\n")},
		"night/structures/rows.cu":  {Data: []byte(rowsStructure)},
		"night/structures/notes.md": {Data: []byte("no structure\n")},
	}
	l, err := task.LoadFS(fsys, "night/task.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tk := l.Task
	cuda, ok := tk.Target(harness.TargetCUDA)
	if !ok || cuda.Arch != "sm_90" || cuda.MaxRegisters != 128 || cuda.FastMath != harness.FastMathSearch || len(cuda.IncludeHash) != 64 || cuda.Baseline.Name != "naive.cu" {
		t.Errorf("cuda: %+v: compile's keys are the defaults of its target", cuda)
	}
	if got := tk.ScoredSizes(harness.TargetCPU); len(got) != 1 || got[0].String() != "rows=64,cols=64" {
		t.Errorf("cpu sizes: %v", got)
	}
	if tk.Scalars[1].DType != harness.Int32 || tk.Tensors[0].AlignmentBytes != 64 || tk.Vary.Ranges[1].High != 1024 || tk.Rules.WritableGlobals != "forbid" {
		t.Errorf("task: %+v", tk)
	}
	structures, err := l.Structures(harness.TargetCUDA)
	if err != nil || len(structures) != 1 || structures[0].Name != "rows" || !structures[0].Shipped {
		t.Errorf("structures: %v, %v", structures, err)
	}
	for _, target := range []harness.Target{harness.TargetCUDA, harness.TargetCPU} {
		base, err := task.Baseline(tk, target)
		if err != nil {
			t.Fatal(err)
		}
		c, err := task.NewCandidate(tk, base, nil)
		if err != nil {
			t.Fatal(err)
		}
		if target == harness.TargetCPU && (c.Structure.Launches[0].Grid != nil || c.Options.MaxRegisters != 0) {
			t.Errorf("cpu candidate: %+v", c)
		}
	}
	before := cuda.IncludeHash
	fsys["night/headers/a.cuh"] = &fstest.MapFile{Data: []byte("#pragma once\n\n")}
	if l, err = task.LoadFS(fsys, "night/task.yaml"); err != nil {
		t.Fatal(err)
	}
	if after, _ := l.Task.Target(harness.TargetCUDA); after.IncludeHash == before || l.Task.Digest == tk.Digest {
		t.Error("a changed header changes neither hash nor digest")
	}
}

// The structure of the design page, its body elided as there.
const designStructure = `/* ridgepoint
direction: warp-per-row
launch:
  - kernel: softmax_rows
    grid:  [ceil_div(rows, WARPS)]
    block: [32, WARPS]
    shared_bytes: 0
    args:  [input, output, rows, cols]
workspace: {partial: {shape: [rows, 8], dtype: float32, init: none}}   # scratch; init: zero is a memset inside the timed region, none is poisoned
requires: {toolkit: ">=12.0"}                                          # optional
params:
  WARPS: {values: [1, 2, 4, 8, 16]}
  VEC:   {values: [1, 2, 4]}
constraints: ["WARPS * 32 <= 1024"]
default: {WARPS: 4, VEC: 4}
*/
extern "C" __global__ void softmax_rows(const float* in, float* out, int rows, int cols) { ... }
`

func TestDesignStructure(t *testing.T) {
	t.Parallel()
	tk, err := task.Parse("task.yaml", sevenLines, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.ParseStructure("rows.cu", designStructure, tk, harness.TargetCUDA)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.Plan(tk, s, c.Configuration, tk.Sizes[0])
	if err != nil || p.Launches[0].Grid[0] != 2048 || p.Launches[0].Threads() != 128 || p.Workspace[0].Bytes() != 8192*8*4 {
		t.Errorf("plan %+v, %v", p, err)
	}
	if task.Macros(s, c.Configuration)[1] != "VEC=4" {
		t.Errorf("macros %v", task.Macros(s, c.Configuration))
	}
}

// Dims are int32 where every tensor has at most 2^31-1 elements, and refused beyond unless they are widened.
func TestWideDims(t *testing.T) {
	t.Parallel()
	tk, err := task.Parse("task.yaml", sevenLines, nil)
	if err != nil {
		t.Fatal(err)
	}
	large := harness.Size{{Name: "rows", Value: 1 << 16}, {Name: "cols", Value: 1 << 15}}
	for args, wrong := range map[string]bool{"rows, cols": true, "rows:int64, cols": true, "rows:int64, cols:int64": false} {
		s, err := task.ParseStructure("k.cu", "/* ridgepoint\nlaunch: {kernel: k, grid: [1], block: [32], args: [input, output, "+args+"]}\n*/\nk", tk, harness.TargetCUDA)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := task.Plan(tk, s, nil, large); (err != nil) != wrong {
			t.Errorf("%s: %v, want refused %v", args, err, wrong)
		}
	}
}
