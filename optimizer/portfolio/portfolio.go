// Package portfolio shares one budget among strategies by what they earn. The Gaussian process leads: on recorded spaces it is
// ahead of the others at every budget. The others get a small share that grows with the gains they bring and never
// vanishes, so that a model which is wrong for a space cannot hold the search.
package portfolio

import (
	"context"
	"errors"
	"math"

	"ridgepoint/optimizer"
)

// Arm is one strategy of a portfolio.
type Arm struct {
	Name     string
	Strategy optimizer.Strategy
}

// Figures of the shares.
const (
	minorEach = 12        // once the lead is not alone, of each minorEach proposals one goes to a minor arm...
	minorMost = 4         // ...and to the minor arms together at most one of minorMost, when they earn more than the lead
	fade      = 1 - 1./40 // of what was earned, with each evaluation told
)

// Strategy is the portfolio. The first arm leads.
type Strategy struct {
	arms   []Arm
	alone  int         // proposals that the lead has alone
	asked  map[int]int // configuration id to arm
	earned []float64   // per arm: fading sum of ln improvements
	tries  []float64   // per arm: fading count of its evaluations
	seen   int         // trials of the history credited
	best   float64
}

// New returns a portfolio of a lead, which has the first alone proposals for itself, and minor arms.
func New(alone int, lead Arm, minor ...Arm) *Strategy {
	arms := append([]Arm{lead}, minor...)
	return &Strategy{arms: arms, alone: alone, asked: map[int]int{}, earned: make([]float64, len(arms)), tries: make([]float64, len(arms)), best: math.Inf(1)}
}

// Propose returns the proposal of the arm whose turn it is; when that arm has none, of the next.
func (s *Strategy) Propose(ctx context.Context, h *optimizer.History) (int, error) {
	s.credit(h)
	first := s.turn(h)
	var errs []error
	for k := range s.arms {
		arm := (first + k) % len(s.arms)
		id, err := s.arms[arm].Strategy.Propose(ctx, h)
		if err == nil {
			return id, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if !errors.Is(err, optimizer.ErrExhausted) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return 0, optimizer.ErrExhausted
	}
	return 0, errors.Join(errs...)
}

// Asked records which arm's turn a proposal was; it is called for every ask, also when a log is replayed.
func (s *Strategy) Asked(h *optimizer.History, id int) {
	s.credit(h)
	s.asked[id] = s.turn(h)
}

// turn returns the arm of the next proposal: a function of the counts of asks and of what was earned.
func (s *Strategy) turn(h *optimizer.History) int {
	if h.Asks < s.alone || len(s.arms) == 1 {
		return 0
	}
	every := minorEach
	best := 1 + (h.Asks/minorEach)%(len(s.arms)-1) // in rotation...
	for a := 1; a < len(s.arms); a++ {             // ...unless one earns more than the lead
		if s.rate(a) > s.rate(0) && s.rate(a) >= s.rate(best) {
			best, every = a, minorMost
		}
	}
	if h.Asks%every != 0 {
		return 0
	}
	return best
}

// rate is what an arm earned for each of its evaluations.
func (s *Strategy) rate(arm int) float64 { return s.earned[arm] / (s.tries[arm] + 1) }

// credit gives the gains of the trials told since the last call to the arms that proposed them.
func (s *Strategy) credit(h *optimizer.History) {
	for ; s.seen < len(h.Trials); s.seen++ {
		t := &h.Trials[s.seen]
		for a := range s.earned {
			s.earned[a] *= fade
			s.tries[a] *= fade
		}
		arm, asked := s.asked[t.ID]
		delete(s.asked, t.ID)
		gain := 0.0
		if !t.Failed && !t.Censored && t.Log < s.best {
			if !math.IsInf(s.best, 1) {
				gain = s.best - t.Log
			}
			s.best = t.Log
		}
		if asked {
			s.earned[arm] += gain
			s.tries[arm]++
		}
	}
}

// Judge asks the lead.
func (s *Strategy) Judge(h *optimizer.History, n int) []optimizer.Verdict {
	if j, ok := s.arms[0].Strategy.(optimizer.Judge); ok {
		return j.Judge(h, n)
	}
	return optimizer.Plain(h, n)
}

// Gain asks the lead; see strategy.Search.Gain.
func (s *Strategy) Gain(h *optimizer.History, incumbent float64) (float64, bool) {
	g, ok := s.arms[0].Strategy.(interface {
		Gain(h *optimizer.History, incumbent float64) (float64, bool)
	})
	if !ok {
		return 0, false
	}
	return g.Gain(h, incumbent)
}
