package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// progress tells a person what is being looked at.
func (l *linter) progress(format string, args ...any) {
	if l.ProgressFunc != nil {
		l.ProgressFunc(fmt.Sprintf(format, args...))
	}
}

// reference checks that the reference gives the same numbers twice, and that they are numbers.
func (l *linter) reference(ctx context.Context) error {
	size := l.smallest()
	l.progress("the reference at %s", size)
	extents, err := task.Shapes(l.Task, size)
	if err != nil {
		return err
	}
	set, err := l.Judge.Pool().Get(ctx, l.Task, size, verify.ScaleSpec, 0)
	if err != nil {
		return err
	}
	values := map[string][]float64{}
	for i, e := range extents {
		if set.Inputs[i] != nil {
			values[e.Name] = make([]float64, e.Elements)
			verify.Decode(values[e.Name], set.Inputs[i], e, 0)
		}
	}
	begin := time.Now()
	again, err := expected(ctx, l.Task, size, values)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	for i, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		if n := strange(set.Expected[i]); n > 0 {
			l.report(Fail, "reference", "let the reference keep within the numbers, or exclude nothing but what cannot be computed", "%d of %d expected values of %s at %s are not finite on plain inputs", n, e.Elements, e.Name, size)
			return nil
		}
		got := slices.Clone(again[e.Name])
		verify.Overflow(got, e.DType)
		if at := differ(set.Expected[i], got); at >= 0 {
			l.report(Fail, "reference", "take out of it what depends on chance, time or the order of threads", "the reference gives two answers for the same inputs at %s: %s[%d] is %.9g and then %.9g",
				size, e.Name, at, set.Expected[i][at], got[at])
			return nil
		}
	}
	l.report(Pass, "reference", "", "gives the same finite numbers twice at %s, in %s", size, took.Round(time.Millisecond))
	return nil
}

func strange(values []float64) int {
	n := 0
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			n++
		}
	}
	return n
}

func differ(a, b []float64) int {
	for i := range a {
		if i >= len(b) || math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return i
		}
	}
	return -1
}

// work checks the formulas of the work: a kernel is called impossibly fast, and put into quarantine, when they say too much.
func (l *linter) work() error {
	if l.Task.Work.FLOPs == "" && l.Task.Work.Bytes == "" {
		l.report(Warn, "work", "state work: {flops: ..., bytes: ...}", "the task does not say how much work it is: there is no roofline and nothing is too fast to be true")
		return nil
	}
	for _, size := range l.sizes() {
		flops, bytes, err := task.WorkAt(l.Task, size)
		if err != nil {
			return err
		}
		extents, err := task.Shapes(l.Task, size)
		if err != nil {
			return err
		}
		least := 0.0
		for _, e := range extents {
			least += float64(e.Elements * int64(e.DType.SizeBytes()))
			if e.Role == harness.RoleInOut {
				least += float64(e.Elements * int64(e.DType.SizeBytes()))
			}
		}
		switch {
		case flops < 0 || bytes < 0 || math.IsNaN(flops+bytes) || math.IsInf(flops+bytes, 0):
			l.report(Fail, "work", "write formulas that are positive at every size", "at %s the work is %g FLOPs and %g bytes", size, flops, bytes)
			return nil
		case bytes > mostTraffic*least:
			l.report(Fail, "work", "count every element that must be read or written once", "at %s the work is %.4g bytes, and all tensors together are %.4g: an honest kernel that keeps data in caches would be called impossible", size, bytes, least)
			return nil
		case l.Task.Work.Bytes != "" && bytes < least/8:
			l.report(Warn, "work", "count every element that must be read or written", "at %s the work is %.4g bytes, and all tensors together are %.4g", size, bytes, least)
			return nil
		}
	}
	l.report(Pass, "work", "", "the formulas are positive and no more than the tensors are, at all %d sizes", len(l.sizes()))
	return nil
}

// mostTraffic is how many times its tensors a task's bytes may be: rounding up to sectors, and a second pass over an input.
const mostTraffic = 2

// hidden checks that hidden sizes can be drawn: without them a kernel may be right at the scored sizes alone.
func (l *linter) hidden(target harness.Target) {
	want := harness.StageReplay.Verification().HiddenSizes
	if l.Task.Vary.None {
		if l.Task.Rules.SizeBranching != "allow" {
			l.reportTarget(target, Warn, "hidden", "give vary a range, or write rules: {size_branching: allow} if the sizes are all there are", "vary is none: a kernel that is right at the scored sizes alone passes")
		}
		return
	}
	const plenty = 1 << 40
	n := len(verify.HiddenSizes(l.Task, target, want, l.Seed, plenty))
	switch {
	case n == 0:
		l.reportTarget(target, Fail, "hidden", "widen the ranges of vary to sizes that are not scored and no larger than the largest scored one", "no hidden size can be drawn: a kernel that is right at the scored sizes alone passes")
	case n < want/2:
		l.reportTarget(target, Warn, "hidden", "widen the ranges of vary", "only %d hidden sizes can be drawn, of the %d that a replay wants", n, want)
	default:
		l.reportTarget(target, Pass, "hidden", "", "%d hidden sizes can be drawn", n)
	}
}
