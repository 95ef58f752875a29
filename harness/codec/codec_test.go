package codec

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/harness"
)

// The bits are those of numpy (float16) and of torch 2.x (bfloat16, float8_e4m3fn, float8_e5m2).
func TestKnownBits(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, c := range []struct {
		dt   harness.DType
		v    float64
		bits uint64
	}{
		{harness.Float16, 1, 0x3c00}, {harness.Float16, -2, 0xc000}, {harness.Float16, 65504, 0x7bff}, {harness.Float16, 65519.99, 0x7bff},
		{harness.Float16, 65520, 0x7c00}, {harness.Float16, inf, 0x7c00}, {harness.Float16, 5.960464477539063e-08, 1}, {harness.Float16, 2.980232238769531e-08, 0},
		{harness.Float16, 2.981e-08, 1}, {harness.Float16, 6.103515625e-05, 0x400}, {harness.Float16, 1.0009765625, 0x3c01},
		{harness.Float16, 1.00048828125, 0x3c00}, {harness.Float16, 1.00146484375, 0x3c02}, {harness.Float16, 1.000488281250001, 0x3c01}, {harness.Float16, 1e308, 0x7c00},
		{harness.BFloat16, 1, 0x3f80}, {harness.BFloat16, 3.14159265, 0x4049}, {harness.BFloat16, 1.00390625, 0x3f80}, {harness.BFloat16, 1.01171875, 0x3f82},
		{harness.BFloat16, 3.4e38, 0x7f80}, {harness.BFloat16, 1e-40, 1}, {harness.BFloat16, math.Copysign(0, -1), 0x8000},
		{harness.Float8E4M3, 448, 0x7e}, {harness.Float8E4M3, 464, 0x7e}, {harness.Float8E4M3, 464.1, 0x7f}, {harness.Float8E4M3, 1, 0x38}, {harness.Float8E4M3, 0.001953125, 1},
		{harness.Float8E4M3, -0.0625, 0x98}, {harness.Float8E5M2, 57344, 0x7b}, {harness.Float8E5M2, 61440, 0x7c}, {harness.Float8E5M2, 1.25, 0x3d},
		{harness.Float8E5M2, 1.125, 0x3c}, {harness.Float8E5M2, 1.52587890625e-05, 1},
	} {
		if got := formats[c.dt].encode(c.v); got != c.bits {
			t.Errorf("%s of %v: %#x, want %#x", c.dt, c.v, got, c.bits)
		}
	}
}

// Every finite pattern of every small format decodes to a number that encodes to the pattern again, and the numbers ascend.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for dt, f := range formats {
		last := -1.0
		for bits := uint64(0); bits <= f.maximum; bits++ {
			v := f.decode(bits)
			if got := f.encode(v); got != bits || v <= last {
				t.Fatalf("%s: %#x is %v (after %v), encodes to %#x", dt, bits, v, last, got)
			}
			if got := f.encode(-v); got != bits|f.sign() {
				t.Fatalf("%s: -%v encodes to %#x", dt, v, got)
			}
			last = v
		}
		if !math.IsNaN(f.decode(f.nan)) || f.encode(math.NaN()) != f.nan {
			t.Errorf("%s: NaN does not come back", dt)
		}
	}
}

// Rounding picks the nearer neighbour: checked against the two neighbours found by search over all patterns.
func TestRoundsToNearest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for dt, f := range formats {
		for range 20_000 {
			v := math.Exp(r.NormFloat64() * 6)
			if v > f.decode(f.maximum) {
				continue
			}
			bits := f.encode(v)
			d := math.Abs(f.decode(bits) - v)
			if bits > 0 && math.Abs(f.decode(bits-1)-v) < d || bits < f.maximum && math.Abs(f.decode(bits+1)-v) < d {
				t.Fatalf("%s: %v became %v, a neighbour is nearer", dt, v, f.decode(bits))
			}
		}
	}
}

func TestBuffers(t *testing.T) {
	t.Parallel()
	values := []float64{0, 1, -1, 2.5, 3.5, 300, -300, 1e10, -1e10, math.NaN(), math.Inf(1)}
	want := map[harness.DType][]float64{
		harness.Int8:     {0, 1, -1, 2, 4, 127, -128, 127, -128, 0, 127},
		harness.UInt8:    {0, 1, 0, 2, 4, 255, 0, 255, 0, 0, 255},
		harness.Int32:    {0, 1, -1, 2, 4, 300, -300, math.MaxInt32, math.MinInt32, 0, math.MaxInt32},
		harness.Int64:    {0, 1, -1, 2, 4, 300, -300, 1e10, -1e10, 0, math.MaxInt64},
		harness.BoolType: {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		harness.Float64:  values,
		harness.Float32:  {0, 1, -1, 2.5, 3.5, 300, -300, 1e10, -1e10, math.NaN(), math.Inf(1)},
		harness.BFloat16: {0, 1, -1, 2.5, 3.5, 300, -300, 9999220736, -9999220736, math.NaN(), math.Inf(1)},
	}
	for dt, w := range want {
		raw := make([]byte, len(values)*dt.SizeBytes())
		got := make([]float64, len(values))
		if err := Encode(raw, values, dt); err != nil {
			t.Fatal(err)
		}
		if err := Decode(got, raw, dt); err != nil {
			t.Fatal(err)
		}
		for i := range w {
			if got[i] != w[i] && !(math.IsNaN(got[i]) && math.IsNaN(w[i])) {
				t.Errorf("%s: %v became %v, want %v", dt, values[i], got[i], w[i])
			}
		}
		if Round(2.5, dt) != w[3] {
			t.Errorf("%s: Round(2.5) = %v", dt, Round(2.5, dt))
		}
	}
	if err := Encode(make([]byte, 3), values, harness.Float32); err == nil {
		t.Error("a short buffer is accepted")
	}
	if err := Decode(nil, nil, harness.DTypeInvalid); err == nil {
		t.Error("an invalid dtype is accepted")
	}
}

func BenchmarkEncodeFloat16(b *testing.B) {
	src := make([]float64, 1<<20)
	for i := range src {
		src[i] = float64(i) / 777
	}
	dst := make([]byte, 2<<20)
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		if err := Encode(dst, src, harness.Float16); err != nil {
			b.Fatal(err)
		}
	}
}
