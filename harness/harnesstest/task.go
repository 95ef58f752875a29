package harnesstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// Task returns a task on the cpu target with the given number of scored sizes (n = 1024, 2048, ...): an elementwise copy, with a
// baseline. Nothing of it is ever compiled by a Scripted harness.
func Task(sizes int) *harness.Task {
	t := &harness.Task{Name: "scripted", Description: "A task that only a scripted harness can judge.", Dims: []string{"n"}, Problem: harness.Size{{Name: "n", Value: 1024}},
		Tensors: []harness.Tensor{
			{Name: "input", Shape: []string{"n"}, DType: harness.Float32, Role: harness.RoleIn, Init: "normal", AlignmentBytes: 256},
			{Name: "output", Shape: []string{"n"}, DType: harness.Float32, Role: harness.RoleOut, AlignmentBytes: 256}},
		Reference: harness.Reference{Expr: "input"},
		Eval:      harness.Eval{ATol: 1e-6, RTol: 1e-6, WarmupIters: 10, TimedIters: 50, Metric: "time"},
		Rules:     harness.Rules{MaxSizeRegression: 0.30},
		Agent:     harness.Agent{MaxIterations: 8, Temperature: 0.2, FeedbackSchema: "structured_v1"},
		Reward:    harness.Reward{Kind: "mean_std_fail", StdWeight: 0.1, FailWeight: 0.05, Per: "ratio_to_baseline"},
		Targets:   []harness.TargetSpec{{Target: harness.TargetCPU, Arch: "x86-64", Baseline: harness.Source{Name: "naive.c", Text: "void copy(const float* input, float* output, int n) {}\n"}}},
		Digest:    digest(fmt.Sprintf("scripted task of %d sizes", sizes))}
	for i := range sizes {
		t.Sizes = append(t.Sizes, harness.Size{{Name: "n", Value: 1024 << min(i, 16)}})
	}
	return t
}

// Baseline returns the candidate of the task's textbook kernel.
func Baseline() *harness.Candidate {
	s := Structure("naive")
	return &harness.Candidate{Structure: s, Configuration: harness.Configuration{}, Target: harness.TargetCPU, Options: harness.BuildOptions{Arch: "x86-64"}}
}

// Structure returns a structure of the task with int parameters, each over the given values; the first value is the default.
func Structure(name string, params ...harness.Param) *harness.Structure {
	source := fmt.Sprintf("/* %s %v */ void copy(const float* input, float* output, int n) {}\n", name, params)
	s := &harness.Structure{Name: name, Direction: name, Target: harness.TargetCPU, Source: source, Digest: digest(source),
		Launches: []harness.Launch{{Kernel: "copy", Args: []string{"input", "output", "n"}}}, Params: params}
	if len(params) > 0 {
		s.Default = map[string]expr.Value{}
	}
	for _, p := range params {
		s.Default[p.Name] = p.Values[0]
	}
	return s
}

// Ints declares an int parameter over low, low+1, ... high.
func Ints(name string, low, high int64) harness.Param {
	p := harness.Param{Name: name, Type: "int"}
	for v := low; v <= high; v++ {
		p.Values = append(p.Values, expr.Int(v))
	}
	return p
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
