// Package crown holds the statistics of winning: how large a confirmation must be, what a paired contest says, whether a
// candidate is eligible, and how far a nominee's measured value is to be believed. It is pure: DESIGN.md, section 6.
//
// The minimum of thousands of noisy numbers is biased, so nothing here compares two single values. A nominee is chosen by a
// posterior mean that is shrunk towards its structure's; a confirmation compares rounds in which both contestants ran
// beside each other, by a 10 % trimmed mean, since a busy machine's rounds have outliers that a plain mean would follow.
package crown

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/reward"
)

// trim is the share of rounds that is set aside at each end (Yuen 1974). The customary 0.2 makes the t statistic of few rounds
// too liberal: with 6 to 30 normal rounds a test at 0.0304 passed 0.034 to 0.044 of the time; with 0.1 at most 0.033, and below
// ten rounds, where nothing is set aside, it is exact.
const trim = 0.1

// ErrContest says that a contest's measurements cannot be evaluated.
var ErrContest = errors.New("contest cannot be evaluated")

// Trimmed is a trimmed mean with its standard error.
type Trimmed struct {
	Mean   float64
	StdErr float64
	DF     float64 // degrees of freedom of a t statistic with this error
	SD     float64 // of one sample: StdErr * sqrt(n), so that errors of other sample counts can be foretold
}

// TrimmedMean returns the 10 % trimmed mean of x with the error of Tukey and McLaughlin, from the winsorised variance. It
// needs at least three samples.
func TrimmedMean(x []float64) (Trimmed, error) {
	n := len(x)
	if n < 3 {
		return Trimmed{}, fmt.Errorf("%w: need at least 3 rounds, got %d", ErrContest, n)
	}
	s := slices.Clone(x)
	slices.Sort(s)
	g := int(trim * float64(n))
	var sum float64
	for _, v := range s[g : n-g] {
		sum += v
	}
	mean := sum / float64(n-2*g)
	for i := range g {
		s[i], s[n-1-i] = s[g], s[n-1-g]
	}
	var centre, ss float64
	for _, v := range s {
		centre += v / float64(n)
	}
	for _, v := range s {
		ss += (v - centre) * (v - centre)
	}
	kept := float64(n - 2*g)
	winsorised := math.Sqrt(ss / float64(n-1))
	stderr := winsorised * math.Sqrt(float64(n)) / kept
	return Trimmed{Mean: mean, StdErr: stderr, DF: kept - 1, SD: stderr * math.Sqrt(float64(n))}, nil
}

// Interval returns the two-sided 95 % interval.
func (t Trimmed) Interval() [2]float64 {
	h := quantile(0.975, t.DF) * t.StdErr
	return [2]float64{t.Mean - h, t.Mean + h}
}

// P returns the one-sided probability of a mean this large when the true one is zero.
func (t Trimmed) P() float64 {
	if t.StdErr == 0 {
		if t.Mean > 0 {
			return 0
		}
		return 1
	}
	return 1 - distuv.StudentsT{Mu: 0, Sigma: 1, Nu: t.DF}.CDF(t.Mean/t.StdErr)
}

func quantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// Alpha returns the significance at which the k-th confirmation (from 1) of a campaign tests, so that all confirmations
// together spend at most total: total * 6/(pi^2 k^2).
func Alpha(total float64, k int) float64 {
	return total * 6 / (math.Pi * math.Pi * float64(k) * float64(k))
}

// Detectable returns the smallest relative gain that n rounds find with the given power at significance alpha, when one
// round's difference has standard deviation sd.
func Detectable(sd, alpha, power float64, n int) float64 {
	df := float64(n-2*int(trim*float64(n))) - 1
	return (quantile(1-alpha, df) + quantile(power, df)) * sd / math.Sqrt(float64(n))
}

// Size is how large a confirmation will be, fixed before it starts.
type Size struct {
	Rounds     int
	Alpha      float64
	Detectable float64 // smallest relative gain found with the asked power
	Capped     bool    // the cap binds: Detectable is above the asked gain
}

// Plan sizes the k-th confirmation from the A/A run's standard deviation of one round, with at most maxRounds rounds.
func Plan(s scheduler.ConfirmSettings, sd float64, k, maxRounds int) Size {
	out := Size{Alpha: Alpha(s.Alpha, k), Rounds: s.MinRounds}
	maxRounds = max(s.MinRounds, min(maxRounds, s.MaxRounds))
	for ; ; out.Rounds++ {
		out.Detectable = Detectable(sd, out.Alpha, s.Power, out.Rounds)
		if out.Detectable <= s.Gain {
			return out
		}
		if out.Rounds == maxRounds {
			out.Capped = true
			return out
		}
	}
}

// Evaluate computes what a contest says of candidate against rival, both indices into the contest's contestants; base is the
// baseline's index. Each round is scored with the reward, relative to the baseline's medians over all rounds, so that both
// contestants carry their own noise and what a round does to both cancels.
func Evaluate(c *harness.Contest, r *reward.Reward, base, rival, candidate int) (*scheduler.Paired, error) {
	if err := wellFormed(c, base, rival, candidate); err != nil {
		return nil, err
	}
	out := &scheduler.Paired{Rounds: len(c.MedianUS), BaselineUS: medians(c, base), RivalUS: medians(c, rival), RuntimeUS: medians(c, candidate)}
	scores := [2][]float64{}
	for i, who := range []int{rival, candidate} {
		for _, round := range c.MedianUS {
			s, err := r.Score(reward.Input{TimesUS: round[who], BaselineUS: out.BaselineUS})
			if err != nil {
				return nil, err
			}
			scores[i] = append(scores[i], s.Value)
		}
	}
	scale := math.Abs(median(scores[0]))
	if scale == 0 {
		return nil, fmt.Errorf("%w: the rival's reward is 0, so that no relative gain exists: use a reward that is never 0", ErrContest)
	}
	gains := make([]float64, len(scores[0]))
	for i := range gains {
		gains[i] = (scores[1][i] - scores[0][i]) / scale
	}
	t, err := TrimmedMean(gains)
	if err != nil {
		return nil, err
	}
	out.Gain, out.SD, out.StdErr, out.Interval, out.P = t.Mean, t.SD, t.StdErr, t.Interval(), t.P()
	return out, speedups(out, c, base, rival, candidate)
}

func wellFormed(c *harness.Contest, indices ...int) error {
	if c == nil || len(c.MedianUS) == 0 {
		return fmt.Errorf("%w: the report holds no paired rounds", ErrContest)
	}
	for _, i := range indices {
		if i < 0 || i >= len(c.Contestants) {
			return fmt.Errorf("%w: contestants are %v, want index %d", ErrContest, c.Contestants, i)
		}
	}
	for r, round := range c.MedianUS {
		if len(round) != len(c.Contestants) {
			return fmt.Errorf("%w: round %d has %d contestants, want %d", ErrContest, r, len(round), len(c.Contestants))
		}
		for who, times := range round {
			if len(times) != len(c.Sizes) || slices.ContainsFunc(times, func(t float64) bool { return !(t > 0) || math.IsInf(t, 0) }) {
				return fmt.Errorf("%w: round %d, %s: times %v, want %d positive ones", ErrContest, r, c.Contestants[who], times, len(c.Sizes))
			}
		}
	}
	return nil
}

// speedups fills in the geometric-mean speedup with its interval and the worst size.
func speedups(out *scheduler.Paired, c *harness.Contest, base, rival, candidate int) error {
	logs := make([]float64, len(c.MedianUS))
	for i, round := range c.MedianUS {
		for s := range c.Sizes {
			logs[i] += math.Log(round[base][s]/round[candidate][s]) / float64(len(c.Sizes))
		}
	}
	t, err := TrimmedMean(logs)
	if err != nil {
		return err
	}
	in := t.Interval()
	out.Speedup, out.SpeedupRange = math.Exp(t.Mean), [2]float64{math.Exp(in[0]), math.Exp(in[1])}
	for s := range c.Sizes {
		for _, against := range []int{base, rival} {
			ratios := make([]float64, len(c.MedianUS))
			for i, round := range c.MedianUS {
				ratios[i] = round[candidate][s] / round[against][s]
			}
			if m := median(ratios); m > out.WorstRatio {
				out.WorstRatio, out.WorstSize = m, s
			}
		}
	}
	return nil
}

// medians returns a contestant's median over rounds, per size.
func medians(c *harness.Contest, who int) []float64 {
	out := make([]float64, len(c.Sizes))
	for s := range out {
		times := make([]float64, len(c.MedianUS))
		for i, round := range c.MedianUS {
			times[i] = round[who][s]
		}
		out[s] = median(times)
	}
	return out
}

func median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// GeoMeanSpeedup returns the geometric mean of baseline over times.
func GeoMeanSpeedup(baselineUS, timesUS []float64) float64 {
	var sum float64
	for i := range timesUS {
		sum += math.Log(baselineUS[i] / timesUS[i])
	}
	return math.Exp(sum / float64(len(timesUS)))
}
