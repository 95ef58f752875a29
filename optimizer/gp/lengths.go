package gp

import (
	"math"
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer/transfer"
)

// Figures of what records teach of the kernel.
const (
	lessonMost       = 300  // observations of a source that its fit reads: half drawn from all...
	lessonBest       = 0.05 // ...and half from the best share of them, where a search will be
	lessonLeast      = 30   // observations from which a source is read
	lessonSources    = 6    // sources read: those with the most observations
	lessonIterations = 80
	lessonWorth      = 0.6 // of a column's ln length, the share that is the records'; the rest is the usual one
	lessonSD         = 0.8 // of ln length about that
)

// recordLengths returns ln of the length that the records expect of each column of the cold kernel; nil when no source has enough
// observations. What a device holds fast may be new, but how far a parameter's effect reaches is much the same from one to the next,
// and a handful of observations cannot teach it: a Gaussian process pre-trained on other tasks (Wang et al., 2024, "Pre-trained
// Gaussian processes for Bayesian optimization"), here by the mean of one fit a source. From the fitEvery-th
// observation on they no longer count: records of something else teach wrong lengths, which held searches back to the end.
func recordLengths(p *transfer.Prior, o Options) []float64 {
	return p.Keep("lengths"+string(o.Without), func() []float64 {
		enc := newEncoder(p.Space().NewPool(), o)
		var sum []float64
		sources := lessons(p)
		for _, c := range sources {
			theta := fitLengths(enc, p.Measured(c), o)
			if sum == nil {
				sum = make([]float64, len(enc.columns))
			}
			for k := range sum {
				sum[k] += theta[k]
			}
		}
		for k := range sum {
			sum[k] = lessonWorth*sum[k]/float64(len(sources)) + (1-lessonWorth)*usualLength(len(sum))
		}
		return sum
	})
}

// lessons returns the sources that are read.
func lessons(p *transfer.Prior) []int {
	var out []int
	for c := range p.Len() {
		if len(p.Measured(c).Logs) >= lessonLeast {
			out = append(out, c)
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return len(p.Measured(out[a]).Logs) > len(p.Measured(out[b]).Logs) })
	return out[:min(len(out), lessonSources)]
}

// fitLengths returns the kernel's parameters as one source's observations have them.
func fitLengths(enc *encoder, m transfer.Measured, o Options) []float64 {
	take := lesson(m.Logs)
	encoded, y := make([][]uint16, len(take)), make([]float64, len(take))
	mean, variance := 0.0, 0.0
	for i, k := range take {
		id, _ := enc.pool.ID(m.Rows[k])
		encoded[i] = enc.encode(id)
		if y[i] = m.Logs[k]; o.has(PartThroughput) {
			y[i] = 1 - math.Exp(-m.Logs[k])
		}
		mean += y[i] / float64(len(y))
	}
	for i := range y {
		y[i] -= mean
		variance += y[i] * y[i] / float64(len(y))
	}
	for i := range y {
		y[i] /= math.Sqrt(variance) + 1e-9
	}
	dt := newData(enc, encoded)
	dt.y, dt.noise, dt.plain = y, make([]float64, len(y)), !o.has(PartAdditive)
	h := initial(len(enc.columns), 0, !dt.plain, nil)
	new(fitter).fit(dt, h.theta, lessonIterations)
	return h.theta
}

// lesson chooses the observations that a fit reads. It is the same in every search.
func lesson(logs []float64) []int {
	rng := rand.New(rand.NewPCG(1, 77))
	drawn := rng.Perm(len(logs))
	if len(logs) <= lessonMost {
		return drawn
	}
	out := drawn[:lessonMost/2]
	known := make(map[int]bool, lessonMost)
	for _, k := range out {
		known[k] = true
	}
	order := make([]int, len(logs))
	for k := range order {
		order[k] = k
	}
	sort.SliceStable(order, func(a, b int) bool { return logs[order[a]] < logs[order[b]] })
	best := max(1, int(lessonBest*float64(len(logs))))
	for _, k := range rng.Perm(best) {
		if len(out) < lessonMost && !known[order[k]] {
			out = append(out, order[k])
		}
	}
	return out
}
