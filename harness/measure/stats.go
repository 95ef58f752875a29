package measure

import (
	"math"
	"slices"
)

// Median returns the median; NaN of nothing.
func Median(samples []float64) float64 { return Quantile(samples, 0.5) }

// Quantile returns the q-quantile with linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996); NaN
// of nothing.
func Quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	at := q * float64(len(s)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(s)-1)
	return s[low] + (at-float64(low))*(s[high]-s[low])
}

// Spread returns (p90 - p10)/median.
func Spread(samples []float64) float64 {
	m := Median(samples)
	if !(m > 0) {
		return 0
	}
	return (Quantile(samples, 0.9) - Quantile(samples, 0.1)) / m
}

// MedianError returns the standard error of the median of samples: 1.2533 times that of the mean for near-normal samples,
// with the standard deviation taken from the interquartile range, which outliers do not move.
func MedianError(samples []float64) float64 {
	if len(samples) < 2 {
		return math.Inf(1)
	}
	sigma := (Quantile(samples, 0.75) - Quantile(samples, 0.25)) / 1.349
	return 1.2533 * sigma / math.Sqrt(float64(len(samples)))
}

// statistic returns what a protocol calls the value of a sample set.
func statistic(name string, samples []float64) float64 {
	switch name {
	case "mean":
		var sum float64
		for _, s := range samples {
			sum += s
		}
		return sum / float64(len(samples))
	case "min":
		return slices.Min(samples)
	default: // median; the loader refuses other words
		return Median(samples)
	}
}
