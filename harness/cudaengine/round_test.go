package cudaengine_test

import (
	"slices"
	"testing"

	"ridgepoint/harness/verify"
)

// rounds is a kernel that knows where its buffers lay in earlier launches, and what it does as launch `launches`.
func rounds(body string) string {
	return `__device__ int launches;
__device__ float* outs[64];
__device__ const float* ins[64];
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = a[i] + b[i];
    ` + body + `
    c[i] = v;
    if (i == n - 1) { outs[launches] = c; ins[launches] = b; launches++; }  // one warp: no other reads the count after it was raised
}`
}

// TestLaunchesGoRound lets a kernel be wrong where its output lies in the place of one of the three launches before, or in another
// than that of the fourth. A launch behind the burst finds its buffers as ever.
func TestLaunchesGoRound(t *testing.T) {
	b := bind(t, setup(t), rounds(`for (int k = 1; k <= 4 && k <= launches && launches < 11; ++k) if ((outs[launches - k] == c) != (k == 4)) v += 1.f;`), 30)
	shots, err := burst(t, b, make([]verify.BurstLaunch, 11)...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range shots {
		if isWrong(b, &shots[i]) {
			t.Errorf("launch %d: %+v, want it over the buffers of the fourth before", i, shots[i].Comparisons)
		}
	}
	if _, found, err := b.shoot(3); err != nil || found[0].Mismatches != 0 {
		t.Errorf("after the burst: %+v, %v", found, err)
	}
}

// TestEveryPlaceIsWatched lets launch 6 do in the place of the launch before what none may do in its own: each is seen, or undone before
// anything could come of it.
func TestEveryPlaceIsWatched(t *testing.T) {
	for _, c := range []struct {
		name, body string
		wrong      []int // launches
	}{
		{"a red zone", "if (launches == 6 && i == 0) outs[5][n] = 1.f;", []int{9}},
		{"its own red zone", "if (launches == 6 && i == 0) c[n] = 1.f;", []int{6, 10}},
		{"an input", "if (launches == 6 && i == 0) const_cast<float*>(ins[5])[0] += 1.f;", nil},
		{"its own input", "if (launches == 6 && i == 0) const_cast<float*>(b)[0] += 1.f;", []int{6}},
		{"a result of the same inputs", "if (launches == 6) v = outs[5][i];", []int{6}},
		{"a result in advance", "if (launches == 6) outs[3][i] = v; if (launches == 7) v = c[i];", []int{7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bind(t, setup(t), rounds(c.body), 30) // one warp, and one set for all launches
			shots, err := burst(t, b, make([]verify.BurstLaunch, 11)...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range shots {
				if got := isWrong(b, &shots[i]); got != slices.Contains(c.wrong, i) {
					t.Errorf("launch %d: wrong %t: %+v %+v", i, got, shots[i].Breach, shots[i].Comparisons)
				}
			}
		})
	}
}

// TestContestantsShareThePlaces runs bursts of two benches in turn over the same places: one has red zones where the
// other has buffers.
func TestContestantsShareThePlaces(t *testing.T) {
	e := setup(t)
	one, two := bind(t, e, honest, 300), bind(t, e, honest, 3000)
	for round := range 3 {
		for _, b := range []*bound{one, two} {
			shots, err := burst(t, b, make([]verify.BurstLaunch, 9)...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range shots {
				if isWrong(b, &shots[i]) {
					t.Errorf("round %d, launch %d: %+v %+v", round, i, shots[i].Breach, shots[i].Comparisons)
				}
			}
		}
	}
}
