package verify

import (
	"math"

	"ridgepoint/harness"
)

// unitRoundoff is half the distance from 1 to the next number of a float dtype; 0 for integers.
var unitRoundoff = map[harness.DType]float64{
	harness.Float64: 0x1p-53, harness.Float32: 0x1p-24, harness.Float16: 0x1p-11, harness.BFloat16: 0x1p-8,
	harness.Float8E4M3: 0x1p-4, harness.Float8E5M2: 0x1p-3,
}

// unresolved is what a float dtype's output may be off by whatever the tolerances: the smallest normal number where flushing
// denormals to zero is common practice, some steps of the denormals in the small formats, whose denormals are in use.
var unresolved = map[harness.DType]float64{
	harness.Float64: 0x1p-1022, harness.Float32: 0x1p-126, harness.BFloat16: 0x1p-126, harness.Float16: 0x1p-21,
	harness.Float8E4M3: 0x1p-9, harness.Float8E5M2: 0x1p-16,
}

// ScaleShare is the largest share of an output's scale (its root mean square over the set) that the absolute tolerance may
// be: 0.001, or 16 roundings of a dtype that is coarser than that, never over a quarter. An absolute tolerance above the
// output's own scale lets zeros, means and copies pass, whatever the person meant by it; honest kernels in the output's
// dtype err by some roundings of it, a tenth of the share at most.
func ScaleShare(d harness.DType) float64 {
	return min(max(1e-3, 16*unitRoundoff[d]), 0.25)
}

// ToleranceFor returns what an output of dtype d must meet in a set whose expected output has root mean square rms, where the
// task's plain set of the same size has plainRMS.
//
// The task's atol is written for its plain inputs. Inputs × 100 make the roundings of a sum × 100 too, so atol grows with the
// output's scale; and it never exceeds ScaleShare of that scale, so that a null answer cannot hide below it. Nobody is asked for
// more than the dtype resolves: flushing denormals to zero is within the rules.
func ToleranceFor(e harness.Eval, d harness.DType, rms, plainRMS float64) Tolerance {
	abs := e.ATol
	if plainRMS > 0 && rms > plainRMS && !math.IsInf(rms, 0) {
		abs *= rms / plainRMS
	}
	if !math.IsNaN(rms) && !math.IsInf(rms, 0) {
		abs = min(abs, ScaleShare(d)*rms)
	}
	return Tolerance{Abs: max(abs, unresolved[d]), Rel: e.RTol}
}

// RMS returns the root mean square of the finite values.
func RMS(values []float64) float64 {
	var sum float64
	var n int
	top := 0.0
	for _, v := range values { // scaled by the largest, so that squares neither overflow nor vanish
		if a := math.Abs(v); a > top && !math.IsInf(a, 0) {
			top = a
		}
	}
	if top == 0 {
		return 0
	}
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += v / top * (v / top)
			n++
		}
	}
	return top * math.Sqrt(sum/float64(n))
}

// Unit returns the relative error of one rounding to a float dtype; 0 for integers.
func Unit(d harness.DType) float64 { return unitRoundoff[d] }
