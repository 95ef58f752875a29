package decide

import (
	"fmt"
	"math"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
)

// The numbers of nominating and re-measuring.
const (
	// near is within how many posterior deviations of what is to be beaten a candidate is worth measuring again.
	near = 2
	// maxMeasurements bounds how often one candidate is measured before it is confirmed or left.
	maxMeasurements = 12
	// sure is the posterior probability of being better at which a candidate is nominated while the search goes on. At the
	// end, where no later confirmation needs the significance, evens are enough.
	sure, evens = 0.95, 0.5
	// halfGain is the part of the gain that a confirmation is sized for which a nominee must be expected to have.
	halfGain = 0.5
)

// remeasure chooses the near-tie that may most plausibly be best, within the share of device time.
func (s *State) remeasure() (Decision, bool) {
	if s.Counts.Evaluated == 0 || s.flying(scheduler.PurposeRemeasure) {
		return Decision{}, false
	}
	each := s.Time.Device / float64(max(1, s.NextRecord-1))
	if s.Time.Remeasure+each > s.Settings.RemeasureShare*s.Time.Device {
		return Decision{}, false
	}
	beat := s.ToBeat()
	var best *Contender
	hope := math.Inf(1)
	var belief crown.Belief
	for i := range s.Contenders {
		c := &s.Contenders[i]
		if c.Flying || c.Rejected != "" || c.N >= maxMeasurements {
			continue
		}
		b := s.Belief(c)
		if h := b.Mean - b.SD; b.Mean-near*math.Hypot(b.SD, beat.SD) < beat.Mean && h < hope {
			best, hope, belief = c, h, b
		}
	}
	if best == nil {
		return Decision{}, false
	}
	if p := belief.Better(beat); p > sure && beat.Mean-belief.Mean > near*s.Settings.Confirm.Gain {
		return Decision{}, false // no near-tie: it goes to a confirmation as it is
	}
	return Decision{Kind: KindRemeasure, Point: best.Point, Why: map[string]float64{"measurements": float64(best.N), "posterior_mean": math.Exp(belief.Mean), "posterior_sd": belief.SD}}, true
}

// nominee returns the contender with the best shrunken posterior mean when it is better than what is to be beaten with at
// least the probability p, and by enough.
func (s *State) nominee(p float64) (*Contender, map[string]float64) {
	c := s.Best()
	if c == nil || c.Flying {
		return nil, nil
	}
	b, beat := s.Belief(c), s.ToBeat()
	gain, better := beat.Mean-b.Mean, b.Better(beat)
	if better < p || gain < halfGain*s.Settings.Confirm.Gain {
		return nil, nil
	}
	return c, map[string]float64{"expected_gain": gain, "probability_better": better, "measurements": float64(c.N)}
}

// confirmation decides whether to confirm a nominee while the search goes on.
func (s *State) confirmation(in Inputs) (Decision, bool) {
	if s.flying(scheduler.PurposeConfirm) || !s.probed() {
		return Decision{}, false
	}
	c, why := s.nominee(sure)
	if c == nil {
		return Decision{}, false
	}
	size := s.NextSize()
	share := s.Settings.Confirm.Share
	if s.Confirmed == 0 {
		share = max(share, firstShare)
	}
	reached := s.Settings.Target > 0 && 1/math.Exp(s.Belief(c).Mean) >= s.Settings.Target
	if !reached && s.Time.Confirm+s.confirmSeconds(size.Rounds) > share*s.horizon(in) {
		return Decision{}, false
	}
	return Decision{Kind: KindConfirm, Point: c.Point, Size: size, Why: why}, true
}

// profile decides whether the incumbent is to be profiled: each one once, and at most one every so many evaluations. A second
// profile of the same kernel would hold the device for seconds and say the same.
func (s *State) profile() (Decision, bool) {
	every, inc := s.Settings.ProfileEvery, s.Incumbent()
	if every <= 0 || inc == nil || inc.Point.ID == s.Profiled || s.Counts.Evaluated < s.ProfiledAt+every || s.flying(scheduler.PurposeProfile) {
		return Decision{}, false
	}
	return Decision{Kind: KindProfile, Point: inc.Point, Why: map[string]float64{"evaluations": float64(s.Counts.Evaluated), "since": float64(s.ProfiledAt)}}, true
}

// horizon is the time that the share of confirmations is taken of: with a wall budget what of it has passed and a tenth of
// the rest, so that a first incumbent comes early enough to race against; else the time spent.
func (s *State) horizon(in Inputs) float64 {
	if w := s.Settings.Budget.WallSeconds; w > 0 {
		return in.SpentSeconds + 0.1*max(0, w-in.SpentSeconds)
	}
	return in.SpentSeconds
}

// firstShare is what the first confirmation may take of the time at least, however small the share of all: nothing is raced
// against before there is an incumbent.
const firstShare = 0.25

// probed reports whether every structure has had its default and probes, so that the first confirmation is not spent on the
// first thing seen.
func (s *State) probed() bool {
	for i := range s.Structures {
		if st := &s.Structures[i]; !s.closed(st) && !st.Exhausted && st.Told < 1+s.Settings.Probes && s.Confirmed == 0 {
			return false
		}
	}
	return true
}

// NextSize is how large the next confirmation will be; it needs the A/A run.
func (s *State) NextSize() crown.Size {
	limit := s.Settings.Confirm.MaxRounds
	if w, each := s.Settings.Budget.WallSeconds, s.roundSeconds(s.contestants()); w > 0 && each > 0 {
		limit = min(limit, int(roundsShare*w/each))
	}
	key := [2]int{s.Confirmed + 1, limit}
	if s.sized.Rounds == 0 || s.sizedFor != key {
		s.sized, s.sizedFor = crown.Plan(s.Settings.Confirm, s.AA.SD, key[0], limit), key
	}
	return s.sized
}

// roundsShare bounds the paired rounds of one confirmation to this part of the wall budget.
const roundsShare = 0.08

// overheadShare is the part of a contestant's time in a round that does not shrink with a faster kernel: writing inputs,
// poisoning, comparing.
const overheadShare = 0.3

// roundSeconds is what one round of the baseline with candidates others beside it takes, judged by the A/A run's rounds of
// two baselines and by how much faster the best so far is.
func (s *State) roundSeconds(candidates int) float64 {
	baseline := s.AA.SecondsPerRound / 2
	faster := 1.0
	if best := s.bestObjective(); best > 0 && best < 1 {
		faster = best
	}
	return baseline * (1 + float64(candidates)*(overheadShare+(1-overheadShare)*faster))
}

// contestants is how many stand beside the baseline in the next confirmation.
func (s *State) contestants() int {
	if s.Incumbent() != nil {
		return 2
	}
	return 1
}

// confirmSeconds is what a confirmation is expected to take.
func (s *State) confirmSeconds(rounds int) float64 {
	if s.Time.LastConfirm > 0 {
		return s.Time.LastConfirm
	}
	return confirmVerify*s.verifySeconds() + float64(rounds)*s.roundSeconds(s.contestants())
}

// verifySeconds is what the verification of one search evaluation takes, judged by the A/A run's.
func (s *State) verifySeconds() float64 { return max(0, s.Time.AATook-s.Time.AAMeasure) }

// Reserve is the wall time kept back for the last confirmation and the replay.
func (s *State) Reserve() float64 {
	w := s.Settings.Budget.WallSeconds
	if s.AA == nil {
		return s.Settings.ReplayReserve * w
	}
	rounds := s.NextSize().Rounds
	confirm := s.confirmSeconds(rounds)
	replay := replayVerify*s.verifySeconds() + float64(rounds)*s.roundSeconds(1)
	return min(max(confirm+replay, s.Settings.ReplayReserve*w), 0.6*w)
}

// How much longer the verification of a confirmation (4 hidden sizes, 3 input sets) and of a replay (8, all distributions)
// takes than that of a search (1 and 1): the hidden sizes are small beside the scored ones, so it goes by the sets.
const (
	confirmVerify = 3.5
	replayVerify  = 9
)

// ending confirms the last nominee, replays the incumbent and finishes.
func (s *State) ending(in Inputs) Decision {
	if len(s.Flying) > 0 {
		return Decision{Kind: KindWait}
	}
	if s.Replayed != nil {
		return Decision{Kind: KindFinish, Reason: s.EndReason}
	}
	if !s.FinalTried && !s.targetReached() {
		if c, why := s.nominee(evens); c != nil {
			return Decision{Kind: KindConfirm, Point: c.Point, Size: s.NextSize(), Why: why}
		}
	}
	if inc := s.Incumbent(); inc != nil {
		return Decision{Kind: KindReplay, Point: inc.Point, Size: crown.Size{Rounds: max(s.Settings.Confirm.MinRounds, inc.Verdict.Paired.Rounds)}}
	}
	return Decision{Kind: KindFinish, Reason: s.EndReason}
}

func (s *State) targetReached() bool {
	inc := s.Incumbent()
	return inc != nil && s.Settings.Target > 0 && inc.Verdict.Paired.Speedup >= s.Settings.Target
}

// Judge turns the outcome of a confirmation into its verdict. objective is that of the contest's medians.
func (s *State) Judge(t *scheduler.Trial, o *scheduler.Summary, objective float64) scheduler.Verdict {
	v := scheduler.Verdict{Confirmation: t.Confirmation, Point: t.Point, Alpha: crown.Alpha(s.Settings.Confirm.Alpha, t.Confirmation), P: 1, Paired: o.Contest, Objective: objective}
	if !o.Fault.Measured() || o.Contest == nil {
		v.Reason = fmt.Sprintf("its confirmation ended in %s: %s", o.Fault, o.Reason)
		return v
	}
	p := o.Contest
	v.P = p.P
	v.Detectable = crown.Detectable(p.SD, v.Alpha, s.Settings.Confirm.Power, p.Rounds)
	limit := 1 + s.Rules.MaxSizeRegression
	switch {
	case o.Quarantined:
		v.Reason = "quarantined: below the physical floor; something is measured that is not the work"
	case s.Rules.MaxSizeRegression > 0 && p.WorstRatio > limit:
		v.Reason = fmt.Sprintf("not eligible: %.2f × the baseline or the incumbent on one size, over %.2f", p.WorstRatio, limit)
	case p.P > v.Alpha:
		v.Reason = fmt.Sprintf("gain %+.2f %% over the %s in %d rounds, p = %.3g over %.3g; the smallest gain found with %.0f %% power would be %.2f %%", 100*p.Gain, against(t), p.Rounds, p.P, v.Alpha, 100*s.Settings.Confirm.Power, 100*v.Detectable)
	default:
		v.Crowned = true
		v.Reason = fmt.Sprintf("gain %+.2f %% over the %s in %d paired rounds, p = %.2g under %.2g", 100*p.Gain, against(t), p.Rounds, max(p.P, 1e-15), v.Alpha)
	}
	return v
}

// against names what a confirmation had to beat.
func against(t *scheduler.Trial) string {
	if n := len(t.Rivals); n > 0 {
		return t.Rivals[n-1].Role
	}
	return RoleBaseline
}

// Dethrone is the verdict over an incumbent whose replay failed.
func Dethrone(t *scheduler.Trial, o *scheduler.Summary) scheduler.Verdict {
	return scheduler.Verdict{Point: t.Point, P: 1, Dethroned: true, Reason: fmt.Sprintf("its replay ended in %s: %s", o.Fault, o.Reason)}
}

// ReplayHolds reports whether a replay's outcome lets the incumbent stand.
func ReplayHolds(o *scheduler.Summary) bool {
	return o.Fault.Measured() && o.Contest != nil && !o.Quarantined && o.Fault != harness.FaultInvalid
}
