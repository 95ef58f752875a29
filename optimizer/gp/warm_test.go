package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// follow runs a search that has one other device's records of a whole space, for a number of evaluations of the truth.
func follow(t *testing.T, seed uint64, records, truth func(id int) float64, evaluations int) (*Warm, *optimizer.History) {
	t.Helper()
	space := testSpace(t)
	pool := space.NewPool()
	measured := func(id int, value float64) optimizer.Observation {
		return optimizer.Observation{Configuration: space.Configuration(pool.Row(id)), Outcome: optimizer.OutcomeMeasured, Value: value}
	}
	source := optimizer.Source{Name: "other"}
	for id := range pool.Len() {
		source.Observations = append(source.Observations, measured(id, records(id)))
	}
	prior, err := transfer.New(space, []optimizer.Source{source})
	if err != nil {
		t.Fatal(err)
	}
	s, h := NewWarm(Options{Seed: seed}, prior), optimizer.NewHistory(space)
	for range evaluations {
		id, err := s.Propose(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		h.Ask(id)
		if _, err := h.Tell(measured(id, truth(id))); err != nil {
			t.Fatal(err)
		}
	}
	return s, h
}

// TestRecordsAhead gives the records of a landscape in which nothing follows from the parameters. In a search of that landscape they stay
// ahead of the cold model, whose start is then left out; in a search of a smooth one they are not, and the start is made up for within
// the first twenty.
func TestRecordsAhead(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	rough := func(id int) float64 { return math.Exp(2 * rand.New(rand.NewPCG(1, uint64(id))).Float64()) }
	smooth := func(id int) float64 {
		sum := 1.0
		for k, v := range pool.Row(id) {
			sum += float64(k+1) * float64(v)
		}
		return sum
	}
	for _, c := range []struct {
		name  string
		truth func(id int) float64
		ahead bool
	}{{"the same landscape", rough, true}, {"a smooth one", smooth, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, h := follow(t, 4, rough, c.truth, lateFrom)
			if got := s.ahead(h); got != c.ahead {
				t.Errorf("the records are ahead: %v, want %v (%.2f against %.2f)", got, c.ahead, s.model.foresight(), s.cold.model.foresight())
			}
			if left := s.designLeft(h) >= 0; left != c.ahead {
				t.Errorf("points of the cold start are left: %v, want %v", left, c.ahead)
			}
		})
	}
}

// slope rises from 0 to 1 in every parameter.
func slope(pool *optimizer.Pool, id int) float64 {
	sum, space := 0.0, pool.Space()
	for k, v := range pool.Row(id) {
		sum += float64(v) / float64(len(space.Values(k))-1) / float64(space.Dims())
	}
	return sum
}

// TestWhatRecordsAgreeOnIsTried looks at one proposal: what the records hold best of what is left, while they predict.
func TestWhatRecordsAgreeOnIsTried(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	truth := func(id int) float64 {
		return math.Exp(2*slope(pool, id) + 0.2*rand.New(rand.NewPCG(3, uint64(id))).Float64())
	}
	for sign, want := range map[float64]bool{2: true, -2: false} {
		records := func(id int) float64 { return math.Exp(sign * slope(pool, id)) }
		s, h := follow(t, 1, records, truth, agreedFrom+agreedEach-1)
		got, err := s.Propose(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		least := math.Inf(1)
		for id := range pool.Len() {
			if h.Open(id) {
				least = math.Min(least, records(id))
			}
		}
		if best := records(got) == least; best != want {
			t.Errorf("records that say e^(%g slope): the proposal is the best of them: %v, want %v", sign, best, want)
		}
	}
}

// TestRecordsThatDoNotPredictGiveWay searches a landscape with the records of others. Those that order it surely, or fairly and tell how
// much faster is faster, have their proposals, and points of the cold start are left after as many turns as it has points; the cold
// model has those of others, and its start was made up for by then.
func TestRecordsThatDoNotPredictGiveWay(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	ground := func(id int) float64 { return slope(pool, id) }
	chance := func(id int) float64 { return rand.New(rand.NewPCG(2, uint64(id))).Float64() }
	truth := func(id int) float64 { return math.Exp(2 * ground(id)) }
	for _, c := range []struct {
		name    string
		records func(id int) float64
		gated   bool
	}{
		{"the same", truth, false},
		{"the same order, three times the differences", func(id int) float64 { return math.Exp(6 * ground(id)) }, false},
		{"some chance", func(id int) float64 { return truth(id) * math.Exp(chance(id)) }, false},
		{"some chance, three times the differences", func(id int) float64 { return math.Exp(6*ground(id) + 2.4*chance(id)) }, true},
		{"what is slow, the rest reversed", func(id int) float64 {
			if ground(id) > 0.7 {
				return truth(id)
			}
			return math.Exp(1.4 - 0.1*ground(id))
		}, true},
		{"reversed", func(id int) float64 { return 1 / truth(id) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, h := follow(t, 1, c.records, truth, warmStart+warmSpread+designSize)
			if got := s.gated(h); got != c.gated {
				t.Errorf("the records fail to predict: %v, want %v", got, c.gated)
			}
			if left := s.designLeft(h) >= 0; left == c.gated {
				t.Errorf("points of the cold start are left: %v, want %v", left, !c.gated)
			}
		})
	}
}
