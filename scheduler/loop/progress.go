package loop

import (
	"math"
	"time"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

// Progress is where a running campaign stands, for a person who watches.
type Progress struct {
	Campaign      string
	Phase         scheduler.PhaseName
	Doing         string // what the newest planned trial does
	Counts        scheduler.Counts
	Flying        int
	BestSpeedup   float64 // of the reward's objective, believed; 0 before any
	BestStructure string
	Confirmed     float64 // speedup of the incumbent; 0 before any
	SpentSeconds  float64
	LeftSeconds   float64 // of the wall budget; 0 without one
	PerSecond     float64 // evaluations
	DeviceBusy    float64
	WorkerHeld    float64
}

const showEvery = 100 * time.Millisecond

// progress tells the watcher, at most every showEvery unless forced.
func (l *Loop) progress(force bool) {
	if l.cfg.ProgressFunc == nil {
		return
	}
	now := l.cfg.Now()
	if !force && now.Sub(l.shown) < showEvery {
		return
	}
	l.shown = now
	spent := l.spentSeconds()
	p := Progress{Campaign: l.campaign.ID, Phase: l.state.Phase, Counts: l.state.Counts, Flying: len(l.state.Flying), SpentSeconds: spent, Doing: l.doing(),
		PerSecond: ratio(float64(l.state.Counts.Evaluated), spent), DeviceBusy: ratio(l.state.Time.Device, spent), WorkerHeld: ratio(l.state.Time.Held, spent)}
	if w := l.state.Settings.Budget.WallSeconds; w > 0 {
		p.LeftSeconds = max(0, w-spent)
	}
	if b := l.state.Best(); b != nil {
		p.BestSpeedup, p.BestStructure = 1/math.Exp(l.state.Belief(b).Mean), l.structures[b.Point.Structure-1].Name
	}
	if inc := l.state.Incumbent(); inc != nil {
		p.Confirmed = inc.Verdict.Paired.Speedup
		if believed := math.Exp(-inc.Belief.Mean); believed > p.BestSpeedup {
			p.BestSpeedup, p.BestStructure = believed, l.structures[inc.Point.Structure-1].Name
		}
	}
	l.cfg.ProgressFunc(p)
}

// doing says in a few words what the oldest trial under way does.
func (l *Loop) doing() string {
	flying := l.state.FlyingTrials()
	if len(flying) == 0 {
		return ""
	}
	t := l.state.Flying[flying[0]].Trial
	name := "baseline"
	if t.Point.Structure > 0 {
		name = l.structures[t.Point.Structure-1].Name
	}
	switch t.Purpose {
	case scheduler.PurposeAA:
		return "measuring the baseline against itself"
	case scheduler.PurposeConfirm:
		return "confirming " + name
	case scheduler.PurposeReplay:
		return "replaying " + name
	case scheduler.PurposeRemeasure:
		return "measuring " + name + " again"
	case scheduler.PurposeProfile:
		return "profiling " + name
	default:
		return "trying " + name
	}
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func (l *Loop) result() *scheduler.Result {
	return ResultOf(l.campaign, l.state, func(number int) string { return l.structures[number-1].Name }, l.spentSeconds())
}

// ResultOf computes a campaign's result from its state. nameFunc gives structures their names.
func ResultOf(c *scheduler.Campaign, s *decide.State, nameFunc func(number int) string, spentSeconds float64) *scheduler.Result {
	r := &scheduler.Result{Campaign: c.ID, Task: c.Task.Name, Target: c.Target, Evaluations: s.Counts.Evaluated, Candidates: s.Counts,
		EvaluationsPerSecond: ratio(float64(s.Counts.Evaluated), spentSeconds), DeviceBusy: ratio(s.Time.Device, spentSeconds), WorkerHeld: ratio(s.Time.Held, spentSeconds)}
	inc := s.Incumbent()
	if inc == nil {
		return r
	}
	p := inc.Verdict.Paired
	w := &scheduler.Winner{Candidate: inc.Point.ID, Structure: nameFunc(inc.Point.Structure), Configuration: inc.Point.Configuration, Speedup: p.Speedup, Interval: p.SpeedupRange}
	replayed := (*scheduler.Paired)(nil)
	if s.Replayed != nil {
		replayed = s.Replayed.Contest
		w.ReplayedSpeedup, w.Interval = replayed.Speedup, replayed.SpeedupRange
	}
	for i, size := range c.Sizes() {
		row := scheduler.WinnerSize{Size: size, BaselineUS: p.BaselineUS[i], RuntimeUS: p.RuntimeUS[i]}
		if replayed != nil {
			row.BaselineUS, row.ReplayedUS = replayed.BaselineUS[i], replayed.RuntimeUS[i]
		}
		w.Sizes = append(w.Sizes, row)
	}
	r.Winner = w
	return r
}
