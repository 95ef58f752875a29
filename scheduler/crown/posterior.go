package crown

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Moments is a running mean and variance (Welford).
type Moments struct {
	N    int64   `json:"n"`
	Mean float64 `json:"mean"`
	M2   float64 `json:"m2"`
}

// Add takes in one value.
func (m *Moments) Add(x float64) {
	m.N++
	d := x - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += d * (x - m.Mean)
}

// Variance returns the sample variance; 0 below two values.
func (m *Moments) Variance() float64 {
	if m.N < 2 {
		return 0
	}
	return m.M2 / float64(m.N-1)
}

// minPriorVar is the variance that configurations of one structure have at least before anything is known: a standard
// deviation of less than half the gain that confirmations are sized for. Without it a population that looks equal could never
// have a member that is not; with much more, the luckiest of thousands of equal ones would be nominated.
const minPriorVar = 0.004 * 0.004

// Belief is what is believed of a candidate's true ln(objective).
type Belief struct {
	Mean, SD float64
}

// Shrink combines n measurements of ln(objective) with their mean and per-measurement variance noise with the distribution
// of the candidate's structure: a normal prior whose variance is what the population shows beyond the noise.
func Shrink(population Moments, n int, mean, noise float64) Belief {
	prior := max(minPriorVar, population.Variance()-noise)
	centre := population.Mean
	if population.N < 4 { // too few to shrink towards
		centre = mean
	}
	if noise <= 0 {
		return Belief{Mean: mean}
	}
	likelihood := noise / float64(n)
	w := prior / (prior + likelihood)
	return Belief{Mean: centre + w*(mean-centre), SD: math.Sqrt(w * likelihood)}
}

// Better returns the probability that a's true value is below (better than) b's.
func (b Belief) Better(than Belief) float64 {
	sd := math.Hypot(b.SD, than.SD)
	d := than.Mean - b.Mean
	if sd == 0 {
		switch {
		case d > 0:
			return 1
		case d < 0:
			return 0
		default:
			return 0.5
		}
	}
	return distuv.UnitNormal.CDF(d / sd)
}

// Improvement returns E[max(0, best - X)] for X normal with the belief's mean and deviation.
func (b Belief) Improvement(best float64) float64 {
	d := best - b.Mean
	if b.SD == 0 {
		return max(0, d)
	}
	z := d / b.SD
	return d*distuv.UnitNormal.CDF(z) + b.SD*distuv.UnitNormal.Prob(z)
}
