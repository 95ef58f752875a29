package strategy

import (
	"math"

	"ridgepoint/optimizer"
)

// Offer is what the best next configuration of a space promises, in the one currency of a campaign.
type Offer struct {
	Gain        float64 // expected improvement over the incumbent, as a share of the incumbent's throughput
	CostSeconds float64 // of one evaluation, by those told; 0 when unknown
	Known       bool    // false: fewer than two values are known, a probe is due
}

// PerSecond returns the gain for each device-second, or for each evaluation when the cost is unknown.
func (o Offer) PerSecond() float64 {
	if o.CostSeconds > 0 {
		return o.Gain / o.CostSeconds
	}
	return o.Gain
}

// Figures of the learning curve. Over recorded spaces the best after n evaluations is still about exp(gapWorth/n) times as slow
// as the space's optimum (five kernels, cold portfolio: 0.36 at 5, 0.13 at 20, 0.07 at 40, 0.03 at 80 in ln).
const (
	gapWorth = 2.2
	gapFirst = 3 // evaluations below which the curve is not steeper
)

// Gain returns what one more evaluation of the space is expected to improve on an objective value, which may be another
// structure's, in the objective's own units. How far the space's best still is from its optimum after n evaluations is taken
// as exponentially distributed with the mean that searches show: what a model fitted to a handful of points expects of a
// structure is too sure, and would leave a good structure untried for good.
func (s *Search) Gain(objective float64) float64 {
	n := float64(max(gapFirst, len(s.history.Trials)+len(s.history.Pending())))
	mean := gapWorth / n
	best, ok := s.history.Best()
	behind := unseenBehind
	if ok {
		behind = math.Max(0, best.Log-math.Log(objective))
	}
	return objective * mean / n * math.Exp(-behind/mean)
}

// unseenBehind is how far, in ln, a structure none of whose configurations ran counts as behind.
const unseenBehind = 2.0

// Offer returns the expected improvement of the space's best next configuration over a campaign's incumbent value, which may
// belong to another structure. A campaign that spends each evaluation on the structure with the highest offer for its cost
// stops tuning a structure as soon as another promises more.
func (s *Search) Offer(incumbent float64) Offer {
	o := Offer{CostSeconds: s.cost()}
	if !(incumbent > 0) {
		return o
	}
	if g, ok := s.strategy.(gainer); ok {
		o.Gain, o.Known = g.Gain(s.history, math.Log(incumbent))
		return o
	}
	o.Gain, o.Known = drawGain(s.history, math.Log(incumbent))
	return o
}

// gainer is a strategy whose model estimates the gain.
type gainer interface {
	Gain(h *optimizer.History, incumbent float64) (gain float64, ok bool)
}

// cost is the mean time of an evaluation told so far.
func (s *Search) cost() float64 {
	sum, n := 0.0, 0
	for _, t := range s.history.Trials {
		if t.Cost > 0 {
			sum += t.Cost
			n += max(1, t.Repeats)
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// drawGain is the gain of one more value drawn as those told: what a strategy without a model can say.
func drawGain(h *optimizer.History, incumbent float64) (float64, bool) {
	if h.OK < 2 || h.Remaining() <= 0 {
		return 0, false
	}
	mean, n := 0.0, float64(h.OK)
	for _, t := range h.Trials {
		if !t.Failed {
			mean += t.Log / n
		}
	}
	sum := 0.0
	for _, t := range h.Trials {
		if !t.Failed {
			sum += (t.Log - mean) * (t.Log - mean)
		}
	}
	sd := math.Sqrt(sum/(n-1)) + 1e-9
	z := (incumbent - mean) / sd
	return sd * (z*0.5*math.Erfc(-z/math.Sqrt2) + math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)), true
}
