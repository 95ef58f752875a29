package hip

import (
	"fmt"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/codeobject"
	"ridgepoint/harness/toolchain/cuda"
)

// LimitsOf returns what every device of an arch allows a launch (AMD, Instinct MI200 and MI300 instruction set guides, and
// hipDeviceProp_t there): 1024 threads a block, 64 KB of local data share, 512 vector registers a lane of a wave of 64.
func LimitsOf(arch string) (*device.Limits, error) {
	if !strings.HasPrefix(arch, "gfx") {
		return nil, fmt.Errorf("the limits of arch %q are not known; known: gfx9 to gfx12", arch)
	}
	l := &device.Limits{WarpSize: 64, ThreadsPerBlock: 1024, BlockDim: [3]int{1024, 1024, 1024}, GridDim: [3]int{1<<31 - 1, 65535, 65535},
		SharedPerBlock: 64 << 10, SharedOptIn: 64 << 10, SharedPerSM: 64 << 10, RegistersPerBlock: 64 << 10, RegistersPerSM: 128 << 10, ThreadsPerSM: 2048, BlocksPerSM: 32}
	if strings.HasPrefix(arch, "gfx1") {
		l.WarpSize, l.SharedPerSM = 32, 128<<10
	}
	return l, nil
}

// Preflight holds a compiled candidate against a device's limits at every scored size, before a device is taken. It returns ""
// when every launch fits, else why one would be refused. A nil limits stands for the candidate's arch.
func Preflight(t *harness.Task, c *harness.Candidate, image []byte, limits *device.Limits) (reason string, err error) {
	if limits == nil {
		if limits, err = LimitsOf(c.Options.Arch); err != nil {
			return "", err
		}
	}
	found, err := codeobject.Parse(image)
	if err != nil {
		return "", err
	}
	kernels := map[string]*codeobject.Kernel{}
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
				return cuda.NoKernel(l.Kernel).Reason, nil
			}
			if why := refused(k, limits, cuda.PlanOf(l), cuda.ArgumentBytes(l)); why != "" {
				return fmt.Sprintf("size %s: kernel %s: %s", size, l.Kernel, why), nil
			}
		}
	}
	return "", nil
}

// refused says why a device would refuse one launch; "" when it fits.
func refused(k *codeobject.Kernel, limits *device.Limits, plan *device.Plan, arguments []int) string {
	threads, shared := plan.Threads(), plan.SharedBytes+k.StaticSharedBytes
	switch {
	case threads > limits.ThreadsPerBlock:
		return fmt.Sprintf("a block of %d threads; the device allows %d", threads, limits.ThreadsPerBlock)
	case k.ThreadsPerBlock > 0 && threads > k.ThreadsPerBlock:
		return fmt.Sprintf("a block of %d threads; it was compiled for %d (__launch_bounds__)", threads, k.ThreadsPerBlock)
	case shared > limits.SharedOptIn:
		return fmt.Sprintf("%d bytes of shared memory a block (%d static); the device allows %d", shared, k.StaticSharedBytes, limits.SharedOptIn)
	case plan.Clustered():
		return "thread block clusters, which HIP has not"
	case len(arguments) != len(k.ArgumentSizes):
		return fmt.Sprintf("the launch has %d arguments and the kernel %d parameters", len(arguments), len(k.ArgumentSizes))
	}
	for i, n := range arguments {
		if n != k.ArgumentSizes[i] {
			return fmt.Sprintf("argument %d has %d bytes and parameter %d has %d bytes", i+1, n, i+1, k.ArgumentSizes[i])
		}
	}
	for i := range 3 {
		if plan.Grid[i] > limits.GridDim[i] || plan.Block[i] > limits.BlockDim[i] {
			return fmt.Sprintf("a grid of %v blocks of %v threads; the device allows %v of %v", plan.Grid, plan.Block, limits.GridDim, limits.BlockDim)
		}
	}
	return ""
}
