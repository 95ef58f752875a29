package reward_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/scheduler/reward"
)

// TestScoreByHand compares with values worked out on paper.
func TestScoreByHand(t *testing.T) {
	t.Parallel()
	ratio := harness.Reward{Kind: "mean_std_fail", StdWeight: 0.1, FailWeight: 0.05, Per: "ratio_to_baseline"}
	ms := ratio
	ms.Per = "milliseconds"
	literal := harness.Reward{Kind: "literal", StdWeight: 0.1, FailWeight: 0.05}
	for _, c := range []struct {
		name                 string
		spec                 harness.Reward
		in                   reward.Input
		value, priority, obj float64
	}{
		// ratios 0.5 and 1.5: mean 1, population std 0.5
		{"ratios", ratio, reward.Input{TimesUS: []float64{50, 300}, BaselineUS: []float64{100, 200}}, -1.05, -1.05, 1.05},
		{"failures order only", ratio, reward.Input{TimesUS: []float64{50, 300}, BaselineUS: []float64{100, 200}, Fails: 3}, -1.05, -1.20, 1.05},
		{"one size has no spread", ratio, reward.Input{TimesUS: []float64{25}, BaselineUS: []float64{100}}, -0.25, -0.25, 0.25},
		// 1 ms and 3 ms: mean 2, std 1
		{"milliseconds", ms, reward.Input{TimesUS: []float64{1000, 3000}, BaselineUS: []float64{1, 1}}, -2.1, -2.1, 2.1},
		{"literal counts failures inside", literal, reward.Input{TimesUS: []float64{1000, 3000}, BaselineUS: []float64{1, 1}, Fails: 2}, -2.2, -2.2, 2.2},
		// four ratios 1, 1, 1, 3: mean 1.5, population std sqrt(0.75)
		{"population std", ratio, reward.Input{TimesUS: []float64{1, 1, 1, 3}, BaselineUS: []float64{1, 1, 1, 1}}, -(1.5 + 0.1*math.Sqrt(0.75)), -(1.5 + 0.1*math.Sqrt(0.75)), 1.5 + 0.1*math.Sqrt(0.75)},
		{"expression", harness.Reward{Kind: "expr", Expr: "-max([a / b for a, b in zip(t, baseline)]) - 0.5 * fails"}, reward.Input{TimesUS: []float64{50, 300}, BaselineUS: []float64{100, 200}, Fails: 1}, -2, -2, (math.Sqrt(8) + 2) / 2},
		{"expression with best", harness.Reward{Kind: "expr", Expr: "geomean([b / a for a, b in zip(t, best)])"}, reward.Input{TimesUS: []float64{50, 100}, BaselineUS: []float64{1, 1}, BestUS: []float64{100, 200}}, 2, 2, (math.Sqrt(8) - 2) / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := reward.New(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Score(c.in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range [][2]float64{{got.Value, c.value}, {got.Priority, c.priority}, {got.Objective, c.obj}} {
				if math.Abs(p[0]-p[1]) > 1e-12 {
					t.Errorf("got %+v, want value %v, priority %v, objective %v", got, c.value, c.priority, c.obj)
				}
			}
		})
	}
}

func TestObjectiveFallsAsTheScoreRises(t *testing.T) {
	t.Parallel()
	r, err := reward.New(harness.Reward{Kind: "expr", Expr: "t[0] - 1000.0"})
	if err != nil {
		t.Fatal(err)
	}
	last := math.Inf(1)
	for us := 1.0; us < 3000; us += 13 {
		s, err := r.Score(reward.Input{TimesUS: []float64{us}, BaselineUS: []float64{1}})
		if err != nil {
			t.Fatal(err)
		}
		if !(s.Objective > 0 && s.Objective < last) {
			t.Fatalf("score %v has objective %v after %v: want positive and falling", s.Value, s.Objective, last)
		}
		last = s.Objective
	}
}

func TestWrongRewardsAreRefused(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]harness.Reward{
		"is not known: want":        {Kind: "speed"},
		"ratio_to_baseline":         {Kind: "mean_std_fail", Per: "ms"},
		"std_weight":                {Kind: "literal", StdWeight: math.NaN()},
		"name \"time\" is not know": {Kind: "expr", Expr: "-time"},
		"is empty":                  {Kind: "expr"},
		"column":                    {Kind: "expr", Expr: "1 +"},
	} {
		if _, err := reward.New(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want one with %q", spec, err, want)
		}
	}
	r, err := reward.New(harness.Reward{Kind: "mean_std_fail", Per: "ratio_to_baseline"})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []reward.Input{{}, {TimesUS: []float64{1}, BaselineUS: []float64{0}}, {TimesUS: []float64{math.NaN()}, BaselineUS: []float64{1}}, {TimesUS: []float64{1, 2}, BaselineUS: []float64{1}}} {
		if s, err := r.Score(in); !errors.Is(err, reward.ErrTimes) {
			t.Errorf("%+v scored %+v, %v; want ErrTimes", in, s, err)
		}
	}
}
