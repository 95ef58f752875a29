package codec

import (
	"math"
	"sync"

	"ridgepoint/harness"
)

// format is a binary floating-point format of at most 16 bits.
type format struct {
	mantissa int    // stored bits
	exponent int    // bits
	bias     int    // of the exponent
	maximum  uint64 // bits of the largest finite number
	overflow uint64 // bits of what lies beyond it
	nan      uint64
}

// The formats: IEEE 754 binary16, bfloat16, and the two of "FP8 Formats for Deep Learning" (arXiv:2209.05433), of which e4m3
// has no infinity and overflows to NaN, as torch does.
var formats = map[harness.DType]*format{
	harness.Float16:    {mantissa: 10, exponent: 5, bias: 15, maximum: 0x7bff, overflow: 0x7c00, nan: 0x7e00},
	harness.BFloat16:   {mantissa: 7, exponent: 8, bias: 127, maximum: 0x7f7f, overflow: 0x7f80, nan: 0x7fc0},
	harness.Float8E4M3: {mantissa: 3, exponent: 4, bias: 7, maximum: 0x7e, overflow: 0x7f, nan: 0x7f},
	harness.Float8E5M2: {mantissa: 2, exponent: 5, bias: 15, maximum: 0x7b, overflow: 0x7c, nan: 0x7e},
}

func (f *format) sign() uint64 { return 1 << (f.mantissa + f.exponent) }

// encode rounds v to the format and returns its bits.
func (f *format) encode(v float64) uint64 {
	if math.IsNaN(v) {
		return f.nan
	}
	var sign uint64
	if math.Signbit(v) {
		sign, v = f.sign(), -v
	}
	if math.IsInf(v, 0) {
		return sign | f.overflow
	}
	lowest := 1 - f.bias // exponent of the smallest normal number and of all subnormal ones
	e := max(math.Ilogb(v), lowest)
	if v == 0 {
		e = lowest
	}
	units := uint64(math.RoundToEven(math.Ldexp(v, f.mantissa-e))) // of the last place; a carry into the exponent comes out right
	bits := uint64(e-lowest)<<f.mantissa + units
	if e > f.bias+1 || bits > f.maximum {
		return sign | f.overflow
	}
	return sign | bits
}

// decode returns the value of the format's bits.
func (f *format) decode(bits uint64) float64 {
	magnitude := bits &^ f.sign()
	sign := 1.0
	if bits&f.sign() != 0 {
		sign = -1
	}
	if magnitude > f.maximum {
		if magnitude == f.overflow && f.overflow != f.nan {
			return math.Inf(int(sign))
		}
		return math.NaN()
	}
	e := int(magnitude >> f.mantissa)
	m := magnitude & (1<<f.mantissa - 1)
	if e == 0 {
		return sign * math.Ldexp(float64(m), 1-f.bias-f.mantissa)
	}
	return sign * math.Ldexp(float64(m|1<<f.mantissa), e-f.bias-f.mantissa)
}

// halves is the value of every float16, by its bits.
var halves = sync.OnceValue(func() []float64 {
	out := make([]float64, 1<<16)
	for i := range out {
		out[i] = formats[harness.Float16].decode(uint64(i))
	}
	return out
})
