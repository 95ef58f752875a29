package verifytest

import (
	"context"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Text is a task that adds two vectors: a + b = c.
const Text = `
task_name: add
description: Elementwise sum.
problem_shape: {n: 4096, dtype: float32}
tensors:
  a: {shape: [n], dtype: float32, role: in}
  b: {shape: [n], dtype: float32, role: in}
  c: {shape: [n], dtype: float32, role: out}
reference: a + b
sizes: [{n: 1000}, {n: 3000}, {n: 2000}]
vary: {n: [1, 2500]}
eval: {atol: 1e-8, rtol: 1e-6}
work: {flops: "n", bytes: "12*n"}
default_launch: {kernel: add, args: [a, b, c, n]}
targets: {cpu: {arch: x86-64-v3}}
`

// Task loads Text, or another text.
func Task(t testing.TB, text string) *harness.Task {
	t.Helper()
	tk, err := task.Parse("add.yaml", text, &task.Host{March: "x86-64-v3"})
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// Candidate is a structure without parameters for the task's default launch.
func Candidate(t testing.TB, tk *harness.Task) *harness.Candidate {
	t.Helper()
	s, err := task.ParseStructure("add.c", "void add(const float *a, const float *b, float *c, int n) {}", tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Pool makes sets whose expected values are a + b.
func Pool() *verify.Pool {
	return verify.NewPool(func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		out := make([]float64, len(in["a"]))
		for i := range out {
			out[i] = in["a"][i] + in["b"][i]
		}
		return map[string][]float64{"c": out}, nil
	}, 64<<20)
}

// Add is the honest kernel.
func Add(c *Call) {
	for i := range c.Elements[2] {
		c.Set(2, i, c.Get(0, i)+c.Get(1, i))
	}
}
