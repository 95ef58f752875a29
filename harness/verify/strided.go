package verify

import (
	"fmt"
	"math"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/task"
)

// Decode reads the elements [from, from+len(dst)) of a tensor, in logical row-major order, from its buffer. A dtype that the
// codec does not know cannot come out of a loaded task and panics.
func Decode(dst []float64, raw []byte, e task.Extent, from int64) {
	size := int64(e.DType.SizeBytes())
	if contiguous(e) {
		must(codec.Decode(dst, raw[from*size:(from+int64(len(dst)))*size], e.DType))
		return
	}
	for i := range dst {
		at := offset(e, from+int64(i)) * size
		must(codec.Decode(dst[i:i+1], raw[at:at+size], e.DType))
	}
}

// Encode writes a whole tensor, in logical row-major order, into its buffer. Finite values stay within the dtype's finite
// range.
func Encode(raw []byte, src []float64, e task.Extent) {
	if top, ok := largest[e.DType]; ok {
		for i, v := range src {
			if math.Abs(v) > top && !math.IsInf(v, 0) {
				src[i] = math.Copysign(top, v)
			}
		}
	}
	size := int64(e.DType.SizeBytes())
	if contiguous(e) {
		must(codec.Encode(raw[:int64(len(src))*size], src, e.DType))
		return
	}
	for i := range src {
		at := offset(e, int64(i)) * size
		must(codec.Encode(raw[at:at+size], src[i:i+1], e.DType))
	}
}

// largest is the largest finite value of a float dtype.
var largest = map[harness.DType]float64{
	harness.Float32: math.MaxFloat32, harness.Float16: 65504, harness.BFloat16: 0x1.fep127, harness.Float8E4M3: 448, harness.Float8E5M2: 57344,
}

// Overflow rounds expected values past a float dtype's finite range to infinity, as an honest kernel's store does.
// float8_e4m3 has no infinity, and what a kernel stores there is its own business: its expected values stay.
func Overflow(values []float64, d harness.DType) {
	top, ok := largest[d]
	if !ok || d == harness.Float8E4M3 {
		return
	}
	for i, v := range values {
		if math.Abs(v) > top {
			values[i] = codec.Round(v, d)
		}
	}
}

// offset returns the element offset in the buffer of the logical index.
func offset(e task.Extent, index int64) int64 {
	var at int64
	for d := len(e.Shape) - 1; d >= 0; d-- {
		at += index % e.Shape[d] * e.Strides[d]
		index /= e.Shape[d]
	}
	return at
}

// Index splits a logical index into its coordinates.
func Index(e task.Extent, index int64) []int64 {
	out := make([]int64, len(e.Shape))
	for d := len(e.Shape) - 1; d >= 0; d-- {
		out[d] = index % e.Shape[d]
		index /= e.Shape[d]
	}
	return out
}

func contiguous(e task.Extent) bool {
	step := int64(1)
	for d := len(e.Shape) - 1; d >= 0; d-- {
		if e.Shape[d] > 1 && e.Strides[d] != step {
			return false
		}
		step *= e.Shape[d]
	}
	return true
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("verify: %v", err))
	}
}
