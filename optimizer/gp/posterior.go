package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// posterior is the Gaussian process over a fixed list of candidates, updated observation by observation: it keeps the
// Cholesky factor L of the observations' covariance and V = L⁻¹ K(X, candidates), so that a new observation costs one row.
// The output may change without a new factorisation.
type posterior struct {
	k       scales
	enc     *encoder
	ids     []int // candidates
	codes   [][]uint16
	records [][]float64 // of the candidates, by record
	n       int
	obs     [][]uint16
	obsG    [][]float64
	l       [][]float64 // rows of L
	v       []float64   // n rows of len(ids)
	prior   []float64   // prior variance of each candidate
	s2      []float64   // posterior variance
	mu      []float64
	r2, sum []float64 // scratch, by candidate
}

// scales are the kernel's parameters, no longer as logarithms.
type scales struct {
	inverse    []float64 // 1/length by column
	sf, sa, sn float64
	tau        []float64
}

func (h hyper) scales() scales {
	s := scales{sf: h.sf(), sa: h.sa(), sn: h.sn()}
	for k := range h.columns {
		s.inverse = append(s.inverse, h.inverse(k))
	}
	for c := range h.records() {
		s.tau = append(s.tau, h.tau(c))
	}
	return s
}

// jitterPost is added to the noise in the posterior.
const jitterPost = 1e-6

func newPosterior(k scales, enc *encoder, ids []int, g func(id int) []float64, capacity int) *posterior {
	p := &posterior{k: k, enc: enc, ids: ids}
	m := len(ids)
	p.codes = make([][]uint16, len(enc.columns))
	for j := range p.codes {
		p.codes[j] = make([]uint16, m)
	}
	for i, id := range ids {
		for j, c := range enc.encode(id) {
			p.codes[j][i] = c
		}
	}
	p.prior, p.s2, p.mu = make([]float64, m), make([]float64, m), make([]float64, m)
	p.r2, p.sum = make([]float64, m), make([]float64, m)
	p.v = make([]float64, 0, m*capacity)
	for i := range p.prior {
		p.prior[i] = k.sf + k.sa
	}
	if n := len(k.tau); n > 0 {
		p.records = make([][]float64, n)
		for c := range p.records {
			p.records[c] = make([]float64, m)
		}
		for i, id := range ids {
			for c, v := range g(id) {
				p.records[c][i] = v
				p.prior[i] += p.k.tau[c] * v * v
			}
		}
	}
	copy(p.s2, p.prior)
	return p
}

// cross writes k(x, candidate) for every candidate: squared distances and additive parts are tabulated by code, since a
// column has few distinct coordinates.
func (p *posterior) cross(x []uint16, g []float64, out []float64) {
	for i := range p.r2 {
		p.r2[i], p.sum[i] = 0, 0
	}
	share := p.k.sa / float64(len(p.codes))
	var square, additive []float64
	for k, codes := range p.codes {
		square, additive = p.tables(k, x[k], square[:0], additive[:0], share)
		r2, add := p.r2[:len(codes)], p.sum[:len(codes)]
		for i, c := range codes {
			r2[i] += square[c]
			add[i] += additive[c]
		}
	}
	sf := p.k.sf
	for i, r2 := range p.r2 {
		out[i] = sf*matern(math.Sqrt(r2)) + p.sum[i]
	}
	for c, column := range p.records {
		t := p.k.tau[c] * g[c]
		for i, v := range column {
			out[i] += t * v
		}
	}
}

func (p *posterior) tables(k int, code uint16, square, additive []float64, share float64) (s, a []float64) {
	column, inv := p.enc.columns[k], p.k.inverse[k]
	at := column.values[code]
	for c, v := range column.values {
		d := math.Abs(v-at) * inv
		if column.categorical {
			d = 0
			if uint16(c) != code {
				d = inv
			}
		}
		square = append(square, d*d)
		additive = append(additive, share*matern(d))
	}
	return square, additive
}

// between returns the kernel of two configurations.
func (p *posterior) between(x, y []uint16, gx, gy []float64) float64 {
	r2, sum := 0.0, 0.0
	for k, c := range p.enc.columns {
		d := 0.0
		switch {
		case !c.categorical:
			d = math.Abs(c.values[x[k]]-c.values[y[k]]) * p.k.inverse[k]
		case x[k] != y[k]:
			d = p.k.inverse[k]
		}
		r2 += d * d
		sum += matern(d)
	}
	v := p.k.sf*matern(math.Sqrt(r2)) + p.k.sa/float64(len(p.enc.columns))*sum
	for c := range gx {
		v += p.k.tau[c] * gx[c] * gy[c]
	}
	return v
}

// add appends one observation (its place, not its output) with a known variance beside the fitted noise.
func (p *posterior) add(x []uint16, g []float64, noise float64) {
	row := make([]float64, p.n+1)
	rest := p.k.sn + jitterPost + noise
	for i := range p.n {
		k := p.between(x, p.obs[i], g, p.obsG[i])
		li := p.l[i]
		for j := range i {
			k -= row[j] * li[j]
		}
		row[i] = k / li[i]
	}
	self := p.between(x, x, g, g) + rest
	for _, r := range row[:p.n] {
		self -= r * r
	}
	row[p.n] = math.Sqrt(math.Max(self, jitterPost))
	m := len(p.ids)
	p.v = append(p.v, make([]float64, m)...)
	last := p.v[p.n*m:]
	p.cross(x, g, last)
	if p.n > 0 && m > 0 {
		blas64.Gemv(blas.Trans, -1, blas64.General{Rows: p.n, Cols: m, Stride: m, Data: p.v[:p.n*m]},
			blas64.Vector{N: p.n, Inc: 1, Data: row}, 1, blas64.Vector{N: m, Inc: 1, Data: last})
	}
	scale := 1 / row[p.n]
	for i := range last {
		last[i] *= scale
		p.s2[i] -= last[i] * last[i]
	}
	p.l, p.obs, p.obsG = append(p.l, row), append(p.obs, x), append(p.obsG, g)
	p.n++
}

// drop removes the observations after the first n.
func (p *posterior) drop(n int) {
	m := len(p.ids)
	for r := n; r < p.n; r++ {
		for i, v := range p.v[r*m : (r+1)*m] {
			p.s2[i] += v * v
		}
	}
	p.v, p.l, p.obs, p.obsG, p.n = p.v[:n*m], p.l[:n], p.obs[:n], p.obsG[:n], n
}

// mean sets mu for the outputs u of the first len(u) observations and returns their posterior means at the observations.
func (p *posterior) mean(u []float64) []float64 {
	n, m := len(u), len(p.ids)
	z := make([]float64, n)
	for i := range n {
		s := u[i]
		li := p.l[i]
		for j := range i {
			s -= li[j] * z[j]
		}
		z[i] = s / li[i]
	}
	for i := range p.mu {
		p.mu[i] = 0
	}
	if n > 0 && m > 0 {
		blas64.Gemv(blas.Trans, 1, blas64.General{Rows: n, Cols: m, Stride: m, Data: p.v[:n*m]},
			blas64.Vector{N: n, Inc: 1, Data: z}, 1, blas64.Vector{N: m, Inc: 1, Data: p.mu})
	}
	alpha := z // L'⁻¹ z in place
	for i := n - 1; i >= 0; i-- {
		alpha[i] /= p.l[i][i]
		for j := range i {
			alpha[j] -= p.l[i][j] * alpha[i]
		}
	}
	at := make([]float64, n)
	noise := p.k.sn + jitterPost
	for i := range at {
		at[i] = u[i] - noise*alpha[i]
	}
	return at
}
