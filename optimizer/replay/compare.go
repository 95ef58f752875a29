package replay

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// WithoutRecords, behind a strategy's name, marks its cells that were given no records.
const WithoutRecords = " without records"

// compared are the numbers of evaluations at which a comparison is made, as far as the budget goes.
var compared = []int{5, 20, 40, 80, 220}

// Comparison is what records are worth to a strategy: its ratios less those without records, on the same recordings and seeds.
type Comparison struct {
	Strategy string            `json:"strategy"`
	Points   []ComparedPoint   `json:"points"`
	Spaces   []SpaceComparison `json:"spaces"`
}

// ComparedPoint is the difference at one number of evaluations: the mean over recordings of the mean over seeds, twice the standard error
// that the seeds leave it, and the recording that comes off worst.
type ComparedPoint struct {
	Evaluations int     `json:"evaluations"`
	Difference  float64 `json:"difference"`
	Spread      float64 `json:"spread"`
	Worst       string  `json:"worst_space"`
	WorstBy     float64 `json:"worst_difference"`
	WorstSpread float64 `json:"worst_spread"`
}

// SpaceComparison has the differences of one recording at the comparison's points.
type SpaceComparison struct {
	Space       string    `json:"space"`
	Differences []float64 `json:"differences"`
}

// Compare compares the cells of each strategy that has others marked WithoutRecords with those, up to a budget. Both have the same recordings in the same order.
func Compare(cells []Cell, budget int) ([]Comparison, error) {
	var names []string
	byName := map[string][]Cell{}
	for _, c := range cells {
		if _, seen := byName[c.Strategy]; !seen {
			names = append(names, c.Strategy)
		}
		byName[c.Strategy] = append(byName[c.Strategy], c)
	}
	var out []Comparison
	for _, name := range names {
		without, ok := byName[name+WithoutRecords]
		if !ok {
			continue
		}
		c, err := compare(byName[name], without, budget)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func compare(with, without []Cell, budget int) (Comparison, error) {
	out := Comparison{Strategy: with[0].Strategy}
	if len(with) != len(without) {
		return out, fmt.Errorf("compare %s: %d recordings with records, %d without", out.Strategy, len(with), len(without))
	}
	for i := range with {
		if with[i].Record != without[i].Record || len(with[i].Results) != len(without[i].Results) {
			return out, fmt.Errorf("compare %s: %s and %s are not the same runs", out.Strategy, with[i].Record.Name, without[i].Record.Name)
		}
		out.Spaces = append(out.Spaces, SpaceComparison{Space: with[i].Record.Name})
	}
	for _, k := range compared {
		if k > budget {
			break
		}
		pt := ComparedPoint{Evaluations: k, WorstBy: math.Inf(1)}
		variance := 0.0
		for i := range with {
			diffs := with[i].Ratios(k)
			for seed, v := range without[i].Ratios(k) {
				diffs[seed] -= v
			}
			m, se := mean(diffs), standardError(diffs)
			out.Spaces[i].Differences = append(out.Spaces[i].Differences, m)
			pt.Difference += m / float64(len(with))
			variance += se * se
			if m < pt.WorstBy {
				pt.Worst, pt.WorstBy, pt.WorstSpread = out.Spaces[i].Space, m, 2*se
			}
		}
		pt.Spread = 2 * math.Sqrt(variance) / float64(len(with))
		out.Points = append(out.Points, pt)
	}
	return out, nil
}

// WriteComparisons writes what records are worth as text: for each strategy one line a number of evaluations, then one a recording; and
// the recordings, by name, that there were no records for, whose runs are the same either way.
func WriteComparisons(w io.Writer, comparisons []Comparison, unrecorded []string) error {
	p := &printer{w: w}
	for _, c := range comparisons {
		if len(c.Points) == 0 {
			p.printf("\n%s is compared with itself without records from %d evaluations on: give a larger --budget\n", c.Strategy, compared[0])
			continue
		}
		p.printf("\n%s less itself without records, on the same seeds (± twice the standard error over seeds)\n", c.Strategy)
		for _, pt := range c.Points {
			p.printf("  at %3d  mean %+.4f ±%.4f   worst space %s %+.4f ±%.4f\n", pt.Evaluations, pt.Difference, pt.Spread, pt.Worst, pt.WorstBy, pt.WorstSpread)
		}
		p.printf("  %-22s", "space, at")
		for _, pt := range c.Points {
			p.printf(" %7d", pt.Evaluations)
		}
		p.printf("\n")
		for _, s := range c.Spaces {
			p.printf("  %-22s", s.Space)
			for _, d := range s.Differences {
				p.printf(" %+7.4f", d)
			}
			p.printf("\n")
		}
	}
	if len(unrecorded) > 0 {
		p.printf("\nno records of this kind for %s: the same runs either way\n", strings.Join(unrecorded, ", "))
	}
	return p.err
}
