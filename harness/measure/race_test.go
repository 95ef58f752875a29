package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/harness"
)

func TestStatistics(t *testing.T) {
	t.Parallel()
	s := []float64{5, 1, 4, 2, 3}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"median", Median(s), 3}, {"median of an even number", Median([]float64{1, 2, 3, 10}), 2.5}, {"p90", Quantile(s, 0.9), 4.6},
		{"spread", Spread(s), (4.6 - 1.4) / 3}, {"mean", statistic("mean", s), 3}, {"min", statistic("min", s), 1}, {"default", statistic("", s), 3},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsInf(MedianError([]float64{1}), 1) {
		t.Error("nothing has a median, or one sample an error")
	}
}

// The standard error of the median agrees with the scatter of medians of drawn sample sets within a quarter.
func TestMedianError(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	var medians, claimed []float64
	for range 2000 {
		s := make([]float64, 21)
		for i := range s {
			s[i] = 100 + 5*rng.NormFloat64()
		}
		medians, claimed = append(medians, Median(s)), append(claimed, MedianError(s))
	}
	var mean, square float64
	for _, m := range medians {
		mean += m / float64(len(medians))
	}
	for _, m := range medians {
		square += (m - mean) * (m - mean) / float64(len(medians))
	}
	if got, want := Median(claimed), math.Sqrt(square); math.Abs(got/want-1) > 0.25 {
		t.Errorf("claims %.3f, medians scatter by %.3f", got, want)
	}
}

// samplesAround draws n samples with one percent of noise.
func samplesAround(rng *rand.Rand, us float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = us * (1 + 0.01*rng.NormFloat64())
	}
	return out
}

func TestRaceStopsOnlyWhatIsWorse(t *testing.T) {
	t.Parallel()
	r := &harness.Race{IncumbentUS: []float64{10, 100, 1000}, BestUS: []float64{10, 100, 1000}, BaselineUS: []float64{20, 200, 2000}}
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct {
		name   string
		factor float64 // of the incumbent's time at the measured sizes
		sizes  int
		stop   bool
	}{
		{"as good, one size", 1, 1, false}, {"as good, all sizes", 1, 3, false}, {"better", 0.8, 2, false},
		{"twice as slow at the first", 2, 1, true}, {"a tenth slower at two", 1.1, 2, true}, {"a little slower at the first", 1.05, 1, false},
	} {
		measured := make([][]float64, 3)
		for i := range c.sizes {
			measured[i] = samplesAround(rng, c.factor*r.IncumbentUS[i], 11)
		}
		bound, stop := race(r, measured)
		if stop != c.stop || stop != (bound > 1) {
			t.Errorf("%s: bound %.3f, stop %v; want %v", c.name, bound, stop, c.stop)
		}
	}
}

// A candidate that is as fast as the incumbent is stopped in at most one of a hundred races, at any number of sizes.
func TestRaceErrs(t *testing.T) {
	t.Parallel()
	r := &harness.Race{IncumbentUS: []float64{10, 20, 40, 80, 160, 320, 640, 1280}}
	rng := rand.New(rand.NewPCG(3, 3))
	wrong := 0
	const races = 1000
	for range races {
		measured := make([][]float64, 8)
		for i := range 7 { // the eighth is never asked
			measured[i] = samplesAround(rng, r.IncumbentUS[i], 7)
			if _, stop := race(r, measured); stop {
				wrong++
				break
			}
		}
	}
	if wrong > races/100 {
		t.Errorf("%d of %d equals were stopped, want at most 1 %%", wrong, races)
	}
}
