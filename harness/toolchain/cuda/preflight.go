package cuda

import (
	"errors"
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cubin"
)

// Preflight holds a compiled candidate against a device's limits at every scored size, before a device is taken. It returns ""
// when every launch fits, else why one would be refused. A nil limits stands for the candidate's arch.
func Preflight(t *harness.Task, c *harness.Candidate, image []byte, limits *device.Limits) (reason string, err error) {
	if c.Options.Arch == device.Emulated {
		return "", nil // the emulator's modules are not cubins; its driver checks each launch
	}
	if limits == nil {
		if limits, err = cubin.LimitsOf(c.Options.Arch); err != nil {
			return "", err
		}
	}
	found, err := cubin.Parse(image)
	if err != nil {
		return "", err
	}
	kernels := map[string]*cubin.Kernel{}
	for i := range found {
		kernels[found[i].Name] = &found[i]
	}
	for _, size := range t.ScoredSizes(c.Target) {
		plan, err := task.Plan(t, c.Structure, c.Configuration, size)
		if err != nil {
			return fmt.Sprintf("size %s: %v", size, err), nil
		}
		for i := range plan.Launches {
			l := &plan.Launches[i]
			k := kernels[l.Kernel]
			if k == nil {
				return NoKernel(l.Kernel).Reason, nil
			}
			err := cubin.Check(k, limits, PlanOf(l), ArgumentBytes(l))
			var r *cubin.Refusal
			if errors.As(err, &r) {
				return fmt.Sprintf("size %s: %v", size, r), nil
			}
		}
	}
	return "", nil
}

// PlanOf returns a launch's dimensions as the driver takes them.
func PlanOf(l *task.Launch) *device.Plan {
	p := &device.Plan{SharedBytes: int(l.SharedBytes), Cooperative: l.Cooperative}
	for i := range 3 {
		p.Grid[i], p.Block[i], p.Cluster[i] = int(l.Grid[i]), int(l.Block[i]), int(l.Cluster[i])
	}
	return p
}

// ArgumentBytes returns the size of each argument of a launch.
func ArgumentBytes(l *task.Launch) []int {
	const pointer, tensorMap = 8, 128
	out := make([]int, 0, len(l.Args))
	for _, a := range l.Args {
		switch a.Kind {
		case task.ArgTensorMap:
			out = append(out, tensorMap)
		case task.ArgInt, task.ArgScalar:
			out = append(out, a.DType.SizeBytes())
		default:
			out = append(out, pointer)
		}
	}
	return out
}
