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
			run := &verify.Burst{Warmups: 10, Rewrite: true, Limit: time.Second}
			for i := range uint64(launches) {
				run.Launches = append(run.Launches, verify.BurstLaunch{Set: c.set, Seed: i, Whole: i == 0 || i+1 == launches})
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
