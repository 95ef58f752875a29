package gp

import (
	"math"
	"sort"

	"ridgepoint/optimizer"
)

var (
	_ optimizer.Judge = (*Strategy)(nil)
	_ optimizer.Judge = (*Warm)(nil)
)

// Judge returns the best measured configurations by the model's posterior, in which the known variance of a measurement
// shrinks it towards what its neighbourhood predicts; the fitted noise counts as the kernel's own roughness and does not.
func (s *Strategy) Judge(h *optimizer.History, n int) []optimizer.Verdict {
	s.begin(h)
	if h.OK < 2 {
		return optimizer.Plain(h, n)
	}
	s.model.prepare(h, s.enc)
	return s.model.judge(h, n)
}

// Judge asks the cold model: records of elsewhere have no say in what was measured here.
func (s *Warm) Judge(h *optimizer.History, n int) []optimizer.Verdict { return s.cold.Judge(h, n) }

// Figures of the verdicts. A model that smooths more than the truth is smooth drags a configuration towards its neighbours and is
// sure of it: the variance that it claims for what it predicts from the others is scaled by how far off it is on the contenders.
const (
	contenders = 24 // best by the model, and as many by their own measurements
	doubtMost  = 4  // largest scale
)

// judge returns the n lowest verdicts. Each weighs a configuration's measurements with what the model predicts of it from all
// others.
func (m *model) judge(h *optimizer.History, n int) []optimizer.Verdict {
	alpha := m.post.solve(m.outputsActive())
	at := m.contend(h, alpha, max(n, contenders))
	precision := make([]float64, len(at))
	doubt := 0.0 // mean square of the standardised leave-one-out errors
	for c, i := range at {
		precision[c] = m.post.precision(i)
		doubt += alpha[i] * alpha[i] / precision[c] / float64(len(at))
	}
	doubt = math.Min(math.Max(doubt, 1), doubtMost)
	out := make([]optimizer.Verdict, 0, len(at))
	for c, i := range at {
		k, noise := m.active[i], m.noise[i]
		predicted := m.out.y[k] - alpha[i]/precision[c]
		variance := doubt * math.Max(1/precision[c]-noise, 1e-12) // of the true value about it
		share := variance / (variance + noise)                    // of the measurements
		mean := m.logTime(predicted + share*(m.out.y[k]-predicted))
		slope := m.out.scale * math.Exp(mean-m.out.best) // d ln t / d u
		out = append(out, optimizer.Verdict{ID: m.done[k].of().ID, Mean: mean, SD: math.Sqrt(share*noise) * slope})
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].Mean < out[b].Mean })
	return out[:min(n, len(out))]
}

// contend returns positions in active, ascending, of the limit best of a history's measured configurations by the posterior mean,
// and of as many by their own measurements.
func (m *model) contend(h *optimizer.History, alpha []float64, limit int) []int {
	var all []int
	for i, k := range m.active {
		if !m.done[k].of().Censored && m.done[k].trial == h {
			all = append(all, i)
		}
	}
	best := map[int]bool{}
	take := func(value func(i int) float64) {
		order := append([]int(nil), all...)
		sort.SliceStable(order, func(a, b int) bool { return value(order[a]) < value(order[b]) })
		for _, i := range order[:min(limit, len(order))] {
			best[i] = true
		}
	}
	take(func(i int) float64 { return m.out.y[m.active[i]] - m.noise[i]*alpha[i] })
	take(func(i int) float64 { return m.out.y[m.active[i]] })
	var out []int
	for _, i := range all {
		if best[i] {
			out = append(out, i)
		}
	}
	return out
}

// logTime returns ln t of a standardised share of throughput lost.
func (m *model) logTime(y float64) float64 {
	return m.out.best - math.Log(math.Max(1-y*m.out.scale-m.out.centre, 1e-6))
}

// foresight is the rank correlation of the observations with what the model expects of each when it knows only the others.
func (m *model) foresight() float64 {
	expected, seen := m.post.leftOut(m.outputsActive()), make([]float64, len(m.active))
	for i, k := range m.active {
		if m.out.p != nil {
			expected[i] += m.out.p[k] / m.out.scale
		}
		seen[i] = m.done[k].of().Log
	}
	return spearman(expected, seen)
}

// leftOut returns the posterior mean of each of the observations given all others (Rasmussen and Williams 2006, 5.12).
func (p *posterior) leftOut(y []float64) []float64 {
	out := p.solve(y)
	for i, a := range out {
		out[i] = y[i] - a/p.precision(i)
	}
	return out
}

// solve returns K⁻¹ y over the first len(y) observations.
func (p *posterior) solve(y []float64) []float64 {
	z := append([]float64(nil), y...)
	for i := range z {
		for j := range i {
			z[i] -= p.l[i][j] * z[j]
		}
		z[i] /= p.l[i][i]
	}
	for i := len(z) - 1; i >= 0; i-- {
		z[i] /= p.l[i][i]
		for j := range i {
			z[j] -= p.l[i][j] * z[i]
		}
	}
	return z
}

// precision returns the k-th diagonal element of K⁻¹.
func (p *posterior) precision(k int) float64 {
	z := make([]float64, p.n)
	sum := 0.0
	for i := k; i < p.n; i++ {
		if i == k {
			z[i] = 1
		}
		for j := k; j < i; j++ {
			z[i] -= p.l[i][j] * z[j]
		}
		z[i] /= p.l[i][i]
		sum += z[i] * z[i]
	}
	return sum
}
