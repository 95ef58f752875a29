package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// floorTask copies one element: what it takes is the launch.
const floorTask = `
task_name: launch_floor
problem_shape: {n: 1, dtype: float32}
reference: input
vary: none
eval: {rtol: 0, atol: 0}
rules: {size_branching: allow}
targets: {TARGET: {arch: ARCH}}
`

var floorSource = map[harness.Target]string{
	harness.TargetCPU:  "/* ridgepoint\nlaunch: {kernel: floor_copy, args: [input, output]}\n*/\nvoid floor_copy(const float *input, float *output) { output[0] = input[0]; }\n",
	harness.TargetCUDA: "/* ridgepoint\nlaunch: {kernel: floor_copy, grid: [1], block: [32], args: [input, output]}\n*/\nextern \"C\" __global__ void floor_copy(const float* input, float* output) { if (threadIdx.x == 0) output[0] = input[0]; }\n",
	harness.TargetHIP:  "/* ridgepoint\nlaunch: {kernel: floor_copy, grid: [1], block: [64], args: [input, output]}\n*/\nextern \"C\" __global__ void floor_copy(const float* input, float* output) { if (threadIdx.x == 0) output[0] = input[0]; }\n",
}

// launchShare is the share of a size's time that the launch may take on the cpu target before the size says nothing of a kernel.
// On GPUs launches weigh more and small sizes are part of boards: there it is a warning.
const launchShare = 0.5

// launchBound checks that no scored size takes the baseline little more than an empty launch does.
func (l *linter) launchBound(ctx context.Context, t harness.Target, baseline *harness.Report) error {
	floor, err := l.floor(ctx, t)
	if err != nil {
		return err
	}
	var bound []string
	for _, s := range baseline.Sizes {
		if least := quickest(s); floor > launchShare*least {
			bound = append(bound, fmt.Sprintf("%s (%.2f us)", s.Size, least))
		}
	}
	switch {
	case len(bound) == 0:
		l.reportTarget(t, Pass, "launches", "", "no size is launch-bound: an empty launch takes %.2f us", floor)
	case t == harness.TargetCPU:
		l.reportTarget(t, Fail, "launches", "score larger sizes", "an empty launch takes %.2f us, over half of the baseline's time at %s", floor, few(bound))
	default:
		l.reportTarget(t, Warn, "launches", "score larger sizes, or know that these measure the launch", "an empty launch takes %.2f us, over half of the baseline's time at %s", floor, few(bound))
	}
	return nil
}

// floor returns what a launch that copies one element takes, in microseconds, under the protocol of all others.
func (l *linter) floor(ctx context.Context, t harness.Target) (float64, error) {
	spec, _ := l.Task.Target(t) // the caller goes over the task's own targets
	tk, err := task.Parse("launch_floor", strings.NewReplacer("TARGET", t.String(), "ARCH", spec.Arch).Replace(floorTask), nil)
	if err != nil {
		return 0, fmt.Errorf("make the task of an empty launch: %w", err)
	}
	s, err := task.ParseStructure("floor_copy", floorSource[t], tk, t)
	if err != nil {
		return 0, fmt.Errorf("make the kernel of an empty launch: %w", err)
	}
	s.Shipped = true
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		return 0, err
	}
	c.Options.Features = spec.Features
	r, err := l.judge(ctx, tk, c, harness.StageSearch)
	if err != nil {
		return 0, err
	}
	if !r.Fault.Measured() || len(r.Sizes) == 0 {
		return 0, fmt.Errorf("the empty launch could not be measured: %s: %s", r.Fault, r.Reason)
	}
	return quickest(r.Sizes[0]), nil
}

// quickest is the least of a size's samples: what a busy machine adds to a launch of a microsecond is more than the launch.
func quickest(s harness.SizeTime) float64 {
	if len(s.SamplesUS) == 0 {
		return s.MedianUS
	}
	return slices.Min(s.SamplesUS)
}
