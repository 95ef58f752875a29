package strategy_test

import (
	"math"
	"testing"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/optimizer/transfer"
)

// misleading are records of the kinds that could hold a search which believes them. The optimum of kernelLike is the last place where reversed
// records send it, failed where most failed, and not in the part that was measured.
func misleading(t *testing.T, space *optimizer.Space) map[string][]optimizer.Source {
	t.Helper()
	pool := space.NewPool()
	reversed, failed, part := optimizer.Source{Name: "reversed"}, optimizer.Source{Name: "failed"}, optimizer.Source{Name: "part"}
	for id := range pool.Len() {
		o := evaluate(space.Configuration(pool.Row(id)))
		bad, mirrored := o, o
		bad.Outcome, bad.Value, bad.FailKind = optimizer.OutcomeFailed, 0, "launch"
		mirrored.Outcome, mirrored.FailKind, mirrored.Value = optimizer.OutcomeMeasured, "", 0.1 // what fails here is the fastest there
		if o.Outcome == optimizer.OutcomeMeasured {
			mirrored.Value = 1 / o.Value
		}
		reversed.Observations = append(reversed.Observations, mirrored)
		if id%29 == 0 && o.Outcome == optimizer.OutcomeMeasured {
			failed.Observations = append(failed.Observations, mirrored)
		} else {
			failed.Observations = append(failed.Observations, bad)
		}
		if x, _ := o.Configuration["bx"].AsFloat(); x >= 128 {
			part.Observations = append(part.Observations, o)
		}
	}
	twin := reversed
	twin.Name = "twin"
	return map[string][]optimizer.Source{"one device": {reversed}, "two alike": {reversed, twin}, "most failed": {failed}, "a part of the space": {part}}
}

// TestRecordsNeverHoldTheSearch gives the portfolio records that mislead; it finds the optimum of 960 configurations all the same. Without
// them it takes about 20 evaluations.
func TestRecordsNeverHoldTheSearch(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	const within, seeds = 80, 4
	space := kernelLike(t)
	pool, best := space.NewPool(), math.Inf(1)
	for id := range pool.Len() {
		if o := evaluate(space.Configuration(pool.Row(id))); o.Outcome == optimizer.OutcomeMeasured {
			best = math.Min(best, o.Value)
		}
	}
	for name, sources := range misleading(t, space) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prior, err := transfer.New(space, sources)
			if err != nil || prior == nil || prior.Len() != len(sources) {
				t.Fatalf("prior %v, error %v; want all %d sources in use", prior, err, len(sources))
			}
			for seed := range uint64(seeds) {
				s, err := strategy.New("portfolio", space, strategy.Options{Seed: seed, Prior: prior})
				if err != nil {
					t.Fatal(err)
				}
				found := math.Inf(1)
				for range within {
					c, err := s.Ask(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					o := evaluate(c)
					if o.Outcome == optimizer.OutcomeMeasured {
						found = math.Min(found, o.Value)
					}
					if err := s.Tell(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
				if found > best {
					t.Errorf("seed %d: the best of %d takes %.4f, the optimum %.4f", seed, within, found, best)
				}
			}
		})
	}
}
