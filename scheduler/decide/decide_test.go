package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/reward"
)

// walk plays a campaign with random structures, budgets and outcomes, out of order, and calls check after every decision.
func walk(t *testing.T, seed uint64, check func(s *decide.State, d decide.Decision, in decide.Inputs)) *decide.State {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	tk := harnesstest.Task(3)
	r, err := reward.New(tk.Reward)
	if err != nil {
		t.Fatal(err)
	}
	c := &scheduler.Campaign{ID: "walk", Task: tk, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Reward: tk.Reward,
		Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: 1 + rng.Int64N(120)}, Optimizer: "none", Probes: rng.IntN(4), InFlight: 1 + rng.IntN(3), Racing: true,
			RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 5, MinRounds: 4, MaxRounds: 20, Share: rng.Float64()}}}
	if rng.IntN(2) == 0 {
		c.Settings.Budget.WallSeconds = 20 + 200*rng.Float64()
	}
	s := decide.New(c)
	at := time.Unix(0, 0)
	emit := func(trial int64, data any) {
		if err := s.Apply(&scheduler.Event{Seq: s.NextSeq, Trial: trial, Time: at}, data); err != nil {
			t.Fatal(err)
		}
	}
	emit(0, &scheduler.Phase{Phase: scheduler.PhaseOpened})
	for n := range 1 + rng.IntN(4) {
		emit(0, &scheduler.Added{Structure: n + 1, Name: string(rune('a' + n)), Direction: string(rune('x' + n%2))})
	}
	size := len(c.Sizes())
	next := int64(0)
	for range 20_000 {
		in := decide.Inputs{Capacity: 1 + int(seed%3), SpentSeconds: at.Sub(time.Unix(0, 0)).Seconds()}
		d := s.Next(in)
		check(s, d, in)
		trial := scheduler.Trial{Point: d.Point, Plan: harness.Plan{Rounds: d.Size.Rounds}, Why: d.Why}
		switch d.Kind {
		case decide.KindFinish, decide.KindFail:
			return s
		case decide.KindEnd:
			emit(0, &scheduler.Phase{Phase: scheduler.PhaseEnding, Reason: d.Reason})
			continue
		case decide.KindWait:
			at = at.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			flying := s.FlyingTrials()
			if len(flying) == 0 {
				t.Fatalf("seed %d: waits for nothing", seed)
			}
			number := flying[rng.IntN(len(flying))]
			f := s.Flying[number].Trial
			o := outcome(rng, c, &f, size)
			sum, err := s.Summarize(r, &f, o)
			if err != nil {
				t.Fatal(err)
			}
			emit(number, sum)
			switch {
			case f.Purpose == scheduler.PurposeConfirm:
				v := s.Judge(&f, sum, sum.Objective)
				emit(number, &v)
			case f.Purpose == scheduler.PurposeReplay && !decide.ReplayHolds(sum):
				v := decide.Dethrone(&f, sum)
				emit(number, &v)
			}
			continue
		case decide.KindAA:
			trial.Purpose, trial.Plan.Rounds = scheduler.PurposeAA, 5
		case decide.KindDefault, decide.KindTune:
			next++
			trial.Purpose, trial.Asked = scheduler.PurposeSearch, d.Kind == decide.KindTune
			trial.Point = scheduler.Point{Structure: d.Structure, ID: time.Duration(next).String(), Configuration: harness.Configuration{"K": expr.Int(next)}}
		case decide.KindRemeasure:
			trial.Purpose = scheduler.PurposeRemeasure
		case decide.KindConfirm:
			trial.Purpose, trial.Confirmation = scheduler.PurposeConfirm, s.Confirmed+1
		case decide.KindReplay:
			trial.Purpose = scheduler.PurposeReplay
		default:
			t.Fatalf("decision %+v", d)
		}
		emit(s.NextTrial, &trial)
	}
	t.Fatalf("seed %d: the campaign never ends", seed)
	return nil
}

// outcome draws what becomes of a trial: any fault but for the baseline, any time.
func outcome(rng *rand.Rand, c *scheduler.Campaign, f *scheduler.Trial, sizes int) *scheduler.Outcome {
	o := &scheduler.Outcome{WorkerHeld: 0.5, Report: harness.Report{Fault: harness.FaultNone, Split: harness.Split{Device: 0.3, Measure: 0.4, Total: 0.5}}}
	if f.Purpose != scheduler.PurposeAA && rng.IntN(4) == 0 {
		o.Report.Fault = harness.Fault(2 + rng.IntN(6)) // rules to incorrect
		return o
	}
	times := func(factor float64) []float64 {
		out := make([]float64, sizes)
		for i := range out {
			out[i] = 100 * factor * (1 + 0.01*rng.Float64())
		}
		return out
	}
	factor := 0.5 + rng.Float64()
	for i, us := range times(factor) {
		o.Report.Sizes = append(o.Report.Sizes, harness.SizeTime{Size: c.Sizes()[i], MedianUS: us})
	}
	if f.Plan.Rounds > 0 {
		k := &harness.Contest{Sizes: c.Sizes(), Contestants: []string{"baseline", "candidate"}}
		if f.Purpose == scheduler.PurposeAA {
			factor = 1
		}
		for range f.Plan.Rounds {
			k.MedianUS = append(k.MedianUS, [][]float64{times(1), times(factor)})
		}
		o.Report.Contest = k
	}
	return o
}

// TestRulesOfDeciding holds over random campaigns with random outcomes in random order.
func TestRulesOfDeciding(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		crowned := 0
		s := walk(t, seed, func(s *decide.State, d decide.Decision, in decide.Inputs) {
			limit := s.Settings.InFlight * in.Capacity
			searching := s.Phase == scheduler.PhaseOpened && d.Kind != decide.KindWait && d.Kind != decide.KindEnd && d.Kind != decide.KindFail
			switch {
			case searching && len(s.Flying) >= limit:
				t.Fatalf("seed %d: plans with %d of %d under way", seed, len(s.Flying), limit)
			case s.AA == nil && d.Kind != decide.KindAA && d.Kind != decide.KindWait:
				t.Fatalf("seed %d: decides %d before the A/A run", seed, d.Kind)
			case d.Kind == decide.KindRemeasure && s.Time.Remeasure > s.Settings.RemeasureShare*s.Time.Device:
				t.Fatalf("seed %d: re-measures beyond its share: %v of %v", seed, s.Time.Remeasure, s.Time.Device)
			case (d.Kind == decide.KindTune || d.Kind == decide.KindDefault) && s.Counts.Evaluated+int64(s.FlyingSearches()) >= s.Settings.Budget.Evaluations:
				t.Fatalf("seed %d: searches beyond the budget", seed)
			case d.Kind == decide.KindTune && s.Directions[s.Structure(d.Structure).Direction].Paused:
				t.Fatalf("seed %d: searches a paused direction", seed)
			case d.Kind == decide.KindReplay && (s.Phase != scheduler.PhaseEnding || s.Incumbent() == nil || len(s.Flying) > 0):
				t.Fatalf("seed %d: replays at the wrong time", seed)
			case d.Kind == decide.KindConfirm && d.Size.Rounds < s.Settings.Confirm.MinRounds:
				t.Fatalf("seed %d: confirms in %d rounds", seed, d.Size.Rounds)
			}
			crowned = max(crowned, len(s.Crowns))
		})
		if s.Counts.Evaluated > s.Settings.Budget.Evaluations+int64(s.Settings.InFlight*3) {
			t.Errorf("seed %d: %d evaluations of %d", seed, s.Counts.Evaluated, s.Settings.Budget.Evaluations)
		}
		if inc := s.Incumbent(); inc != nil && s.Phase == scheduler.PhaseDone && s.Replayed == nil {
			t.Errorf("seed %d: ends with an incumbent that was not replayed", seed)
		}
	}
}

func TestDirectionPausesAfterMoreThanThreeFailedDraftsInARow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		faults []harness.Fault
		paused bool
		fails  int
	}{
		{[]harness.Fault{harness.FaultCompile, harness.FaultRules, harness.FaultCrash}, false, 3},
		{[]harness.Fault{harness.FaultCompile, harness.FaultRules, harness.FaultCrash, harness.FaultCompile}, true, 4},
		{[]harness.Fault{harness.FaultCompile, harness.FaultRules, harness.FaultIncorrect, harness.FaultCompile, harness.FaultCompile}, false, 4},
		{[]harness.Fault{harness.FaultIncorrect, harness.FaultLaunch, harness.FaultTimeout, harness.FaultIncorrect, harness.FaultIncorrect}, false, 0},
	} {
		tk := harnesstest.Task(2)
		s := decide.New(&scheduler.Campaign{ID: "pause", Task: tk, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Reward: tk.Reward})
		emit := func(trial int64, data any) {
			if err := s.Apply(&scheduler.Event{Seq: s.NextSeq, Trial: trial}, data); err != nil {
				t.Fatal(err)
			}
		}
		for i, f := range c.faults {
			emit(0, &scheduler.Added{Structure: i + 1, Name: "draft", Direction: "tiles"})
			emit(int64(i+1), &scheduler.Trial{Purpose: scheduler.PurposeSearch, Point: scheduler.Point{Structure: i + 1}})
			emit(int64(i+1), &scheduler.Summary{Fault: f})
		}
		if d := s.Directions["tiles"]; d.Paused != c.paused || d.Fails != c.fails {
			t.Errorf("%v: paused %v with %d failures, want %v with %d", c.faults, d.Paused, d.Fails, c.paused, c.fails)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	tk := harnesstest.Task(2)
	s := decide.New(&scheduler.Campaign{ID: "v", Task: tk, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Reward: tk.Reward,
		Settings: scheduler.Settings{Confirm: scheduler.ConfirmSettings{Alpha: 0.05, Power: 0.9, Gain: 0.01}}})
	good := scheduler.Paired{Rounds: 10, Gain: 0.05, SD: 0.01, P: 0.001, WorstRatio: 0.98, Speedup: 1.5}
	slow := good
	slow.WorstRatio = 1.31
	weak := good
	weak.P = 0.02
	for name, c := range map[string]struct {
		k      int
		o      scheduler.Summary
		crowns bool
	}{
		"clear gain":                    {1, scheduler.Summary{Fault: harness.FaultNone, Contest: &good}, true},
		"one size 31 % slower":          {1, scheduler.Summary{Fault: harness.FaultNone, Contest: &slow}, false},
		"below the floor":               {1, scheduler.Summary{Fault: harness.FaultNone, Contest: &good, Quarantined: true}, false},
		"incorrect":                     {1, scheduler.Summary{Fault: harness.FaultIncorrect}, false},
		"p 0.02 at the first, 0.0304":   {1, scheduler.Summary{Fault: harness.FaultNone, Contest: &weak}, true},
		"p 0.02 at the second, 0.0076":  {2, scheduler.Summary{Fault: harness.FaultNone, Contest: &weak}, false},
		"p 0.001 at the fifth, 0.00122": {5, scheduler.Summary{Fault: harness.FaultNone, Contest: &good}, true},
		"p 0.001 at the sixth, 0.00084": {6, scheduler.Summary{Fault: harness.FaultNone, Contest: &good}, false},
	} {
		v := s.Judge(&scheduler.Trial{Confirmation: c.k}, &c.o, 0.9)
		if v.Crowned != c.crowns || v.Reason == "" {
			t.Errorf("%s: %+v, want crowned %v with a reason", name, v, c.crowns)
		}
	}
}
