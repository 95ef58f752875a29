package tpe

import (
	"math"
	"math/rand/v2"

	"ridgepoint/optimizer"
)

// estimator is a mixture of one product kernel for each row and a uniform prior. Over value indices each factor is a table:
// kernels[dim][centre*values+value] is the probability of the value under the kernel at the centre.
type estimator struct {
	rows    []optimizer.Row
	kernels [][]float64
	sizes   []int
	uniform float64
}

// newEstimator takes its widths from Scott's rule, as Optuna's multivariate estimator does, over coordinates in [0, 1]; the
// floor keeps a kernel from closing in on its centre.
func newEstimator(s *Sampler, rows []optimizer.Row) *estimator {
	dims := len(s.coords)
	e := &estimator{rows: rows, kernels: make([][]float64, dims), sizes: make([]int, dims), uniform: 1}
	n := float64(len(rows) + 1)
	width := 0.2 * math.Pow(n, -1/float64(dims+4))
	for j, coord := range s.coords {
		m := len(coord)
		e.sizes[j] = m
		e.uniform /= float64(m)
		e.kernels[j] = make([]float64, m*m)
		sigma := math.Max(width, 0.5/float64(max(m-1, 1)))
		for c := range m {
			row := e.kernels[j][c*m : (c+1)*m]
			sum := 0.0
			for v := range row {
				if s.space.Ordered(j) {
					d := (coord[v] - coord[c]) / sigma
					row[v] = math.Exp(-d*d/2) + 1e-3/float64(m)
				} else if row[v] = 1 / n; v == c {
					row[v]++
				}
				sum += row[v]
			}
			for v := range row {
				row[v] /= sum
			}
		}
	}
	return e
}

// draw fills row with a draw from the mixture.
func (e *estimator) draw(rng *rand.Rand, row optimizer.Row) {
	at := rng.IntN(len(e.rows) + 1)
	for j, m := range e.sizes {
		if at == len(e.rows) {
			row[j] = uint16(rng.IntN(m))
			continue
		}
		kernel := e.kernels[j][int(e.rows[at][j])*m:][:m]
		u := rng.Float64()
		k := 0
		for ; k < m-1 && u >= kernel[k]; k++ {
			u -= kernel[k]
		}
		row[j] = uint16(k)
	}
}

// logDensity returns ln of the mixture's probability of a row.
func (e *estimator) logDensity(row optimizer.Row) float64 {
	sum := e.uniform
	for _, centre := range e.rows {
		p := 1.0
		for j, m := range e.sizes {
			p *= e.kernels[j][int(centre[j])*m+int(row[j])]
		}
		sum += p
	}
	return math.Log(sum / float64(len(e.rows)+1))
}
