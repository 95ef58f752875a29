package feedback

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"ridgepoint/harness"
)

// performanceProblems says what keeps a correct kernel from being faster, the gravest first; never nothing.
func performanceProblems(r *harness.Report) []harness.Diagnosis {
	var list []harness.Diagnosis
	for _, find := range []func(*harness.Report) (harness.Diagnosis, bool){belowFloor, censored, slowerThanBaseline, spills, nearRoof, unevenSizes, missedVectors, noisy, idleTime, noWork} {
		if d, ok := find(r); ok {
			list = append(list, d)
		}
	}
	list = profiled(r, list)
	if len(list) == 0 {
		list = append(list, closing(r))
	}
	return list
}

// profiled puts what a profile of the slowest launch says behind what makes a candidate worthless and before what times alone
// tell: counters say why. A problem that both name is named once, from the counters.
func profiled(r *harness.Report, list []harness.Diagnosis) []harness.Diagnosis {
	if len(r.Profile) == 0 {
		return list
	}
	slowest := slices.MaxFunc(r.Profile, func(a, b harness.Digest) int { return int(a.Duration - b.Duration) })
	found := slices.Clone(slowest.Diagnoses)
	if len(r.Profile) > 1 {
		for i := range found {
			found[i].Problem = slowest.Kernel + ": " + found[i].Problem
		}
	}
	list = slices.DeleteFunc(list, func(d harness.Diagnosis) bool {
		return slices.ContainsFunc(found, func(o harness.Diagnosis) bool { return o.Code == d.Code })
	})
	at := 0
	for at < len(list) && (list[at].Code == "below_physical_floor" || list[at].Code == "slower_than_incumbent") {
		at++
	}
	return slices.Insert(list, at, found...)
}

func belowFloor(r *harness.Report) (harness.Diagnosis, bool) {
	for _, s := range r.Sizes {
		if s.FloorUS > 0 && s.MedianUS > 0 && s.MedianUS < s.FloorUS {
			return harness.Diagnosis{Code: "below_physical_floor", Problem: fmt.Sprintf("%.3g us at %s is less than memory and arithmetic allow (%.3g us): the value is not believed", s.MedianUS, s.Size, s.FloorUS),
				Direction: "do all the work in every launch; if the kernel is honest, the task's work is stated too high"}, true
		}
	}
	return harness.Diagnosis{}, false
}

func censored(r *harness.Report) (harness.Diagnosis, bool) {
	if r.Censored == nil {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "slower_than_incumbent", Problem: fmt.Sprintf("stopped after %d sizes: it takes at least %.2f times as long as the incumbent", r.Censored.MeasuredSizes, r.Censored.LowerBound),
		Direction: "change the structure: tuning its parameters will not make up for it"}, true
}

// ratios returns the sizes that have an undisturbed baseline, slowest against it first.
func ratios(r *harness.Report) []harness.SizeTime {
	var out []harness.SizeTime
	for _, s := range r.Sizes {
		if s.BaselineUS > 0 && s.MedianUS > 0 && !s.BaselineNoisy {
			out = append(out, s)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return speed(out[i]) < speed(out[j]) })
	return out
}

func speed(s harness.SizeTime) float64 { return s.BaselineUS / s.MedianUS }

func slowerThanBaseline(r *harness.Report) (harness.Diagnosis, bool) {
	var names []string
	sizes := ratios(r)
	for _, s := range sizes {
		if speed(s) < 0.97 {
			names = append(names, fmt.Sprintf("%s (%.2fx)", s.Size, speed(s)))
		}
	}
	if len(names) == 0 {
		return harness.Diagnosis{}, false
	}
	d := harness.Diagnosis{Code: "slower_than_baseline", Problem: fmt.Sprintf("slower than the baseline at %d of %d sizes", len(names), len(sizes)), Evidence: strings.Join(names[:min(3, len(names))], ", "),
		Direction: "cut overhead at those sizes: fewer or smaller blocks and threads, no work that does not grow with the size"}
	if len(names) == len(sizes) {
		d.Direction = "choose another structure: read each input once, write each output once, keep what is reused in registers"
	}
	return d, true
}

func spills(r *harness.Report) (harness.Diagnosis, bool) {
	if r.Build == nil {
		return harness.Diagnosis{}, false
	}
	for _, k := range r.Build.Kernels {
		if n := k.SpillStoreBytes + k.SpillLoadBytes; n > 0 {
			return harness.Diagnosis{Code: "register_spills", Problem: fmt.Sprintf("%s spills %d bytes a thread at %d registers", k.Name, n, k.Registers),
				Direction: "keep fewer values alive: smaller tiles or less unrolling, or a higher maxrregcount"}, true
		}
	}
	return harness.Diagnosis{}, false
}

// nearRoof compares times with the physical floor; FloorUS is 0.9 of it.
func nearRoof(r *harness.Report) (harness.Diagnosis, bool) {
	var best, worst harness.SizeTime
	for _, s := range r.Sizes {
		if s.FloorUS <= 0 || s.MedianUS <= 0 {
			continue
		}
		if best.Size == nil || s.FloorUS/s.MedianUS > best.FloorUS/best.MedianUS {
			best = s
		}
		if worst.Size == nil || s.FloorUS/s.MedianUS < worst.FloorUS/worst.MedianUS {
			worst = s
		}
	}
	if best.Size == nil {
		return harness.Diagnosis{}, false
	}
	share := func(s harness.SizeTime) float64 { return 100 * s.FloorUS / 0.9 / s.MedianUS }
	if share(worst) >= 80 {
		return harness.Diagnosis{Code: "near_the_roof", Problem: fmt.Sprintf("every size runs at %.0f %% or more of what memory and arithmetic allow", share(worst)),
			Direction: "there is little left; try fewer bytes moved, or stop"}, true
	}
	return harness.Diagnosis{Code: "far_from_the_roof", Problem: fmt.Sprintf("%s runs at %.0f %% of what memory and arithmetic allow, the best size at %.0f %%", worst.Size, share(worst), share(best)),
		Direction: "more loads in flight (wider vectors, more unrolling) at large sizes, less fixed cost at small ones"}, true
}

func unevenSizes(r *harness.Report) (harness.Diagnosis, bool) {
	sizes := ratios(r)
	if len(sizes) < 2 {
		return harness.Diagnosis{}, false
	}
	low, high := sizes[0], sizes[len(sizes)-1]
	if speed(high) < 1.5*speed(low) {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "uneven_sizes", Problem: fmt.Sprintf("the speed-up runs from %.2fx at %s to %.2fx at %s", speed(low), low.Size, speed(high), high.Size),
		Direction: "choose the tile and thread counts by the extents at run time, so that the weak sizes are served too"}, true
}

// missedVectors looks for what the compiler said of loops that it could not vectorise.
func missedVectors(r *harness.Report) (harness.Diagnosis, bool) {
	if r.Build == nil {
		return harness.Diagnosis{}, false
	}
	i := slices.IndexFunc(r.Build.Diagnostics, func(d harness.Diagnostic) bool { return strings.Contains(d.Message, "not vectorized") })
	if i < 0 {
		return harness.Diagnosis{}, false
	}
	d := r.Build.Diagnostics[i]
	return harness.Diagnosis{Code: "not_vectorised", Problem: fmt.Sprintf("the loop at line %d is not vectorised: %s", d.Line, d.Message),
		Direction: "use vector extensions or several accumulators, and restrict on the pointers"}, true
}

func noisy(r *harness.Report) (harness.Diagnosis, bool) {
	n := 0
	for _, s := range r.Sizes {
		if s.Noisy {
			n++
		}
	}
	if n == 0 {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "noisy", Problem: fmt.Sprintf("%d of %d sizes have a spread over the limit", n, len(r.Sizes)), Direction: "measure again on a quiet machine before believing small differences"}, true
}

// idleTime recognises sizes at which a launch's fixed cost outweighs the work: twice the work takes the same time.
func idleTime(r *harness.Report) (harness.Diagnosis, bool) {
	for i := 1; i < len(r.Sizes); i++ {
		a, b := r.Sizes[i-1], r.Sizes[i]
		work := max(b.FLOPs, b.Bytes) / max(a.FLOPs, a.Bytes, 1)
		if a.MedianUS > 0 && work >= 3 && b.MedianUS < 1.15*a.MedianUS {
			return harness.Diagnosis{Code: "fixed_cost", Problem: fmt.Sprintf("%s takes as long as %s, which is %.0f times the work", a.Size, b.Size, work),
				Direction: "start fewer blocks or threads at small sizes; the launch itself costs more than the work"}, true
		}
	}
	return harness.Diagnosis{}, false
}

// noWork says why a rate is missing.
func noWork(r *harness.Report) (harness.Diagnosis, bool) {
	for _, s := range r.Sizes {
		if s.FLOPs > 0 || s.Bytes > 0 {
			return harness.Diagnosis{}, false
		}
	}
	if len(r.Sizes) == 0 {
		return harness.Diagnosis{}, false
	}
	return harness.Diagnosis{Code: "no_work_stated", Problem: "the task does not say how much work a launch does, so GFLOPS are unknown", Direction: "add `work: {flops: ..., bytes: ...}` to the task"}, true
}

// closing is what there is to say of a kernel with which nothing is wrong.
func closing(r *harness.Report) harness.Diagnosis {
	sizes := ratios(r)
	if len(sizes) == 0 {
		return harness.Diagnosis{Code: "no_baseline", Problem: "correct, and measured without a baseline", Direction: "add a baseline to the task to see what the time is worth"}
	}
	s := sizes[0]
	return harness.Diagnosis{Code: "weakest_size", Problem: fmt.Sprintf("nothing stands out; the least speed-up is %.2fx at %s", speed(s), s.Size),
		Direction: "look there first: what that size does beyond reading its inputs and writing its outputs once"}
}
