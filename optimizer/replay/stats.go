package replay

import (
	"math"
	"math/rand/v2"
	"sort"
)

// deviation is the standard deviation of a sample; 0 for fewer than two.
func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	m := mean(x)
	sum := 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func geometric(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Log(math.Max(v, 1e-12))
	}
	return math.Exp(sum / float64(len(x)))
}

func quantile(x []float64, q float64) float64 {
	s := append([]float64(nil), x...)
	sort.Float64s(s)
	if len(s) == 0 {
		return math.NaN()
	}
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func median(x []float64) float64 {
	s := append([]float64(nil), x...)
	sort.Float64s(s)
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

// bootstrapRounds and the percentiles of the intervals that are printed.
const bootstrapRounds = 1000

// interval is a 95 % bootstrap interval of the geometric mean over spaces of the mean over seeds, seeds redrawn within each
// space. ratios[space][seed].
func interval(ratios [][]float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(95, 1))
	out := make([]float64, bootstrapRounds)
	means := make([]float64, len(ratios))
	for b := range out {
		for i, seeds := range ratios {
			sum := 0.0
			for range seeds {
				sum += seeds[rng.IntN(len(seeds))]
			}
			means[i] = sum / float64(len(seeds))
		}
		out[b] = geometric(means)
	}
	sort.Float64s(out)
	return out[bootstrapRounds*25/1000], out[bootstrapRounds*975/1000-1]
}

// standardError is the standard error of the mean; 0 of fewer than two values.
func standardError(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(v)-1) / float64(len(v)))
}
