package replay

import (
	"io"
	"slices"
)

// ablated are the numbers of evaluations at which an ablation compares.
var ablated = []int{20, 40, 80, 220}

// WriteAblation writes the table of optimizer/ABLATION.md: one line a summary, the first being the whole of what the others lack a part of: ratios, and the
// difference from the whole with the 95 % interval over the recordings of the differences' means over seeds.
func WriteAblation(w io.Writer, sums []Summary) error {
	p := &printer{w: w}
	whole := &sums[0]
	p.printf("%-30s", "optimum/best at")
	at := func(n int) int {
		return slices.IndexFunc(whole.Points, func(pt Point) bool { return pt.Evaluations == n })
	}
	for _, n := range ablated {
		if at(n) < 0 { // beyond the budget
			continue
		}
		p.printf(" %24d", n)
	}
	p.printf("   failed a run\n")
	for i := range sums {
		s := &sums[i]
		p.printf("%-30s", s.Strategy)
		for _, n := range ablated {
			k := at(n)
			if k < 0 {
				continue
			}
			p.printf(" %8.4f", s.Points[k].Ratio)
			if i == 0 {
				p.printf("%16s", "")
				continue
			}
			p.printf(" %+7.4f ±%6.4f", s.Points[k].Ratio-whole.Points[k].Ratio, pairedSpread(whole, s, k))
		}
		failed := 0.0
		for _, sp := range s.Spaces {
			failed += sp.Failed / float64(len(s.Spaces))
		}
		p.printf("   %.1f\n", failed)
	}
	return p.err
}

// pairedSpread is twice the standard error, over recordings, of the difference between two summaries at a checkpoint.
func pairedSpread(a, b *Summary, k int) float64 {
	diffs := make([]float64, len(a.Spaces))
	for i := range a.Spaces {
		diffs[i] = b.Spaces[i].Ratios[k] - a.Spaces[i].Ratios[k]
	}
	return 2 * standardError(diffs)
}
