package verify

import (
	"math"
	"sync"

	"ridgepoint/harness/task"
)

// Projections is how many seeded ±1 projections stand for a whole comparison.
const Projections = 3

// ProjectionSigns returns the signs of 64 adjacent elements, those of block index/64, for projection k: bit i set means minus.
// It is the finalizer of splitmix64 over (seed, k, block), cheap on host and device alike.
func ProjectionSigns(seed uint64, k int, block int64) uint64 {
	return Mix(seed, uint64(k), uint64(block))
}

// projectionZ is how many standard deviations of the allowed error a projection may be off: a sum of independent signs leaves
// six with probability 2e-9.
const projectionZ = 6

// ProjectionBound returns how far a projection of an output may be from the expected one: were every element off by its
// tolerance with a sign of its own, the sum would have this standard deviation, times projectionZ. Honest errors are a small
// part of the tolerance; one element wrong by more than the bound, or many by less, is seen.
func ProjectionBound(want []float64, tol Tolerance) float64 {
	var sum float64
	for _, w := range want {
		t := tol.Abs + tol.Rel*math.Abs(w)
		sum += t * t
	}
	return projectionZ * math.Sqrt(sum)
}

// ProjectHost compares an output in host memory with its expected values by projections, in float64. MaxAbs is the largest
// distance as a multiple of the bound; Mismatches is 1 above it or when a sum is not finite.
func ProjectHost(tensor int, e task.Extent, raw []byte, want []float64, tol Tolerance, seed uint64) Comparison {
	var mu sync.Mutex
	var off [Projections]float64
	parallel(len(want), func(from, to int) {
		var part [Projections]float64
		var got [64]float64
		for start := from; start < to; start += len(got) { // chunks are multiples of 64
			n := min(len(got), to-start)
			Decode(got[:n], raw, e, int64(start))
			for k := range part {
				signs := ProjectionSigns(seed, k, int64(start/64))
				for i, w := range want[start : start+n] {
					d := got[i] - w
					if signs>>i&1 == 1 {
						d = -d
					}
					part[k] += d
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for k := range off {
			off[k] += part[k]
		}
	})
	c := Comparison{Tensor: tensor, Elements: e.Elements, First: -1, Projected: true}
	bound := ProjectionBound(want, tol)
	for _, d := range off {
		if ratio := math.Abs(d) / bound; !(ratio <= 1) {
			c.Mismatches = 1
			c.MaxAbs = max(c.MaxAbs, ratio)
		}
	}
	return c
}
