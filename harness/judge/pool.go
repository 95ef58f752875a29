package judge

import (
	"slices"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
)

// Pool makes one report of those of several processes that measured the same candidate by the same plan, each without a fault but noise: their
// samples together, the worst of their errors and all of the time that they took. There is at least one.
func Pool(t *harness.Task, of []*harness.Report) *harness.Report {
	r := of[0]
	if len(of) == 1 {
		return r
	}
	for i := range r.Sizes {
		var times []harness.SizeTime
		for _, each := range of {
			times = append(times, each.Sizes[i])
		}
		r.Sizes[i] = measure.Pool(t.Eval.Protocol.Statistic, times)
	}
	for _, each := range of[1:] {
		r.Errors = worst(r.Errors, each.Errors)
		addSplit(&r.Split, each.Split)
		r.Split.Queue += each.Split.Queue
		r.Split.Verify += each.Split.Verify
		r.Split.Total += each.Split.Total
		r.Finished = each.Finished
		if each.Fault == harness.FaultNoisy {
			r.Fault, r.Reason = each.Fault, each.Reason
		}
		for _, line := range each.Detail {
			if !slices.Contains(r.Detail, line) {
				r.Detail = append(r.Detail, line)
			}
		}
	}
	return r
}
