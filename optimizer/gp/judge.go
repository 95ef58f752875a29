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

func (m *model) judge(h *optimizer.History, n int) []optimizer.Verdict {
	alpha := m.post.solve(m.outputsActive())
	var out []optimizer.Verdict
	place := map[int]int{}
	for i, k := range m.active {
		t := m.done[k].of()
		if t.Censored || m.done[k].trial != h {
			continue
		}
		u := (m.out.y[k]-m.noise[i]*alpha[i])*m.out.scale + m.out.centre
		out = append(out, optimizer.Verdict{ID: t.ID, Mean: m.out.best - math.Log(math.Max(1-u, 1e-6))})
		place[t.ID] = i
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].Mean < out[b].Mean })
	out = out[:min(n, len(out))]
	for v := range out {
		i := place[out[v].ID]
		noise := m.noise[i]
		left := noise * math.Max(0, 1-noise*m.post.precision(i)) // variance of y given everything
		slope := m.out.scale * math.Exp(out[v].Mean-m.out.best)  // d ln t / d u
		out[v].SD = math.Sqrt(left) * slope
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
