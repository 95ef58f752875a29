package verify_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

func extent(d harness.DType, shape ...int64) task.Extent {
	e := task.Extent{Name: "y", Shape: shape, DType: d, Role: harness.RoleOut, Strides: make([]int64, len(shape)), Elements: 1}
	for i := len(shape) - 1; i >= 0; i-- {
		e.Strides[i] = e.Elements
		e.Elements *= shape[i]
	}
	e.Span = e.Elements
	return e
}

func encode(e task.Extent, values []float64) []byte {
	raw := make([]byte, e.Bytes())
	verify.Encode(raw, append([]float64(nil), values...), e)
	return raw
}

func TestCompareHost(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	tol := verify.Tolerance{Abs: 0.01, Rel: 0.001}
	for _, c := range []struct {
		name      string
		got, want float64
		kind      string // "" passes
	}{
		{"equal", 1, 1, ""}, {"within atol", 0.005, 0, ""}, {"within rtol", 1000.9, 1000, ""}, {"past both", 1001.2, 1000, verify.KindMismatch},
		{"just past atol", 0.0101, 0, verify.KindMismatch}, {"NaN for a number", nan, 1, verify.KindNonFinite}, {"infinity for a number", inf, 1, verify.KindNonFinite},
		{"a number for infinity", 3e38, inf, verify.KindMismatch}, {"a number for NaN", 1, nan, verify.KindMismatch},
		{"the same infinity", inf, inf, ""}, {"the other infinity", -inf, inf, verify.KindNonFinite}, {"NaN for NaN", nan, nan, ""},
		{"minus zero", math.Copysign(0, -1), 0, ""},
	} {
		e := extent(harness.Float32, 100)
		want := make([]float64, 100)
		want[37] = c.want
		values := append([]float64(nil), want...)
		values[37] = c.got
		r := verify.CompareHost(2, e, encode(e, values), want, tol, 1)
		switch {
		case c.kind == "" && r.Mismatches != 0, c.kind != "" && (r.Mismatches != 1 || r.First != 37 || r.FirstKind != c.kind):
			t.Errorf("%s: %+v, want %q", c.name, r, c.kind)
		case r.Tensor != 2 || r.Elements != 100:
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// Errors are exact sums over large outputs whatever the chunks, and the first mismatch is the first one.
func TestCompareLarge(t *testing.T) {
	t.Parallel()
	const n = 300_001
	e := extent(harness.Float32, n)
	want := make([]float64, n)
	got := make([]float64, n)
	for i := range want {
		want[i] = float64(i % 1000)
		got[i] = want[i] + 0.25*float64(i%2)
	}
	r := verify.CompareHost(0, e, encode(e, got), want, verify.Tolerance{Abs: 0.3}, 1)
	if r.Mismatches != 0 || r.MaxAbs != 0.25 || math.Abs(r.SumAbs-0.25*(n/2)) > 1e-6 {
		t.Errorf("%+v", r)
	}
	for _, i := range []int{299_000, 70_000, 140_000} {
		got[i] += 100
	}
	if r = verify.CompareHost(0, e, encode(e, got), want, verify.Tolerance{Abs: 0.3}, 1); r.Mismatches != 3 || r.First != 70_000 || r.MaxAbs != 100 {
		t.Errorf("%+v", r)
	}
}

func TestUnwrittenIsTold(t *testing.T) {
	t.Parallel()
	for _, d := range []harness.DType{harness.Float64, harness.Float32, harness.Float16, harness.BFloat16, harness.Float8E4M3, harness.Float8E5M2, harness.Int64, harness.Int32, harness.Int8, harness.UInt8, harness.BoolType} {
		e := extent(d, 1000)
		raw := make([]byte, e.Bytes())
		verify.Poison(raw, d, 5)
		values := make([]float64, 1000)
		if err := codec.Decode(values, raw, d); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: poison %d is %v: must be finite", d, i, v)
			}
		}
		r := verify.CompareHost(0, e, raw, make([]float64, 1000), verify.Tolerance{}, 5)
		if d != harness.BoolType && (r.Unwritten < 900 || r.FirstKind != verify.KindUnwritten || r.Pattern != "all") {
			t.Errorf("%s: %d of 1000 told unwritten: %+v", d, r.Unwritten, r)
		}
		if d == harness.BoolType && r.Unwritten != 1000 {
			t.Errorf("bool: %+v", r)
		}
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	a, b := make([]byte, 3<<20), make([]byte, 3<<20)
	verify.Poison(a, harness.Float32, 1)
	verify.Poison(b, harness.Float32, 2)
	if string(a) == string(b) || verify.FirstChange(a, harness.Float32, 1) != -1 {
		t.Error("two seeds give the same poison, or a buffer differs from its own")
	}
	for _, at := range []int64{0, 1 << 20, 3<<20 - 1} {
		a[at] ^= 1
		if got := verify.FirstChange(a, harness.Float32, 1); got != at {
			t.Errorf("change at %d found at %d", at, got)
		}
		a[at] ^= 1
	}
	if !verify.Poisoned(a[4000:4004], harness.Float32, 1, 4000) || verify.Poisoned(a[4000:4004], harness.Float32, 1, 4004) {
		t.Error("an element does not know its poison")
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	list := func(from, to, step int64) (out []int64) {
		for i := from; i < to; i += step {
			out = append(out, i)
		}
		return out
	}
	e := extent(harness.Float32, 10, 100)
	rows := append(list(300, 400, 1), list(700, 800, 1)...)
	var tails, edges []int64
	for r := range int64(10) {
		tails = append(tails, list(r*100+96, r*100+100, 1)...)
		edges = append(edges, r*100, r*100+31, r*100+64)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var scattered []int64
	for i := range int64(1000) {
		if rng.IntN(10) == 0 {
			scattered = append(scattered, i)
		}
	}
	for _, c := range []struct {
		want  string
		wrong []int64
	}{
		{"all", list(0, 1000, 1)}, {"one element", []int64{555}}, {"tail: the last 7 elements", list(993, 1000, 1)}, {"tail of rows: from column 96 in 10 of 10 rows", tails},
		{"row 3", list(300, 400, 1)}, {"rows: 2 of 10 whole, from row 3", rows}, {"every 7th from 3", list(3, 1000, 7)}, {"column 5", list(5, 1000, 100)},
		{"block edges: blocks of 32", edges}, {"scattered", scattered},
	} {
		if got := verify.Pattern(e, c.wrong, int64(len(c.wrong))); got != c.want {
			t.Errorf("pattern %q, want %q", got, c.want)
		}
	}
	third := append(append(list(200, 300, 1), list(500, 600, 1)...), list(800, 900, 1)...)
	if got := verify.Pattern(e, third, 300); got != "every 3th row from 2" {
		t.Errorf("pattern %q", got)
	}
}

// Zeros cannot pass below an absolute tolerance, in any dtype, while roundings of the dtype can.
func TestToleranceFollowsTheScale(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for _, d := range []harness.DType{harness.Float64, harness.Float32, harness.Float16, harness.BFloat16} {
		for _, scale := range []float64{1e-3, 1, 100} {
			e := extent(d, 4096)
			want := make([]float64, 4096)
			for i := range want {
				want[i] = scale * rng.NormFloat64()
			}
			tol := verify.ToleranceFor(harness.Eval{ATol: 1e-2, RTol: 1e-2}, d, verify.RMS(want), verify.RMS(want))
			if r := verify.CompareHost(0, e, make([]byte, e.Bytes()), want, tol, 1); r.Mismatches < 3000 {
				t.Errorf("%s at scale %g: zeros are wrong at %d of 4096 elements only", d, scale, r.Mismatches)
			}
			if r := verify.CompareHost(0, e, encode(e, want), want, tol, 1); r.Mismatches != 0 {
				t.Errorf("%s at scale %g: rounding to the dtype is told wrong: %+v", d, scale, r)
			}
		}
	}
	eval := harness.Eval{ATol: 1e-4}
	if a, b := verify.ToleranceFor(eval, harness.Float32, 1, 1), verify.ToleranceFor(eval, harness.Float32, 100, 1); math.Abs(b.Abs/a.Abs-100) > 1e-9 {
		t.Errorf("inputs that make outputs 100 times as large have tolerance %g, the plain ones %g", b.Abs, a.Abs)
	}
	if z := verify.ToleranceFor(eval, harness.Float32, 0, 1); z.Abs <= 0 || z.Abs > 1e-30 {
		t.Errorf("an output that is all zero has tolerance %g, want the smallest normal", z.Abs)
	}
}

func TestRMS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{3, 4}, math.Sqrt(12.5)}, {[]float64{1e300, 1e300}, 1e300}, {[]float64{2, math.Inf(1), math.NaN(), 2}, 2}, {[]float64{1e-310, 1e-310}, 1e-310}} {
		if got := verify.RMS(c.values); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("rms of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

// Projections pass honest roundings and see what a bound's worth of error is.
func TestProjections(t *testing.T) {
	t.Parallel()
	e := extent(harness.Float32, 200_000)
	rng := rand.New(rand.NewPCG(9, 9))
	want := make([]float64, e.Elements)
	for i := range want {
		want[i] = rng.NormFloat64()
	}
	tol := verify.ToleranceFor(harness.Eval{ATol: 1e-5, RTol: 1e-5}, harness.Float32, verify.RMS(want), verify.RMS(want))
	raw := encode(e, want)
	for seed := range uint64(20) {
		if r := verify.ProjectHost(0, e, raw, want, tol, seed); r.Mismatches != 0 || !r.Projected {
			t.Fatalf("seed %d: honest roundings fail: %+v", seed, r)
		}
	}
	bound := verify.ProjectionBound(want, tol)
	for name, damage := range map[string]func(v []float64){
		"one element by two bounds": func(v []float64) { v[1234] += 2 * bound },
		"a stale tail":              func(v []float64) { clear(v[190_000:]) },
		"one NaN":                   func(v []float64) { v[77] = math.NaN() },
	} {
		values := append([]float64(nil), want...)
		damage(values)
		if r := verify.ProjectHost(0, e, encode(e, values), want, tol, 3); r.Mismatches == 0 {
			t.Errorf("%s passes", name)
		}
	}
}

// A transposed view is read and written through its strides.
func TestStrides(t *testing.T) {
	t.Parallel()
	e := extent(harness.Float32, 3, 4)
	e.Strides, e.Span = []int64{1, 5}, 18
	values := make([]float64, 12)
	for i := range values {
		values[i] = float64(i + 1)
	}
	raw := make([]byte, e.Bytes())
	verify.Encode(raw, values, e)
	back := make([]float64, 12)
	verify.Decode(back, raw, e, 0)
	dense := make([]float64, 18)
	if err := codec.Decode(dense, raw, harness.Float32); err != nil {
		t.Fatal(err)
	}
	if back[7] != 8 || dense[1*1+3*5] != 8 {
		t.Errorf("element (1,3) is %v by strides and %v in memory, want 8", back[7], dense[16])
	}
	if r := verify.CompareHost(0, e, raw, values, verify.Tolerance{}, 1); r.Mismatches != 0 {
		t.Errorf("%+v", r)
	}
}
