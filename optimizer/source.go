package optimizer

import "math"

// Source is what was measured of the same space elsewhere: on another device, size set, arch, or in an earlier campaign.
// Values of different sources need no common unit: each is compared with its own best.
type Source struct {
	Name         string
	Observations []Observation
}

// Judge is a strategy whose model knows more of a told configuration than its own measurements say.
type Judge interface {
	// Judge returns the posterior of the true ln(value) of at most n measured configurations, lowest mean first.
	Judge(h *History, n int) []Verdict
}

// Verdict is a told configuration with the posterior mean and deviation of its true ln(value).
type Verdict struct {
	ID   int
	Mean float64
	SD   float64
}

// Plain returns the best measured configurations by their measurements alone.
func Plain(h *History, n int) []Verdict {
	var out []Verdict
	for _, id := range h.BestIDs(n) {
		t, _ := h.Trial(id)
		out = append(out, Verdict{ID: id, Mean: t.Log, SD: math.Sqrt(t.Variance)})
	}
	return out
}

// BestIDs returns the n best measured configurations, best first; of equals, the one told first.
func (h *History) BestIDs(n int) []int {
	var best []Trial
	for _, t := range h.Trials {
		if t.Failed || t.Censored {
			continue
		}
		i := len(best)
		for i > 0 && t.Log < best[i-1].Log {
			i--
		}
		if i < n {
			best = append(best[:i], append([]Trial{t}, best[i:]...)...)
			best = best[:min(n, len(best))]
		}
	}
	out := make([]int, len(best))
	for i, t := range best {
		out[i] = t.ID
	}
	return out
}

// SinceGain returns how many configurations were told since the best one.
func (h *History) SinceGain() int {
	if h.best < 0 {
		return 0
	}
	return len(h.Trials) - 1 - h.best
}
