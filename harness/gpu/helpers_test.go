package gpu_test

import (
	"errors"
	"testing"

	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain/cubin"
	"ridgepoint/harness/toolchain/cuda"
)

// The engine's own kernels compile with the real compiler for the cards that it is meant for, none spills more than a little, and the
// one that spoils registers holds most of them: a compiler that saw through it would leave few.
func TestHelpersCompile(t *testing.T) {
	config := cuda.Config{Use: cuda.NVRTC, Dir: t.TempDir()}
	if sandbox.Probe().Level() != sandbox.LevelFull {
		config.Level = sandbox.LevelReduced
	}
	c, err := cuda.Find(t.Context(), config)
	if errors.Is(err, cuda.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, arch := range []string{"sm_80", "sm_90"} {
		image, err := c.Trusted(t.Context(), arch, cudaengine.HelperSource, cudaengine.HelperKernels)
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		kernels, err := cubin.Parse(image)
		if err != nil || len(kernels) != len(cudaengine.HelperKernels) {
			t.Fatalf("%s: %d kernels, %v; want %d", arch, len(kernels), err, len(cudaengine.HelperKernels))
		}
		for _, k := range kernels {
			scribble := k.Name == "rp_scribble"
			if k.FrameBytes > 256 && !scribble || k.FrameBytes > 1024 { // more than the driver sets aside at first
				t.Errorf("%s: %s has %d bytes of stack a thread", arch, k.Name, k.FrameBytes)
			}
			if scribble && (k.Registers < 160 || k.FrameBytes < 900) {
				t.Errorf("%s: rp_scribble holds %d registers and %d bytes of stack, want most of 255 and of 1024", arch, k.Registers, k.FrameBytes)
			}
			t.Logf("%s: %s: %d registers, %d bytes of stack", arch, k.Name, k.Registers, k.FrameBytes)
		}
	}
}
