package gp

import (
	"context"
	"math"
	"testing"

	"ridgepoint/optimizer"
)

// TestWindowFades follows what an improvement outside the launch window counts, and where proposals go meanwhile.
func TestWindowFades(t *testing.T) {
	t.Parallel()
	outsideOf := func(without Part) (weights []float64, early int) {
		space := testSpace(t)
		s, h := New(Options{Seed: 3, Without: without}), optimizer.NewHistory(space)
		in := newLaunch(h.Pool)
		for k := range windowUntil + 2 {
			id, err := s.Propose(context.Background(), h)
			if err != nil {
				t.Fatal(err)
			}
			if k >= designSize && k < designSize+6 && !in.within(id) {
				early++
			}
			weights = append(weights, s.outside(h))
			h.Ask(id)
			c := space.Configuration(h.Pool.Row(id))
			bx, _ := c["bx"].AsFloat()
			o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: bx} // the fewer threads the better
			if _, err := h.Tell(o); err != nil {
				t.Fatal(err)
			}
		}
		return weights, early
	}
	weights, early := outsideOf("")
	if d := weights[designSize] - math.Log(windowWorth); math.Abs(d) > 1e-12 {
		t.Errorf("after the start it counts %g, want ln %g", weights[designSize], windowWorth)
	}
	for k := designSize + 1; k < windowUntil; k++ {
		if weights[k] <= weights[k-1] || weights[k] >= 0 {
			t.Errorf("evaluation %d: %g after %g, want it to grow", k, weights[k], weights[k-1])
		}
	}
	if weights[windowUntil] != 0 {
		t.Errorf("in the end it counts %g, want 0", weights[windowUntil])
	}
	off, lured := outsideOf(PartWindow)
	if off[designSize] != 0 || early >= lured {
		t.Errorf("without the window it counts %g and %d early proposals lie outside, with it %d; want 0 and more than with it", off[designSize], lured, early)
	}
}
