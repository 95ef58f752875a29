package gp

import (
	"math"
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer"
)

// The schedule of fits: at every success up to fitEvery, then at each growth by fitGrowth, and at least at every fitStep, since
// the posterior grows by all that came since. A fit goes on from the one before, but every restartEach-th of the later ones
// starts afresh, so that a model that is made for a long log repeats a few fits, not all.
const (
	fitEvery    = 40
	fitGrowth   = 1.25
	fitStep     = 250
	fitEarly    = 20  // iterations of the fits up to fitEvery, and of those that start afresh
	fitLater    = 8   // and of the others
	fitMost     = 250 // observations of a fit
	restartEach = 4
)

// growing are the numbers of successes at which the kernel is fitted, ascending, up to where the steps are even.
var growing = func() []int {
	var out []int
	for n := 2; ; {
		out = append(out, n)
		step := 1
		if n >= fitEvery {
			step = int(math.Ceil((fitGrowth - 1) * float64(n)))
		}
		if step >= fitStep {
			return out
		}
		n += step
	}
}()

// fitPoint returns the number of successes at a position of the schedule.
func fitPoint(at int) int {
	if last := len(growing) - 1; at > last {
		return growing[last] + (at-last)*fitStep
	}
	return growing[at]
}

// lastFit returns the position in the schedule of the last fit due with n successes; -1 when none is.
func lastFit(n int) int {
	last := len(growing) - 1
	if n >= growing[last] {
		return last + (n-growing[last])/fitStep
	}
	return sort.SearchInts(growing, n+1) - 1
}

// afresh reports whether the fit at a position of the schedule does not go on from the one before.
func afresh(at int) bool {
	first := fitEvery - 2 // the position of fitEvery
	return at == 0 || at >= first && (at-first)%restartEach == 0
}

// draws returns the random numbers of a fit: what for keeps uses apart.
func (m *model) draws(at int, what uint64) *rand.Rand {
	return rand.New(rand.NewPCG(m.opt.Seed, uint64(at+1)<<32|m.stream|what<<16))
}

// refit brings kernel and candidates to a position of the schedule.
func (m *model) refit(h *optimizer.History, enc *encoder, last int) {
	from := last
	for from > m.fitted+1 && !afresh(from) {
		from--
	}
	for at := from; at <= last; at++ {
		m.fit(enc, at)
	}
	m.fitted, m.post = last, nil
	m.ref = m.outputs(enc, m.done[:fitPoint(last)], true)
	m.ids = m.candidates(h, m.draws(last, 2), fitPoint(last))
}

// fit improves the kernel's parameters on the first successes, or on a part of them when they are many.
func (m *model) fit(enc *encoder, at int) {
	part := m.thin(m.draws(at, 1), fitPoint(at), fitMost)
	done := make([]point, len(part))
	encoded := make([][]uint16, len(part))
	for i, k := range part {
		done[i] = m.done[k]
		encoded[i] = enc.encodeKin(&done[i])
	}
	dt := newData(enc, encoded)
	out := m.outputs(enc, done, true)
	m.out.weights = out.weights
	dt.y, dt.noise, dt.records = out.y, out.noise, m.records()
	dt.plain = !m.opt.has(PartAdditive)
	if m.lengths != nil && fitPoint(at) < fitEvery { // see recordLengths
		dt.lengths = m.lengths()
	}
	g := m.features(enc)
	for i := range done {
		dt.g = append(dt.g, g(done[i].id)...)
	}
	iterations := fitLater
	if fitPoint(at) < fitEvery || afresh(at) {
		iterations = fitEarly
	}
	if afresh(at) {
		m.hyper = initial(len(enc.columns), dt.records, !dt.plain, dt.lengths)
	}
	m.fitter.fit(dt, m.hyper.theta, iterations)
}
