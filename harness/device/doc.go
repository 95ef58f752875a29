// Package device talks to accelerator drivers without cgo: the CUDA driver API and NVML, and HIP behind the same types.
//
// A Driver is one opened library. Driver.Devices is the inventory; Driver.Open makes a Context, a goroutine locked to its
// OS thread that holds one device's primary context. Everything that needs a current context is a method of Session, and a
// Session exists only inside Context.Do:
//
//	drv, err := device.OpenCUDA("")            // libcuda.so.1, or a path
//	ctx, err := drv.Open(0)
//	err = ctx.Do(func(s *device.Session) error { p, err := s.Alloc(1 << 20); ... })
//
// A goroutine that called the driver from whatever thread it happened to run on would lose its context when the scheduler
// moves it (error 201), which is why there is no way to reach the driver outside Do. Every return code is checked and
// named (Error). The package knows nothing of kernels, tasks or timing plans; it must not decide what a failure means for
// a candidate, only say whether the context survived it (Error.Sticky).
package device
