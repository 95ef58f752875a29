package decide

import (
	"math"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
)

// TestTheFirstConfirmationComesEarly gives confirmations a fiftieth of the time: the first comes all the same when a quarter would
// hold it, since nothing is raced against before, and the second waits.
func TestTheFirstConfirmationComesEarly(t *testing.T) {
	t.Parallel()
	tk := harnesstest.Task(3)
	s := New(&scheduler.Campaign{ID: "share", Task: tk, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Reward: tk.Reward, Settings: scheduler.Settings{
		Budget: scheduler.Budget{WallSeconds: 100}, Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 5, MinRounds: 4, MaxRounds: 20, Share: 0.02}}})
	s.AA = &scheduler.Paired{SD: 0.002, SecondsPerRound: 0.1, Rounds: 5}
	s.Time.AATook, s.Time.AAMeasure = 0.6, 0.5
	logs := crown.Moments{}
	for _, v := range []float64{0.5, 0.52, 0.6, 0.9} {
		logs.Add(math.Log(v))
	}
	s.Structures = []Structure{{Number: 1, Told: 5, Asked: 5, DefaultPlanned: true, Logs: logs, Best: 0.5, Measured: 4}}
	s.Contenders = []Contender{{Point: scheduler.Point{Structure: 1, ID: "best"}, N: 3, Mean: math.Log(0.5)}}
	in := Inputs{Capacity: 1, SpentSeconds: 10}
	if d, ok := s.confirmation(in); !ok || d.Point.ID != "best" {
		t.Errorf("decided %+v, %v; want the first confirmation", d, ok)
	}
	s.Confirmed = 1
	if d, ok := s.confirmation(in); ok {
		t.Errorf("decided %+v; want the second confirmation to wait for its share", d)
	}
	in.SpentSeconds = 4000 // long after: the share holds it
	s.Settings.Budget.WallSeconds = 8000
	if _, ok := s.confirmation(in); !ok {
		t.Error("the second confirmation never comes")
	}
}
