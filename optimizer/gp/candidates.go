package gp

import (
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer"
)

// candidates returns the neighbours of the best of the first n successes and a uniform draw, up to the limit; everything when it
// fits. With a prior, what the records think best comes first. Configurations told later stay in the list: scores pass them
// over.
func (m *model) candidates(h *optimizer.History, rng *rand.Rand, n int) []int {
	limit := m.most
	if n > candidateLate {
		limit = min(limit, candidateFew)
	}
	if h.Pool.Space().Enumerated() && h.Pool.Len() <= limit {
		return drawSubset(h.Pool, rng, limit)
	}
	_, own := h.Family()
	seen := make(map[int]bool, limit)
	for _, p := range m.done[:n] {
		if !m.wide || int(p.kin) == own {
			seen[p.id] = true
		}
	}
	out := make([]int, 0, limit)
	add := func(id int) {
		if !seen[id] && len(out) < limit {
			seen[id] = true
			out = append(out, id)
		}
	}
	if m.prior != nil {
		for _, id := range m.prior.Lowest(h.Pool, m.weightsNow(), recordCandidates+n) {
			if len(out) < recordCandidates {
				add(id)
			}
		}
	}
	for _, id := range m.elite(n) {
		add(id) // another structure's best, which may be new here
		for _, near := range h.Pool.Neighbours(id, nil) {
			add(near)
		}
	}
	for tries := 0; len(out) < limit && tries < 4*limit; tries++ {
		add(h.Pool.Draw(rng))
	}
	return out
}

// elite returns the best configurations of the first n successes, best first.
func (m *model) elite(n int) []int {
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	sort.SliceStable(order, func(a, b int) bool { return m.done[order[a]].of().FirstLog < m.done[order[b]].of().FirstLog })
	var out []int
	for _, k := range order {
		if p := &m.done[k]; len(out) < eliteCount && !p.of().Censored && !contains(out, p.id) {
			out = append(out, p.id)
		}
	}
	return out
}

func (m *model) weightsNow() []float64 {
	if m.out.weights != nil {
		return m.out.weights
	}
	w := make([]float64, m.prior.Len())
	for c := range w {
		w[c] = 1 / float64(len(w))
	}
	return w
}
