package gp

import (
	"math"

	"ridgepoint/optimizer"
)

// Gain returns the expected improvement of the best next configuration over an incumbent that may belong to another space,
// as a share of the incumbent's throughput: E[max(0, incumbent/t - 1)]. incumbent is ln of its value. ok is false while fewer
// than two values are known: then a probe is due, not an estimate.
func (s *Strategy) Gain(h *optimizer.History, incumbent float64) (gain float64, ok bool) {
	if h.OK < 2 || h.Remaining() <= 0 {
		return 0, false
	}
	s.begin(h)
	s.model.prepare(h, s.enc)
	s.gate.learn(h)
	m := s.model
	// In the model's output u = 1 - best/t, incumbent/t - 1 = ratio*(1-u) - 1 = ratio*(limit - u).
	ratio := math.Exp(incumbent - m.out.best)
	limit := ((1 - 1/ratio) - m.out.centre) / m.out.scale
	best := math.Inf(-1)
	for i, v := range m.score(h, s.enc, limit, 1, s.gate.forest != nil) {
		if !math.IsInf(v, -1) {
			best = math.Max(best, v+s.gate.logSuccess(h, m.post.ids[i]))
		}
	}
	return ratio * m.out.scale * math.Exp(best), true
}

// Gain asks the cold model, whose output is in the incumbent's currency.
func (s *Warm) Gain(h *optimizer.History, incumbent float64) (float64, bool) {
	return s.cold.Gain(h, incumbent)
}
