package optimizer

import "math"

// Coordinates returns the position of each value of parameter i in [0, 1], as a metric over the parameter: log2 of the value
// where numeric values are positive, more than two and span a factor of 8 or more (16 to 32 is then as far as 32 to 64), else
// the number itself, else the index.
func (s *Space) Coordinates(i int) []float64 {
	values := s.values[i]
	out := make([]float64, len(values))
	for k, v := range values {
		if x, ok := v.AsFloat(); ok {
			out[k] = x
		} else {
			out[k] = float64(k)
		}
	}
	low, high := out[0], out[0]
	for _, x := range out {
		low, high = math.Min(low, x), math.Max(high, x)
	}
	if len(values) > 2 && low > 0 && high >= 8*low && s.Ordered(i) {
		for k := range out {
			out[k] = math.Log2(out[k])
		}
		low, high = math.Log2(low), math.Log2(high)
	}
	for k := range out {
		if high > low {
			out[k] = (out[k] - low) / (high - low)
		} else {
			out[k] = 0
		}
	}
	return out
}
