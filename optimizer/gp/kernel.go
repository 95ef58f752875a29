package gp

import "math"

// The kernel is k(x, x') = sf M(r) + (sa/D) sum_k M(d_k) + sum_c tau_c g_c(x) g_c(x'), where d_k = |x_k - x'_k|/l_k,
// r² = sum_k d_k², M is the Matérn-5/2 correlation and g_c are what other records say of x. The additive term, with the same
// lengths, lets one column's effect be learned from points that differ in all others.

var sqrt5 = math.Sqrt(5)

// expCells per unit of the table of exp(-√5 a) over [0, expRange].
const (
	expCells = 512
	expRange = 16
)

var expTable = func() []float64 {
	t := make([]float64, expCells*expRange+1)
	for i := range t {
		t[i] = math.Exp(-sqrt5 * float64(i) / expCells)
	}
	return t
}()

// expDecay returns exp(-√5 a) for a >= 0 to a relative error under 1e-10: the table's cell times a third-order series.
func expDecay(a float64) float64 {
	if a >= expRange {
		return 0
	}
	i := int(a * expCells)
	x := sqrt5 * (a - float64(i)*(1.0/expCells))
	return expTable[i] * (1 - x*(1-x*(0.5-x*(1.0/6))))
}

// matern returns the Matérn-5/2 correlation at a scaled distance.
func matern(a float64) float64 {
	return (1 + sqrt5*a + 5.0/3*a*a) * expDecay(a)
}

// hyper are the kernel's parameters as logarithms: lengths by column, then sf, sa, sn (noise), then tau by record.
type hyper struct {
	theta   []float64
	columns int
}

func (h hyper) inverse(k int) float64 { return math.Exp(-h.theta[k]) }
func (h hyper) sf() float64           { return math.Exp(h.theta[h.columns]) }
func (h hyper) sa() float64           { return math.Exp(h.theta[h.columns+1]) }
func (h hyper) sn() float64           { return math.Exp(h.theta[h.columns+2]) }
func (h hyper) tau(c int) float64     { return math.Exp(h.theta[h.columns+3+c]) }
func (h hyper) records() int          { return len(h.theta) - h.columns - 3 }

// prior is the normal prior of one logarithm and the walls beyond which it may not go.
type prior struct{ mean, sd, low, high float64 }

// priors returns the priors for a number of columns and records: lengths about 0.35√D, since a sum over D columns grows so, and
// twice the weight on additive effects, which a handful of points can teach. Lengths that records expect, as logarithms, are the
// means instead.
func priors(columns, records int, additive bool, lengths []float64) []prior {
	out := make([]prior, 0, columns+3+records)
	for k := range columns {
		length := prior{usualLength(columns), 1, -4, 4}
		if lengths != nil {
			length.mean, length.sd = lengths[k], lessonSD
		}
		out = append(out, length)
	}
	out = append(out, prior{0, 1, -4, 4}, prior{math.Log(2), 1, -4, 4}, prior{math.Log(1e-3), 1.5, -12, 1})
	if !additive { // so little that the term is gone
		out[columns+1] = prior{-12, 0.01, -16, 4}
	}
	for range records {
		out = append(out, prior{math.Log(0.3), 1.5, -8, 4})
	}
	return out
}

// usualLength is ln of the length expected of each of a number of columns.
func usualLength(columns int) float64 { return math.Log(0.35 * math.Sqrt(float64(columns))) }

// initial returns the parameters that a first fit starts from.
func initial(columns, records int, additive bool, lengths []float64) hyper {
	h := hyper{columns: columns}
	for i, p := range priors(columns, records, additive, lengths) {
		switch i {
		case columns + 2:
			h.theta = append(h.theta, math.Log(0.01))
		default:
			h.theta = append(h.theta, p.mean)
		}
	}
	return h
}
