package measure

import (
	"slices"

	"ridgepoint/harness"
)

// Pool sums up what several processes measured at one size: the protocol's statistic of all their samples, the median of what
// the baseline, and of what a graph's launch, took in each that measured it, and the floor by the highest peaks that one of them saw.
// The timeline is the first one's. Nothing is not pooled: of has at least one.
func Pool(protocol string, of []harness.SizeTime) harness.SizeTime {
	all := of[0]
	all.SamplesUS = slices.Clone(all.SamplesUS)
	for _, s := range of[1:] {
		all.SamplesUS = append(all.SamplesUS, s.SamplesUS...)
		all.Dropped += s.Dropped
		all.Noisy, all.BaselineNoisy = all.Noisy || s.Noisy, all.BaselineNoisy || s.BaselineNoisy
		if s.ClockMHz[0] > 0 && (all.ClockMHz[0] == 0 || s.ClockMHz[0] < all.ClockMHz[0]) {
			all.ClockMHz[0] = s.ClockMHz[0]
		}
		all.ClockMHz[1] = max(all.ClockMHz[1], s.ClockMHz[1])
		all.FloorUS = min(all.FloorUS, s.FloorUS)
	}
	all.MedianUS, all.SpreadRatio = statistic(protocol, all.SamplesUS), Spread(all.SamplesUS)
	all.BaselineUS = medianOf(of, func(s harness.SizeTime) float64 { return s.BaselineUS })
	all.GraphUS = medianOf(of, func(s harness.SizeTime) float64 { return s.GraphUS })
	return all
}

// medianOf is the median of what those have that measured it; 0 where none did. A kernel of about 10 us is timed in a graph by some.
func medianOf(of []harness.SizeTime, get func(harness.SizeTime) float64) float64 {
	var have []float64
	for _, s := range of {
		if v := get(s); v > 0 {
			have = append(have, v)
		}
	}
	if len(have) == 0 {
		return 0
	}
	return Median(have)
}
