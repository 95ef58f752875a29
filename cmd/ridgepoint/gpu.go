package main

import (
	"runtime"

	"github.com/rs/zerolog"

	"ridgepoint/harness/gpu"
	"ridgepoint/harness/toolchain/cuda"
)

// gpuTarget judges candidates of the cuda target on this machine's first card, or on the emulated device. It looks for
// neither until a candidate asks.
func gpuTarget(env environment, reduced bool) *gpu.Target {
	return gpu.New(gpu.Config{
		Driver: env.getenv("RIDGEPOINT_CUDA_DRIVER"), RunDir: runFolder(), CacheDir: cacheFolder(env), ReducedSandbox: reduced, Version: buildVersion(),
		Compiler: cuda.Config{Use: env.getenv("RIDGEPOINT_CUDA_COMPILER"), Search: []string{env.getenv("CUDA_HOME"), env.getenv("VIRTUAL_ENV")}, Children: compileChildren()},
		Log:      zerolog.New(env.stderr).Level(zerolog.WarnLevel),
	})
}

// compileChildren leaves cores to the program itself and to references: a quarter of them compile.
func compileChildren() int { return min(max(runtime.NumCPU()/4, 1), 8) }
