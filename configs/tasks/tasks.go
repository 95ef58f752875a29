// Package tasks embeds the shipped tasks: a folder each, with the task file, the textbook baselines in C and CUDA and the
// parameterised structures; beside them lies the torch script that serves as external baseline. It holds files, never
// knowledge of their form: harness/task reads them.
package tasks

import "embed"

// FS holds torch_baseline.py, the external baseline of every task, and one folder a task: NAME/task.yaml, NAME/naive.c,
// NAME/naive.cu, NAME/structures/cpu/*.c, NAME/structures/cuda/*.cu.
//
//go:embed torch_baseline.py */task.yaml */naive.c */naive.cu */structures
var FS embed.FS

// Names returns the names of the shipped tasks, sorted. Each is a folder of FS.
func Names() []string {
	return []string{"conv2d_3x3", "gemm_f32", "nbody", "reduce_sum", "softmax_2d", "transpose", "vector_add"}
}
