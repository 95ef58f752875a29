package measure

import (
	"math"

	"ridgepoint/harness"
)

// Racing constants of DESIGN.md, section 6: a size not yet measured is taken to reach 0.97 of its best confirmed time, and the
// measurement stops when the candidate is worse than the incumbent at 99 %, one-sided.
const (
	raceHope = 0.97
	raceZ    = 2.326
)

// race decides whether to go on after some sizes. measured holds the samples per scored size (task order), nil where there are
// none yet. It returns the lower bound of the candidate's total as ratio to the incumbent's, and whether to stop.
func race(r *harness.Race, measured [][]float64) (lowerBound float64, stop bool) {
	var low, incumbent, variance float64
	for i, inc := range r.IncumbentUS {
		weight := 1.0
		if i < len(r.BaselineUS) && r.BaselineUS[i] > 0 {
			weight = 1 / r.BaselineUS[i]
		}
		incumbent += weight * inc
		if i < len(measured) && measured[i] != nil {
			low += weight * Median(measured[i])
			se := weight * max(MedianError(measured[i]), raceFloor*Median(measured[i]))
			variance += se * se
			continue
		}
		best := inc
		if i < len(r.BestUS) && r.BestUS[i] > 0 {
			best = min(best, r.BestUS[i])
		}
		low += weight * raceHope * best
	}
	low -= raceZ * math.Sqrt(variance)
	if !(incumbent > 0) {
		return 0, false
	}
	return low / incumbent, low > incumbent
}

// raceFloor is the least standard error of a size's median, as a share: what three samples of one process do not show of the
// differences between processes (page placement, alignment).
const raceFloor = 0.01
