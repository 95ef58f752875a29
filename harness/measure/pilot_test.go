package measure_test

import (
	"context"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

// TestPilot counts launches of a race on a GPU: a candidate that is slow at the last size alone is stopped after a few launches of
// each size, one that is slow everywhere after those of one, and a good one is measured in full, the pilot's launches among
// them.
func TestPilot(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	kept := tk.Eval.TimedIters
	good := map[int64]float64{1000: 10, 2000: 20, 3000: 30} // the sizes of verifytest.Text
	for _, c := range []struct {
		name     string
		factor   map[int64]float64
		sizes    int // measured when it was stopped; 0: not stopped
		launches int
	}{
		{"good", map[int64]float64{1000: 1, 2000: 1, 3000: 1}, 0, 3 * (10 + 2 + kept + 1)}, // one more on contents never seen
		{"slow everywhere", map[int64]float64{1000: 2, 2000: 2, 3000: 2}, 1, 18},
		{"slow at the second", map[int64]float64{1000: 1, 2000: 2, 3000: 1}, 2, 36},
	} {
		launches := 0
		e := &burstEngine{Engine: &verifytest.Engine{Kernel: verifytest.Add, T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true},
			LapFunc: func(call *verifytest.Call, s verify.Shot) verify.Lap {
				launches++
				n, _ := call.Size.Get("n")
				return lap(good[n]*c.factor[n], s)
			}}}
		var incumbent []float64
		for _, s := range tk.ScoredSizes(harness.TargetCPU) {
			n, _ := s.Get("n")
			incumbent = append(incumbent, good[n])
		}
		r, err := measure.Run(t.Context(), e, measure.Order{Task: tk, Target: harness.TargetCPU, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: verify.Module{Candidate: verifytest.Candidate(t, tk)}},
			Stage: harness.StageSearch, Seed: 1, Pool: verifytest.Pool(), LimitFunc: func(harness.Size) time.Duration { return time.Second },
			Race: &harness.Race{IncumbentUS: incumbent, BestUS: incumbent, BaselineUS: incumbent}})
		if err != nil || r.Stop != nil {
			t.Fatalf("%s: %+v, %v", c.name, r.Stop, err)
		}
		measured := 0
		if r.Censored != nil {
			measured = r.Censored.MeasuredSizes
		}
		if measured != c.sizes || launches != c.launches {
			t.Errorf("%s: stopped after %d sizes and %d launches, want %d and %d", c.name, measured, launches, c.sizes, c.launches)
		}
		if c.sizes == 0 {
			for _, s := range r.Sizes {
				if len(s.SamplesUS) != kept || s.Warmups != 10 {
					t.Errorf("%s at %s: %d samples after %d warm-ups, want %d after 10", c.name, s.Size, len(s.SamplesUS), s.Warmups, kept)
				}
			}
		}
	}
}

// A wrong launch in a pilot is the candidate's fault as anywhere.
func TestPilotJudges(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	e := &burstEngine{Engine: &verifytest.Engine{T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true}, Kernel: func(c *verifytest.Call) {
		if verifytest.Add(c); c.Count == 13 {
			c.Set(2, 5, -77)
		}
	}}}
	r, err := measure.Run(context.Background(), e, measure.Order{Task: tk, Target: harness.TargetCPU, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: verify.Module{Candidate: verifytest.Candidate(t, tk)}},
		Stage: harness.StageSearch, Seed: 1, Pool: verifytest.Pool(), LimitFunc: func(harness.Size) time.Duration { return time.Second }, Race: &harness.Race{IncumbentUS: []float64{200, 200, 200}}})
	if err != nil || r.Stop == nil || r.Stop.Evidence.Launch != 13 || r.Stop.Fault != harness.FaultIncorrect {
		t.Errorf("%v, %+v: want launch 13 to be incorrect", err, r.Stop)
	}
}
