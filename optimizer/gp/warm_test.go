package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// TestRecordsAhead gives the records of a landscape in which nothing follows from the parameters. In a search of that landscape they stay
// ahead of the cold model, whose start is then left out; in a search of a smooth one they are not, and the start is made up for within
// the first twenty.
func TestRecordsAhead(t *testing.T) {
	t.Parallel()
	space := testSpace(t)
	pool := space.NewPool()
	measured := func(id int, value float64) optimizer.Observation {
		return optimizer.Observation{Configuration: space.Configuration(pool.Row(id)), Outcome: optimizer.OutcomeMeasured, Value: value}
	}
	rough := func(id int) float64 { return math.Exp(2 * rand.New(rand.NewPCG(1, uint64(id))).Float64()) }
	smooth := func(id int) float64 {
		sum := 1.0
		for k, v := range pool.Row(id) {
			sum += float64(k+1) * float64(v)
		}
		return sum
	}
	source := optimizer.Source{Name: "rough"}
	for id := range pool.Len() {
		source.Observations = append(source.Observations, measured(id, rough(id)))
	}
	for _, c := range []struct {
		name  string
		truth func(id int) float64
		ahead bool
	}{{"the same landscape", rough, true}, {"a smooth one", smooth, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prior, err := transfer.New(space, []optimizer.Source{source})
			if err != nil {
				t.Fatal(err)
			}
			s, h := NewWarm(Options{Seed: 4}, prior), optimizer.NewHistory(space)
			for range lateFrom {
				id, err := s.Propose(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				h.Ask(id)
				if _, err := h.Tell(measured(id, c.truth(id))); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.ahead(h); got != c.ahead {
				t.Errorf("the records are ahead: %v, want %v (%.2f against %.2f)", got, c.ahead, s.model.foresight(), s.cold.model.foresight())
			}
			if left := s.designLeft(h) >= 0; left != c.ahead {
				t.Errorf("points of the cold start are left: %v, want %v", left, c.ahead)
			}
		})
	}
}
