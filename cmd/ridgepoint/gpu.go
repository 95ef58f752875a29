package main

import (
	"context"
	"runtime"

	"github.com/rs/zerolog"

	"ridgepoint/harness/gpu"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/toolchain/hip"
)

// gpuTarget judges candidates of the cuda target on this machine's first card, or on the emulated device. It looks for
// neither until a candidate asks.
func gpuTarget(env environment, reduced bool) *gpu.Target { return gpu.New(gpuConfig(env, reduced)) }

// cardTarget judges on one of this machine's cards.
func cardTarget(env environment, reduced bool, card int) *gpu.Target {
	c := gpuConfig(env, reduced)
	c.Device = card
	return gpu.New(c)
}

// hipTarget judges candidates of the hip target on this machine's first AMD device, or on the emulated one. It looks for
// neither until a candidate asks.
func hipTarget(env environment, reduced bool, card int) *gpu.Target {
	c := gpuConfig(env, reduced)
	c.HIP, c.Driver, c.Device = true, env.getenv("RIDGEPOINT_HIP_DRIVER"), card
	return gpu.New(c)
}

func gpuConfig(env environment, reduced bool) gpu.Config {
	pool, err := inputMemory(env)
	if err != nil {
		pool = 0 // newJudge, which every judge comes from, says what is wrong
	}
	return gpu.Config{
		PoolBytes: pool, Driver: env.getenv("RIDGEPOINT_CUDA_DRIVER"), RunDir: runFolder(env), CacheDir: cacheFolder(env), ReducedSandbox: reduced, Version: buildVersion(),
		Compiler: cuda.Config{Use: env.getenv("RIDGEPOINT_CUDA_COMPILER"), Library: env.getenv("RIDGEPOINT_NVRTC"), Search: []string{env.getenv("CUDA_HOME"), env.getenv("VIRTUAL_ENV")}, Children: compileChildren()},
		HIPTools: hip.Config{Use: env.getenv("RIDGEPOINT_HIP_COMPILER"), Search: []string{env.getenv("ROCM_PATH")}, Children: compileChildren()},
		Log:      zerolog.New(env.stderr).Level(zerolog.WarnLevel),
	}
}

// findCUDA says why there is no CUDA compiler on this machine, or nil.
func findCUDA(ctx context.Context, env environment) error {
	c, err := cuda.Find(ctx, gpuConfig(env, false).Compiler)
	if err == nil {
		c.Close()
	}
	return err
}

// findHIP says why there is no HIP compiler on this machine, or nil.
func findHIP(ctx context.Context, env environment) error {
	c, err := hip.Find(ctx, gpuConfig(env, false).HIPTools)
	if err == nil {
		c.Close()
	}
	return err
}

// compileChildren leaves half the cores to the program itself and to references.
func compileChildren() int { return min(max(runtime.NumCPU()/2, 1), 12) }
