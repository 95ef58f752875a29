package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// data are the observations that a fit uses. Coordinates are coded by column, with codes dense among the observations, so
// that what depends on one column's distance is tabulated once for each pair of distinct coordinates.
type data struct {
	n       int
	columns []dataColumn
	g       []float64 // n*records: what records say
	records int
	plain   bool      // the kernel has no additive term
	lengths []float64 // that the records expect, see recordLengths; nil: none do
	y       []float64 // standardised output
	noise   []float64 // known variance of y beyond the fitted noise
}

type dataColumn struct {
	codes       []uint16
	values      []float64
	categorical bool
}

// newData codes the observations; encoded are the encoder's codes of each.
func newData(enc *encoder, encoded [][]uint16) *data {
	dt := &data{n: len(encoded), columns: make([]dataColumn, len(enc.columns))}
	for k, c := range enc.columns {
		col := dataColumn{codes: make([]uint16, dt.n), categorical: c.categorical}
		dense := map[uint16]uint16{}
		for i, codes := range encoded {
			code, ok := dense[codes[k]]
			if !ok {
				code = uint16(len(col.values))
				dense[codes[k]] = code
				col.values = append(col.values, c.values[codes[k]])
			}
			col.codes[i] = code
		}
		dt.columns[k] = col
	}
	return dt
}

// fitter minimises the negative log posterior of the kernel's parameters. Its buffers are reused from fit to fit.
type fitter struct {
	k, alpha []float64
	r2, exp  []float64 // of each pair: squared distance and exp(-√5 r)
	tables   []table
	offsets  []int
}

// table holds, for each pair of a column's distinct coordinates, the squared scaled distance, the correlation M and its
// derivative by the logarithm of the length.
type table struct{ square, corr, slope []float64 }

// jitterFit keeps the fit's matrix positive definite.
const jitterFit = 1e-8

// objective returns the negative log marginal likelihood plus the priors, and writes its gradient. ok is false when the matrix
// is not positive definite.
func (f *fitter) objective(dt *data, theta, grad []float64) (value float64, ok bool) {
	h := hyper{theta: theta, columns: len(dt.columns)}
	n := dt.n
	f.resize(dt)
	f.tabulate(dt, h)
	f.covariance(dt, h)
	sym := blas64.Symmetric{N: n, Stride: n, Data: f.k, Uplo: blas.Lower}
	chol, ok := lapack64.Potrf(sym)
	if !ok {
		return math.Inf(1), false
	}
	copy(f.alpha, dt.y)
	lapack64.Potrs(chol, blas64.General{Rows: n, Cols: 1, Stride: 1, Data: f.alpha})
	value = 0.5 * float64(n) * math.Log(2*math.Pi)
	for i := range n {
		value += 0.5*dt.y[i]*f.alpha[i] + math.Log(f.k[i*n+i])
	}
	lapack64.Potri(chol) // f.k's lower triangle is now the inverse
	for i := range grad {
		grad[i] = 0
	}
	f.gradient(dt, h, grad)
	f.gradientRecords(dt, h, grad)
	return value + addPriors(theta, grad, priors(len(dt.columns), dt.records, !dt.plain, dt.lengths)), true
}

func (f *fitter) resize(dt *data) {
	n := dt.n
	if cap(f.k) < n*n {
		f.k, f.r2, f.exp = make([]float64, 2*n*n), make([]float64, 2*n*n), make([]float64, 2*n*n)
	}
	f.k, f.r2, f.exp = f.k[:n*n], f.r2[:n*n], f.exp[:n*n]
	if cap(f.alpha) < n {
		f.alpha = make([]float64, 2*n)
	}
	f.alpha = f.alpha[:n]
	if len(f.tables) != len(dt.columns) {
		f.tables, f.offsets = make([]table, len(dt.columns)), make([]int, len(dt.columns))
	}
}

func (f *fitter) tabulate(dt *data, h hyper) {
	for k, c := range dt.columns {
		m := len(c.values)
		t := &f.tables[k]
		if cap(t.square) < m*m {
			t.square, t.corr, t.slope = make([]float64, 2*m*m), make([]float64, 2*m*m), make([]float64, 2*m*m)
		}
		t.square, t.corr, t.slope = t.square[:m*m], t.corr[:m*m], t.slope[:m*m]
		inv := h.inverse(k)
		for a := range m {
			for b := range a + 1 {
				d := math.Abs(c.values[a]-c.values[b]) * inv
				if c.categorical && a != b {
					d = inv
				}
				e := expDecay(d)
				at, mirror := a*m+b, b*m+a
				t.square[at], t.corr[at], t.slope[at] = d*d, (1+sqrt5*d+5.0/3*d*d)*e, 5.0/3*(1+sqrt5*d)*e*d*d
				t.square[mirror], t.corr[mirror], t.slope[mirror] = t.square[at], t.corr[at], t.slope[at]
			}
		}
	}
}

func (f *fitter) covariance(dt *data, h hyper) {
	n := dt.n
	sf, share := h.sf(), h.sa()/float64(len(dt.columns))
	diagonal := sf + h.sa() + h.sn() + jitterFit
	for i := range n {
		row, r2 := f.k[i*n:i*n+i], f.r2[i*n:i*n+i]
		for j := range row {
			row[j], r2[j] = 0, 0
		}
		for k := range dt.columns {
			c := &dt.columns[k]
			m, codes := len(c.values), c.codes[:i]
			at := int(c.codes[i]) * m
			square, corr := f.tables[k].square[at:at+m], f.tables[k].corr[at:at+m]
			for j, b := range codes {
				r2[j] += square[b]
				row[j] += corr[b]
			}
		}
		e := f.exp[i*n : i*n+i]
		for j := range row {
			r := math.Sqrt(r2[j])
			e[j] = expDecay(r)
			row[j] = share*row[j] + sf*(1+sqrt5*r+5.0/3*r2[j])*e[j]
		}
		f.k[i*n+i] = diagonal + dt.noise[i]
	}
	for c := range dt.records {
		tau := h.tau(c)
		for i := range n {
			gi := tau * dt.g[i*dt.records+c]
			for j := range i + 1 {
				f.k[i*n+j] += gi * dt.g[j*dt.records+c]
			}
		}
	}
}

// gradient adds 0.5 tr((K⁻¹ - αα') dK/dθ) for lengths, amplitudes and noise, summed over the lower triangle.
func (f *fitter) gradient(dt *data, h hyper, grad []float64) {
	n, dims := dt.n, len(dt.columns)
	sf, share := h.sf(), h.sa()/float64(dims)
	w, c := make([]float64, n), make([]float64, n)
	for i := range n {
		ai := f.alpha[i]
		inv, r2, e := f.k[i*n:i*n+i], f.r2[i*n:i*n+i], f.exp[i*n:i*n+i]
		full := 0.0
		for j := range inv {
			wj := inv[j] - ai*f.alpha[j] // twice the half
			r := math.Sqrt(r2[j])
			full += wj * (1 + sqrt5*r + 5.0/3*r2[j]) * e[j]
			w[j], c[j] = wj*share, wj*sf*(5.0/3)*(1+sqrt5*r)*e[j]
		}
		grad[dims] += sf * full
		for k := range dt.columns {
			col := &dt.columns[k]
			m, codes := len(col.values), col.codes[:i]
			at := int(col.codes[i]) * m
			t := &f.tables[k]
			square, corr, slope := t.square[at:at+m], t.corr[at:at+m], t.slope[at:at+m]
			length, additive := 0.0, 0.0
			for j, b := range codes {
				length += w[j]*slope[b] + c[j]*square[b]
				additive += w[j] * corr[b]
			}
			grad[k] += length
			grad[dims+1] += additive
		}
		self := 0.5 * (f.k[i*n+i] - ai*ai)
		grad[dims] += self * sf
		grad[dims+1] += self * h.sa()
		grad[dims+2] += self * h.sn()
	}
}

func (f *fitter) gradientRecords(dt *data, h hyper, grad []float64) {
	n := dt.n
	for c := range dt.records {
		sum := 0.0
		for i := range n {
			gi := dt.g[i*dt.records+c]
			for j := range i {
				sum += (f.k[i*n+j] - f.alpha[i]*f.alpha[j]) * gi * dt.g[j*dt.records+c]
			}
			sum += 0.5 * (f.k[i*n+i] - f.alpha[i]*f.alpha[i]) * gi * gi
		}
		grad[len(dt.columns)+3+c] += h.tau(c) * sum
	}
}

// wall is the weight of the quadratic beyond a prior's range.
const wall = 50

func addPriors(theta, grad []float64, ps []prior) float64 {
	sum := 0.0
	for i, p := range ps {
		z := (theta[i] - p.mean) / p.sd
		sum += 0.5 * z * z
		grad[i] += z / p.sd
		if over := theta[i] - p.high; over > 0 {
			sum += wall * over * over
			grad[i] += 2 * wall * over
		}
		if under := p.low - theta[i]; under > 0 {
			sum += wall * under * under
			grad[i] -= 2 * wall * under
		}
	}
	return sum
}

// fit improves theta in place by at most a number of BFGS steps and returns the value reached.
func (f *fitter) fit(dt *data, theta []float64, iterations int) float64 {
	return minimise(func(x, g []float64) (float64, bool) { return f.objective(dt, x, g) }, theta, iterations)
}
