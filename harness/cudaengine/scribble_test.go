package cudaengine_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ridgepoint/harness/verify"
)

// leftover adds, but for the first element, which is what shared memory holds before anything was written to it.
const leftover = `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    __shared__ float left;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = i == 0 ? left : a[i] + b[i];
    if (i == n - 1) left = a[i];  // what is never written, a compiler may take for zero
}`

// TestScribbleReachesTheFirstWord reads the first word of static shared memory before anything was written to it: it is one of
// rp_scribble's, whatever the engine's own kernels keep there.
func TestScribbleReachesTheFirstWord(t *testing.T) {
	b := bind(t, setup(t), leftover, 1003)
	for seed := range uint64(3) {
		_, found, err := b.shoot(seed)
		var stop *verify.Stop
		if !errors.As(err, &stop) || len(found) != 1 {
			t.Fatalf("seed %d: %v, %+v: want the first element to be wrong", seed, err, found)
		}
		if got := math.Abs(found[0].Got); found[0].First != 0 || got < 1 || got >= 2 {
			t.Errorf("seed %d: shared memory held %v, want a word of rp_scribble's, 1 to 2: %+v", seed, found[0].Got, found[0])
		}
	}
}

// TestScribbleInBursts wants the same of every launch of a burst that is compared whole, round all places.
func TestScribbleInBursts(t *testing.T) {
	b := bind(t, setup(t), leftover, 1003)
	shots, err := burst(t, b, slices.Repeat([]verify.BurstLaunch{{Whole: true}}, 9)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shots {
		if c := s.Comparisons[0]; c.Mismatches != 1 || c.First != 0 || !(math.Abs(c.Got) >= 1 && math.Abs(c.Got) < 2) {
			t.Errorf("launch %d: %+v, want the first element to be a word of rp_scribble's", i, c)
		}
	}
}
