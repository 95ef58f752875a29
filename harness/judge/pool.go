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
	lines := otherDetails(of)
	poolSizes(t, of, func(r *harness.Report) []harness.SizeTime { return r.Sizes })
	poolSizes(t, of, func(r *harness.Report) []harness.SizeTime { return r.Hidden })
	for _, each := range of[1:] {
		r.Errors = worst(r.Errors, each.Errors)
		addSplit(&r.Split, each.Split)
		r.Split.Queue += each.Split.Queue
		r.Split.Verify += each.Split.Verify
		r.Split.Total += each.Split.Total
		r.Finished = each.Finished
		poolEnvironment(&r.Environment, each.Environment)
		if each.Fault == harness.FaultNoisy {
			r.Fault, r.Reason = each.Fault, each.Reason
		}
	}
	r.Detail = append(lines, details(r)...)
	return r
}

// otherDetails are what reports say beside what is said of their sizes, which are no longer what they were once they are pooled.
func otherDetails(of []*harness.Report) []string {
	var out []string
	for _, each := range of {
		own := details(each)
		for _, line := range each.Detail {
			if !slices.Contains(own, line) && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// poolSizes puts what all reports say of each size into the first one's.
func poolSizes(t *harness.Task, of []*harness.Report, get func(*harness.Report) []harness.SizeTime) {
	to := get(of[0])
	for i := range to {
		var times []harness.SizeTime
		for _, each := range of {
			times = append(times, get(each)[i])
		}
		to[i] = measure.Pool(t.Eval.Protocol.Statistic, times)
	}
}

// poolEnvironment adds another process's clocks and reasons for throttling: all else of the environment is the same.
func poolEnvironment(to *harness.Environment, e harness.Environment) {
	for name, span := range e.ClocksMHz {
		if have, ok := to.ClocksMHz[name]; ok {
			span = [2]int{min(have[0], span[0]), max(have[1], span[1])}
		} else if to.ClocksMHz == nil {
			to.ClocksMHz = map[string][2]int{}
		}
		to.ClocksMHz[name] = span
	}
	for _, reason := range e.Throttle {
		if !slices.Contains(to.Throttle, reason) {
			to.Throttle = append(to.Throttle, reason)
		}
	}
}
