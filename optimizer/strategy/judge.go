package strategy

import (
	"math"

	"ridgepoint/optimizer"
)

// Figures of repeated measurements: at most repeatShare of the measurements are repeats; a repeat must be expected to make
// the configuration handed over better by repeatWorth of its time: little, as the estimate sees one repeat ahead and a choice
// between equals takes several.
const (
	repeatShare = 0.14
	repeatWorth = 3e-5
	repeatFrom  = 20 // configurations told before the first repeat
	judged      = 24 // best configurations that are looked at
)

// Best returns the told configuration that the search holds best, by its model's posterior where it has one: the lowest of
// many noisy values is biased. ok is false while nothing was measured.
func (s *Search) Best() (c optimizer.Configuration, ok bool) {
	v := s.verdicts(1)
	if len(v) == 0 {
		return nil, false
	}
	return s.configuration(v[0].ID), true
}

// Verdicts returns the posterior of the best measured configurations, best first.
func (s *Search) Verdicts(n int) []optimizer.Verdict { return s.verdicts(n) }

// Remeasure returns a told configuration that is worth another measurement, given how many were spent on repeats: the one
// whose repeat is expected to improve the choice of the best most. ok is false when none is worth it.
func (s *Search) Remeasure(spent int) (c optimizer.Configuration, ok bool) {
	told := len(s.history.Trials)
	if told < repeatFrom || float64(spent+1) > repeatShare*float64(told) {
		return nil, false
	}
	v := s.verdicts(judged)
	best, at := repeatWorth, -1
	for i := range v {
		other := 0 // the best of the rest
		if i == 0 {
			other = 1
		}
		if other >= len(v) {
			break
		}
		if gain := s.knowledge(v[i], v[other].Mean); gain > best {
			best, at = gain, i
		}
	}
	if at < 0 {
		return nil, false
	}
	return s.configuration(v[at].ID), true
}

// knowledge is the knowledge gradient of one more measurement: how much lower, in ln(value), the choice's expected value
// becomes because the measurement may change the choice.
func (s *Search) knowledge(v optimizer.Verdict, other float64) float64 {
	t, _ := s.history.Trial(v.ID)
	if v.SD == 0 || t.Variance == 0 {
		return 0
	}
	single := t.Variance * float64(t.Repeats) // variance of one measurement
	moves := v.SD * v.SD / math.Sqrt(v.SD*v.SD+single)
	z := -math.Abs(v.Mean-other) / moves
	return moves * (math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) + z*0.5*math.Erfc(-z/math.Sqrt2))
}

func (s *Search) verdicts(n int) []optimizer.Verdict {
	if j, ok := s.strategy.(optimizer.Judge); ok {
		return j.Judge(s.history, n)
	}
	return optimizer.Plain(s.history, n)
}

func (s *Search) configuration(id int) optimizer.Configuration {
	return s.history.Pool.Space().Configuration(s.history.Pool.Row(id))
}
