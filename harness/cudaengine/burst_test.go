package cudaengine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ridgepoint/harness/verify"
)

// TestWarmups wants warm-ups to come before the launches that are looked at, and to be no more than launches: a kernel that is
// right from its fourth launch on passes behind three.
func TestWarmups(t *testing.T) {
	source := `__device__ int launches;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (launches >= 3 && i < n) c[i] = a[i] + b[i];
    if (i == n - 1) launches++;
}`
	for warmups, wrong := range map[int]int{0: 3, 2: 1, 3: 0} {
		b := bind(t, setup(t), source, 30) // one warp: no other reads the count after it was raised
		run := &verify.Burst{Warmups: warmups, Rewrite: true, Limit: time.Second}
		for i := range uint64(4) {
			run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i, Whole: true})
		}
		shots, err := b.bench.(verify.Burster).Burst(context.Background(), run)
		if err != nil || len(shots) != 4 {
			t.Fatalf("%d shots, %v", len(shots), err)
		}
		for i, s := range shots {
			if bad := verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, b.set, verify.Aim{}) != nil; bad != (i < wrong) {
				t.Errorf("%d warm-ups, launch %d: wrong %t", warmups, i, bad)
			}
		}
		if (run.Warmed > 0) != (warmups > 0) {
			t.Errorf("%d warm-ups took %v", warmups, run.Warmed)
		}
	}
}

// TestLargeInputs alternates two sets that differ in few elements, as timed launches do, at a size of whose inputs only parts are
// rewritten and looked at: outputs stay right, and a change that one launch makes to one element is seen by the last one at the
// latest.
func TestLargeInputs(t *testing.T) {
	const n = 1<<20 + 5000
	once := `__device__ int launches;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    if (i == n - 1 && launches++ == 2) const_cast<float*>(b)[i] += 1.f;
}`
	for _, c := range []struct {
		name, source string
		breaches     bool
	}{{"honest", honest, false}, {"one change", once, true}} {
		t.Run(c.name, func(t *testing.T) {
			b := bind(t, setup(t), c.source, n)
			sparse := verify.ScaleSpec
			sparse.Sparse = true
			other, err := verify.NewPool(addition, 1<<30).Get(t.Context(), b.layout.Task, b.layout.Size, sparse, 1)
			if err != nil {
				t.Fatal(err)
			}
			run := &verify.Burst{Rewrite: true, Limit: 10 * time.Second}
			sets := []*verify.Set{b.set, other}
			for i := range 7 {
				run.Launches = append(run.Launches, verify.BurstLaunch{Set: sets[i%2], Seed: uint64(i), Whole: i == 0 || i == 6})
			}
			shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			breaches := false
			for i, s := range shots {
				breaches = breaches || s.Breach != nil
				if wrong := verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, run.Launches[i].Set, verify.Aim{}); wrong != nil && !c.breaches {
					t.Errorf("launch %d: %v", i, wrong)
				}
			}
			if breaches != c.breaches {
				t.Errorf("a changed input was seen: %t, want %t", breaches, c.breaches)
			}
		})
	}
}

// TestKnownBits wants an output whose bits were right before to pass, with the same errors, and one bit of another to be seen.
func TestKnownBits(t *testing.T) {
	source := `__device__ int launches;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + (i == 11 && launches == 4 ? 1.f : 0.f);
    if (i == n - 1) launches++;
}`
	b := bind(t, setup(t), source, 30) // one warp: no other reads the count after it was raised
	run := &verify.Burst{Rewrite: true, Limit: 10 * time.Second}
	for i := range uint64(7) {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i, Whole: i == 0})
	}
	shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	right := shots[0].Comparisons[0]
	for i, s := range shots {
		got := s.Comparisons[0]
		if i == 4 {
			if got.Mismatches != 1 || got.First != 11 {
				t.Errorf("launch 4: %+v, want element 11 alone to be wrong", got)
			}
			continue
		}
		if got.Mismatches != 0 || got.MaxAbs != right.MaxAbs || got.SumAbs != right.SumAbs || got.SumAbs <= 0 {
			t.Errorf("launch %d: %+v, want what launch 0 has: %+v", i, got, right)
		}
	}
}

// TestUnseenEndsABurst wants the last launch to be on other contents than the set's, looked at but not compared.
func TestUnseenEndsABurst(t *testing.T) {
	b := bind(t, setup(t), honest, 300)
	run := &verify.Burst{Rewrite: true, Limit: time.Second, Launches: []verify.BurstLaunch{{Set: b.set, Seed: 1, Whole: true}, {Set: b.set, Seed: 2, Unseen: true}}}
	shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
	if err != nil || len(shots) != 2 || shots[1].Lap.Kernels <= 0 || len(shots[1].Comparisons) != 0 || shots[1].Breach != nil {
		t.Fatalf("%+v, %v", shots, err)
	}
	found, err := b.bench.Compare(t.Context(), b.set, 2, true) // with what the set expects, which the mixed contents do not give
	if err != nil || found[0].Mismatches == 0 {
		t.Errorf("%+v, %v: want the contents to be others than the set's", found, err)
	}
	run.Launches[0], run.Launches[1] = run.Launches[1], run.Launches[0]
	if _, err := b.bench.(verify.Burster).Burst(t.Context(), run); err == nil {
		t.Error("a burst with an unseen launch before another ran")
	}
}

// TestSetsOfKeptBuffers does not rewrite: buffers stay as they are behind a launch on the same set, and are written where the set changes.
func TestSetsOfKeptBuffers(t *testing.T) {
	source := `__device__ int launches;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (launches != 1 && launches != 4 && i < n) c[i] = a[i] + b[i];
    if (i == n - 1) launches++;
}`
	b := bind(t, setup(t), source, 30) // one warp: no other reads the count after it was raised
	sets := []*verify.Set{b.set, edited(b.set, 7)}
	run := &verify.Burst{Limit: time.Second}
	for i, set := range []int{0, 0, 1, 1, 0, 0} {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: sets[set], Seed: uint64(i)})
	}
	shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range shots {
		if isWrong(b, &shots[i]) != (i == 4) {
			t.Errorf("launch %d: %+v %+v, want the fifth alone to be wrong", i, shots[i].Breach, shots[i].Comparisons)
		}
	}
}

// BenchmarkBurst says where a launch's time on the device goes: kernel, flush, and the rest, which is verification.
func BenchmarkBurst(b *testing.B) {
	const launches = 50
	e := setup(b)
	if e.engine.Emulated() {
		b.Skip("times mean nothing on the emulated device: set RIDGEPOINT_GPU_ARCH on a machine with a card")
	}
	for _, n := range []int64{16 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKB", n*4>>10), func(b *testing.B) {
			c := bind(b, e, honest, n)
			sparse := verify.ScaleSpec
			sparse.Sparse = true
			other, err := verify.NewPool(addition, 4<<30).Get(b.Context(), c.layout.Task, c.layout.Size, sparse, 1)
			if err != nil {
				b.Fatal(err)
			}
			sets := []*verify.Set{c.set, other}
			run := &verify.Burst{Warmups: 10, Rewrite: true, Limit: time.Second}
			for i := range launches {
				run.Launches = append(run.Launches, verify.BurstLaunch{Set: sets[i%2], Seed: uint64(i), Whole: i == 0 || i+1 == launches})
			}
			var kernels, warm time.Duration
			e.engine.DeviceBusy()
			e.engine.DeviceFlush()
			for b.Loop() {
				shots, err := c.bench.(verify.Burster).Burst(b.Context(), run)
				if err != nil {
					b.Fatal(err)
				}
				for _, s := range shots {
					kernels += s.Lap.Kernels
				}
				warm += run.Warmed
			}
			busy, flush, all := e.engine.DeviceBusy(), e.engine.DeviceFlush(), float64(b.N*launches)
			us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / all }
			b.ReportMetric(us(kernels), "kernel-us")
			b.ReportMetric(us(warm), "warm-us")
			b.ReportMetric(us(flush), "flush-us")
			b.ReportMetric(us(busy-flush-kernels-warm), "verify-us")
			b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/all, "wall-us")
		})
	}
}
