package decide

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/reward"
)

// ErrReport says that a report contradicts itself, so that the harness that made it cannot be trusted with it.
var ErrReport = errors.New("report cannot be used")

// The roles of a contest's contestants.
const (
	RoleBaseline  = "baseline"
	RoleIncumbent = "incumbent"
	RoleCandidate = "candidate"
)

// Summarize extracts what the state needs of a final outcome. An error means that the report is broken: the harness's
// fault, not the kernel's.
func (s *State) Summarize(r *reward.Reward, t *scheduler.Trial, o *scheduler.Outcome) (*scheduler.Summary, error) {
	rep := &o.Report
	out := &scheduler.Summary{Attempt: o.Key.Attempt, Fault: rep.Fault, DeviceSeconds: rep.Split.Device, HeldSeconds: o.WorkerHeld,
		TookSeconds: rep.Split.Total, Reason: cut(rep.Reason, 300), Quarantined: belowFloor(rep.Sizes)}
	if out.Quarantined && out.Reason == "" {
		out.Reason = floorReason(rep.Sizes)
	}
	if !rep.Fault.Measured() {
		if rep.Fault == harness.FaultInvalid {
			return nil, fmt.Errorf("%w: it names no fault and no success", ErrReport)
		}
		return out, nil
	}
	switch t.Purpose {
	case scheduler.PurposeSearch, scheduler.PurposeRemeasure, scheduler.PurposeProfile:
	default:
		return out, s.contest(r, t, rep, out)
	}
	if rep.Censored != nil {
		out.Censored = true
		out.Objective = rep.Censored.LowerBound * math.Exp(s.ToBeat().Mean)
		if !(out.Objective > 0) || math.IsInf(out.Objective, 0) {
			return nil, fmt.Errorf("%w: it is censored at %v", ErrReport, rep.Censored.LowerBound)
		}
		return out, nil
	}
	return out, s.score(r, t, rep, out)
}

// score fills in the score of a whole measurement.
func (s *State) score(r *reward.Reward, t *scheduler.Trial, rep *harness.Report, out *scheduler.Summary) error {
	if len(rep.Sizes) != s.Sizes {
		return fmt.Errorf("%w: it times %d sizes of %d", ErrReport, len(rep.Sizes), s.Sizes)
	}
	for _, z := range rep.Sizes {
		out.TimesUS = append(out.TimesUS, z.MedianUS)
	}
	fails := 0
	if st := s.Structure(t.Point.Structure); st != nil {
		fails = s.direction(st.Direction).Fails
	}
	score, err := r.Score(reward.Input{TimesUS: out.TimesUS, BaselineUS: s.BaselineUS, BestUS: s.BestUS, Fails: fails})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	out.Score, out.PriorityScore, out.Objective = &score.Value, &score.Priority, score.Objective
	out.Variance = max(s.Noise(), sampleVariance(rep.Sizes))
	return nil
}

// sampleVariance estimates the variance of ln(mean ratio) from the spread of the samples behind each median: (p90-p10) is
// 2.56 standard deviations of a normal, and a median's error is 1.25 times a mean's.
func sampleVariance(sizes []harness.SizeTime) float64 {
	var sum float64
	for _, z := range sizes {
		if n := len(z.SamplesUS); n > 0 {
			e := 1.25 * z.SpreadRatio / 2.56 / math.Sqrt(float64(n))
			sum += e * e
		}
	}
	return sum / float64(len(sizes)*len(sizes))
}

// contest evaluates the paired rounds of an A/A run, a confirmation or a replay.
func (s *State) contest(r *reward.Reward, t *scheduler.Trial, rep *harness.Report, out *scheduler.Summary) error {
	c := rep.Contest
	if c == nil || len(c.Sizes) != s.Sizes {
		return fmt.Errorf("%w: a %s needs paired rounds over %d sizes", ErrReport, t.Purpose, s.Sizes)
	}
	base, candidate := slices.Index(c.Contestants, RoleBaseline), slices.Index(c.Contestants, RoleCandidate)
	rival := base
	if slices.ContainsFunc(t.Rivals, func(o scheduler.Opponent) bool { return o.Role == RoleIncumbent }) {
		rival = slices.Index(c.Contestants, RoleIncumbent)
	}
	p, err := crown.Evaluate(c, r, base, rival, candidate)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	p.SecondsPerRound = rep.Split.Measure / float64(p.Rounds)
	score, err := r.Score(reward.Input{TimesUS: p.RuntimeUS, BaselineUS: p.BaselineUS})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	out.Contest, out.TimesUS, out.Objective, out.Score = p, p.RuntimeUS, score.Objective, &score.Value
	return nil
}

// belowFloor reports whether any size ran faster than physics allows.
func belowFloor(sizes []harness.SizeTime) bool {
	for _, z := range sizes {
		if z.FloorUS > 0 && z.MedianUS > 0 && z.MedianUS < z.FloorUS {
			return true
		}
	}
	return false
}

// floorReason says at which size a runtime is below the floor, and by how much: the one furthest below it.
func floorReason(sizes []harness.SizeTime) string {
	worst, at := 1.0, ""
	for _, z := range sizes {
		if z.FloorUS > 0 && z.MedianUS > 0 && z.MedianUS/z.FloorUS < worst {
			worst, at = z.MedianUS/z.FloorUS, fmt.Sprintf("%s: %.2f us, where the device's own limits allow %.2f us at best", z.Size, z.MedianUS, z.FloorUS)
		}
	}
	return at
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
