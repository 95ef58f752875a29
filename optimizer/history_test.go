package optimizer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBestAfterEveryTell holds the best trial, which a history keeps as it goes, to a look at all of them: after values,
// repeats that make the best one worse, bounds, failures and ties.
func TestBestAfterEveryTell(t *testing.T) {
	t.Parallel()
	points := values(1, 2, 3, 5, 8, 13, 21, 34)
	space, err := New(Declaration{Params: []Param{{Name: "A", Values: points}}})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := NewHistory(space)
		for range 300 {
			o := Observation{Configuration: Configuration{"A": points[rng.IntN(len(points))]}, Outcome: OutcomeMeasured, Value: float64(1 + rng.IntN(12))}
			switch rng.IntN(6) {
			case 0:
				o.Outcome = OutcomeFailed
			case 1:
				o.Outcome = OutcomeCensored
			case 2:
				o.Outcome = OutcomeLost
			default: // measured
			}
			if _, err := h.Tell(o); err != nil {
				t.Fatal(err)
			}
			want, found := math.Inf(1), -1
			for i := range h.Trials {
				if tr := &h.Trials[i]; !tr.Failed && !tr.Censored && tr.Log < want {
					want, found = tr.Log, tr.ID
				}
			}
			best, ok := h.Best()
			if ok != (found >= 0) || ok && best.ID != found {
				t.Fatalf("seed %d: best is %d (%v); want %d", seed, best.ID, ok, found)
			}
		}
	}
}
