package measure

import (
	"slices"

	"ridgepoint/harness"
)

// Pool sums up what several processes measured at one size: the protocol's statistic of all their samples, and the median of what
// the baseline took in each. Nothing is not pooled: of has at least one.
func Pool(protocol string, of []harness.SizeTime) harness.SizeTime {
	all := of[0]
	all.SamplesUS = slices.Clone(all.SamplesUS)
	baselines, graphs := []float64{all.BaselineUS}, []float64{all.GraphUS}
	for _, s := range of[1:] {
		all.SamplesUS = append(all.SamplesUS, s.SamplesUS...)
		all.Dropped += s.Dropped
		all.Noisy, all.BaselineNoisy = all.Noisy || s.Noisy, all.BaselineNoisy || s.BaselineNoisy
		if s.ClockMHz[0] > 0 && (all.ClockMHz[0] == 0 || s.ClockMHz[0] < all.ClockMHz[0]) {
			all.ClockMHz[0] = s.ClockMHz[0]
		}
		all.ClockMHz[1] = max(all.ClockMHz[1], s.ClockMHz[1])
		baselines, graphs = append(baselines, s.BaselineUS), append(graphs, s.GraphUS)
	}
	all.MedianUS, all.SpreadRatio = statistic(protocol, all.SamplesUS), Spread(all.SamplesUS)
	all.BaselineUS, all.GraphUS = Median(baselines), Median(graphs)
	return all
}
