package decide

import (
	"fmt"
	"math"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
)

// Kind says what to do next.
type Kind uint8

// The kinds of decisions. The zero Kind is invalid.
const (
	KindInvalid   Kind = iota
	KindWait           // nothing until an outcome or time comes
	KindAA             // measure the baseline against itself
	KindDefault        // try the default configuration of Structure
	KindTune           // ask the optimizer of Structure
	KindRemeasure      // measure Point again
	KindConfirm        // confirm Point with Size
	KindReplay         // replay the incumbent
	KindEnd            // stop searching, for Reason
	KindFinish         // the campaign is done
	KindFail           // the campaign cannot go on, for Reason
	KindTry            // take the structure of Draft into the search
	KindPoint          // try the configuration of Draft
	KindProfile        // profile the incumbent, Point
)

// Decision is the next step.
type Decision struct {
	Kind      Kind
	Structure int
	Draft     scheduler.Draft
	Point     scheduler.Point
	Size      crown.Size
	Reason    string
	Why       map[string]float64 // the numbers behind it
}

// Inputs are what a decision depends on besides the state.
type Inputs struct {
	Capacity     int     // trials that the workers evaluate at once
	SpentSeconds float64 // wall time used so far
	// GainFunc returns an optimizer's expected improvement over an objective for its best next configuration; false when
	// it has no opinion. nil: none has.
	GainFunc func(structure int, objective float64) (float64, bool)
	// MoreStructures says that structures may still come from outside, so that a searched-out space does not end the search.
	MoreStructures bool
}

// Next chooses the next step. It is called again until it says to wait.
func (s *State) Next(in Inputs) Decision {
	switch {
	case s.Fatal != "":
		return Decision{Kind: KindFail, Reason: s.Fatal}
	case s.Phase == scheduler.PhaseDone:
		return Decision{Kind: KindFinish}
	case s.AA == nil:
		if len(s.Flying) > 0 {
			return Decision{Kind: KindWait}
		}
		return Decision{Kind: KindAA}
	case s.Phase == scheduler.PhaseEnding:
		return s.ending(in)
	}
	if reason := s.over(in); reason != "" {
		return Decision{Kind: KindEnd, Reason: reason}
	}
	if s.Held {
		return Decision{Kind: KindWait}
	}
	if len(s.Flying) >= max(1, s.Settings.InFlight*in.Capacity) {
		return Decision{Kind: KindWait}
	}
	if d, ok := s.profile(); ok {
		return d
	}
	if d, ok := s.confirmation(in); ok {
		return d
	}
	if s.fullyPlanned() {
		return Decision{Kind: KindWait}
	}
	return s.search(in)
}

// over says why the search must end now; "" when it goes on.
func (s *State) over(in Inputs) string {
	b := s.Settings.Budget
	if s.Stopped != "" {
		return s.Stopped
	}
	if inc := s.Incumbent(); inc != nil && s.Settings.Target > 0 && inc.Verdict.Paired.Speedup >= s.Settings.Target {
		return fmt.Sprintf("the target speedup of %.2f is reached", s.Settings.Target)
	}
	if b.Evaluations > 0 && s.Counts.Evaluated >= b.Evaluations {
		return fmt.Sprintf("the budget of %d evaluations is used", b.Evaluations)
	}
	if b.DeviceSeconds > 0 && s.Time.Device >= b.DeviceSeconds {
		return fmt.Sprintf("the budget of %.0f device-seconds is used", b.DeviceSeconds)
	}
	if b.WallSeconds > 0 && in.SpentSeconds+s.Reserve() >= b.WallSeconds && (s.firstLook() || in.SpentSeconds >= b.WallSeconds) {
		return fmt.Sprintf("%.0f s of %.0f s are left, which the last confirmation and the replay need", max(0, b.WallSeconds-in.SpentSeconds), b.WallSeconds)
	}
	return ""
}

// firstLook reports whether every structure's default has had its outcome: a reserve that leaves no time even for that would
// keep time for confirming nothing.
func (s *State) firstLook() bool {
	for i := range s.Structures {
		if st := &s.Structures[i]; !s.closed(st) && st.Told == 0 {
			return false
		}
	}
	return true
}

// fullyPlanned reports whether enough suggestions are under way to use up the budget of evaluations.
func (s *State) fullyPlanned() bool {
	b := s.Settings.Budget.Evaluations
	return b > 0 && s.Counts.Evaluated+int64(s.FlyingSearches()) >= b
}

// search chooses among defaults, probes, re-measuring and the structures' competition.
func (s *State) search(in Inputs) Decision {
	open := false
	for i := range s.Structures {
		if st := &s.Structures[i]; !st.DefaultPlanned && !s.closed(st) {
			return Decision{Kind: KindDefault, Structure: st.Number, Why: map[string]float64{"structures": float64(len(s.Structures))}}
		}
	}
	for i := range s.Structures {
		st := &s.Structures[i]
		if s.closed(st) || st.Exhausted {
			continue
		}
		open = true
		if st.Asked < 1+s.Settings.Probes {
			return Decision{Kind: KindTune, Structure: st.Number, Why: map[string]float64{"probe": float64(st.Asked)}}
		}
	}
	if d, ok := s.remeasure(); ok {
		return d
	}
	if s.Drafts.Enabled || len(s.Drafts.Ready) > 0 {
		if d, ok := s.blended(in); ok {
			return d
		}
	} else if open {
		if d, ok := s.compete(in); ok {
			return d
		}
	}
	if len(s.Flying) > 0 || in.MoreStructures {
		return Decision{Kind: KindWait}
	}
	return Decision{Kind: KindEnd, Reason: "every structure is searched out"}
}

// closed reports whether a structure gets no more trials.
func (s *State) closed(st *Structure) bool {
	return st.Dropped || s.direction(st.Direction).Paused
}

// exploreEvery is how often the structure that was asked least gets the slot, whatever its expected improvement: the
// estimate of a structure that is never tried never changes.
const exploreEvery = 12

// compete gives the slot to the structure that a person pinned, else to the one with the largest expected improvement over the best so
// far per second.
func (s *State) compete(in Inputs) (Decision, bool) {
	total := 0
	var least, best *Structure
	var bestRate, bestGain float64
	for i := range s.Structures {
		st := &s.Structures[i]
		total += st.Asked
		if s.closed(st) || st.Exhausted {
			continue
		}
		if st.Pinned {
			return Decision{Kind: KindTune, Structure: st.Number, Why: map[string]float64{"pinned": 1}}, true
		}
		if least == nil || st.Asked < least.Asked {
			least = st
		}
		gain := s.gain(st, in)
		if rate := gain / s.cost(st); best == nil || rate > bestRate {
			best, bestRate, bestGain = st, rate, gain
		}
	}
	if best == nil {
		return Decision{}, false
	}
	if total%exploreEvery == 0 && least != best {
		return Decision{Kind: KindTune, Structure: least.Number, Why: map[string]float64{"explore": float64(least.Asked)}}, true
	}
	return Decision{Kind: KindTune, Structure: best.Number, Why: map[string]float64{"expected_improvement": bestGain, "per_second": bestRate, "cost_seconds": s.cost(best)}}, true
}

// gain is a structure's expected improvement over the best objective of the campaign, its direction's failures taken off.
func (s *State) gain(st *Structure, in Inputs) float64 {
	best := s.bestObjective()
	if best == 0 {
		return 1 / float64(1+st.Asked) // nothing measured yet: take turns
	}
	handicap := s.FailWeight * float64(s.direction(st.Direction).Fails)
	if in.GainFunc != nil {
		if g, ok := in.GainFunc(st.Number, max(best-handicap, best*0.01)); ok {
			return g
		}
	}
	if st.Best == 0 {
		return 0.01 * best / float64(1+st.Told)
	}
	// Without a model: the next suggestion is expected somewhat above the structure's best, within what its configurations
	// differ by, narrowing as they are tried.
	spread := math.Sqrt(st.Logs.Variance())
	if st.Measured < 3 {
		spread = max(spread, 0.3)
	}
	// What racing stopped was tried as well, and was worse.
	spread = min(max(spread, 0.02), 1) / math.Sqrt(1+float64(st.Told)/16)
	x := crown.Belief{Mean: math.Log(st.Best+handicap) + spread/2, SD: spread}
	return best * x.Improvement(math.Log(best))
}

func (s *State) bestObjective() float64 {
	best := 0.0
	for i := range s.Structures {
		if b := s.Structures[i].Best; b > 0 && (best == 0 || b < best) {
			best = b
		}
	}
	return best
}

// cost is what one evaluation of a structure holds a worker for, in seconds; the mean over all structures before it is known.
func (s *State) cost(st *Structure) float64 {
	if st.Cost.N > 0 {
		return max(st.Cost.Mean, 1e-6)
	}
	var sum, n float64
	for i := range s.Structures {
		sum += s.Structures[i].Cost.Mean * float64(s.Structures[i].Cost.N)
		n += float64(s.Structures[i].Cost.N)
	}
	if n == 0 {
		return 1
	}
	return max(sum/n, 1e-6)
}
