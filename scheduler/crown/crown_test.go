package crown_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/reward"
)

// TestTrimmedMean compares with a value worked out by hand.
func TestTrimmedMean(t *testing.T) {
	t.Parallel()
	// n = 10, g = 1: mean of 2..9 = 5.5. Winsorised: 2,2,3,4,5,6,7,8,9,9: mean 5.5, sum of squares 66.5, sd sqrt(66.5/9) =
	// 2.71825; stderr = 2.71825 * sqrt(10) / 8 = 1.07448.
	got, err := crown.TrimmedMean([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Mean-5.5) > 1e-12 || math.Abs(got.StdErr-1.07448) > 1e-5 || got.DF != 7 {
		t.Errorf("got %+v, want mean 5.5, error 1.07448, 7 degrees of freedom", got)
	}
	if _, err := crown.TrimmedMean([]float64{1, 2}); !errors.Is(err, crown.ErrContest) {
		t.Errorf("two samples: %v, want ErrContest", err)
	}
}

func TestAlphaIsSpentOnce(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for k := 1; k <= 100_000; k++ {
		sum += crown.Alpha(0.05, k)
	}
	if math.Abs(crown.Alpha(0.05, 1)-0.030396) > 1e-6 || sum > 0.05 || sum < 0.04999 {
		t.Errorf("first %v, sum over 100 000 confirmations %v: want 0.030396 and just under 0.05", crown.Alpha(0.05, 1), sum)
	}
}

// TestPlannedRoundsHaveTheirPower simulates confirmations of a true gain: the share that passes must be what was planned for.
func TestPlannedRoundsHaveTheirPower(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	set := scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, MinRounds: 4, MaxRounds: 1000}
	for _, sd := range []float64{0.005, 0.02, 0.04} {
		size := crown.Plan(set, sd, 1, 1000)
		if size.Capped || size.Detectable > 0.01 {
			t.Fatalf("sd %v: %+v", sd, size)
		}
		share := func(gain float64) float64 {
			pass := 0
			const trials = 3000
			for range trials {
				x := make([]float64, size.Rounds)
				for i := range x {
					x[i] = gain + sd/trimLoss*rng.NormFloat64()
				}
				m, err := crown.TrimmedMean(x)
				if err != nil {
					t.Fatal(err)
				}
				if m.P() <= size.Alpha {
					pass++
				}
			}
			return float64(pass) / trials
		}
		if p := share(0.01); p < 0.86 || size.Rounds > set.MinRounds && p > 0.97 {
			t.Errorf("sd %v, %d rounds: a gain of 1 %% is found with probability %.3f, want about 0.9", sd, size.Rounds, p)
		}
		if p := share(0); p > size.Alpha*1.35 {
			t.Errorf("sd %v, %d rounds: no gain passes with probability %.4f, want at most %.4f", sd, size.Rounds, p, size.Alpha)
		}
	}
	if size := crown.Plan(set, 0.5, 1, 20); !size.Capped || size.Rounds != 20 || size.Detectable < 0.1 {
		t.Errorf("a capped plan: %+v", size)
	}
}

// trimLoss turns the standard deviation of a normal sample into that which TrimmedMean's error implies: the variance of a
// 10 % trimmed mean of a normal is 1.06 times the mean's.
const trimLoss = 1.03

func TestEvaluateByHand(t *testing.T) {
	t.Parallel()
	r, err := reward.New(harness.Reward{Kind: "mean_std_fail", StdWeight: 0, Per: "ratio_to_baseline"})
	if err != nil {
		t.Fatal(err)
	}
	c := &harness.Contest{Contestants: []string{"baseline", "incumbent", "candidate"}, Sizes: make([]harness.Size, 2)}
	for _, drift := range []float64{1, 1.1, 0.9, 1, 1.05} { // slow rounds are slow for all
		c.MedianUS = append(c.MedianUS, [][]float64{{100 * drift, 200 * drift}, {50 * drift, 100 * drift}, {45 * drift, 110 * drift}})
	}
	p, err := crown.Evaluate(c, r, 0, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Scores at drift 1: incumbent -(0.5+0.5)/2 = -0.5, candidate -(0.45+0.55)/2 = -0.5: no gain, whatever the drift.
	if math.Abs(p.Gain) > 1e-12 || p.P < 0.4 {
		t.Errorf("gain %v, p %v: want none", p.Gain, p.P)
	}
	if want := math.Sqrt(100.0 / 45 * 200 / 110); math.Abs(p.Speedup-want) > 1e-9 {
		t.Errorf("speedup %v, want %v", p.Speedup, want)
	}
	if p.WorstSize != 1 || math.Abs(p.WorstRatio-1.1) > 1e-9 {
		t.Errorf("worst size %d at %v, want size 1 at 1.1 times the incumbent", p.WorstSize, p.WorstRatio)
	}
	for _, broken := range []*harness.Contest{nil, {}, {Contestants: []string{"baseline"}, Sizes: make([]harness.Size, 1), MedianUS: [][][]float64{{{0}}}}} {
		if _, err := crown.Evaluate(broken, r, 0, 0, 0); !errors.Is(err, crown.ErrContest) {
			t.Errorf("%+v: %v, want ErrContest", broken, err)
		}
	}
}

// TestShrinking checks the posterior against the conjugate formula and its limits.
func TestShrinking(t *testing.T) {
	t.Parallel()
	var m crown.Moments
	for _, x := range []float64{-0.1, 0, 0.1, 0.05, -0.05} {
		m.Add(x)
	}
	// Variance 0.00625; noise 0.00125: prior variance 0.005; one measurement: w = 0.005/0.00625 = 0.8.
	b := crown.Shrink(m, 1, -0.2, 0.00125)
	if math.Abs(b.Mean+0.16) > 1e-12 || math.Abs(b.SD-math.Sqrt(0.8*0.00125)) > 1e-12 {
		t.Errorf("got %+v, want mean -0.16, sd %v", b, math.Sqrt(0.8*0.00125))
	}
	if many := crown.Shrink(m, 1000, -0.2, 0.00125); math.Abs(many.Mean+0.2) > 1e-3 {
		t.Errorf("a thousand measurements are believed as %v, want -0.2", many.Mean)
	}
	if p := b.Better(crown.Belief{Mean: b.Mean, SD: b.SD}); math.Abs(p-0.5) > 1e-12 {
		t.Errorf("equal beliefs: %v, want 0.5", p)
	}
	if g := (crown.Belief{Mean: 0, SD: 1}).Improvement(0); math.Abs(g-1/math.Sqrt(2*math.Pi)) > 1e-12 {
		t.Errorf("expected improvement of a standard normal over 0: %v, want 1/sqrt(2 pi)", g)
	}
}
