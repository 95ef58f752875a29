// Package check is the linter of tasks: it asks whether a task would let a wrong kernel pass or a right one fail, before a night
// is spent on it. Null answers must fail, the baseline must pass, a mutated reference must be caught, inputs must vary and
// matter, and no size may be so small that a launch is all that is timed. It judges tasks, never kernels.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ridgepoint/harness"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/task"
)

// Verdict is how one check ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "PASS"
	Fail Verdict = "FAIL"
	Warn Verdict = "WARN"
	Skip Verdict = "SKIP" // not possible on this machine
)

// Finding is what one check found.
type Finding struct {
	Check   string  `json:"check"`
	Target  string  `json:"target,omitempty"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Remedy  string  `json:"remedy,omitempty"`
}

// String returns the finding as a line.
func (f Finding) String() string {
	s := fmt.Sprintf("%-4s %-10s %s", f.Verdict, f.Check, f.Text)
	if f.Target != "" {
		s = fmt.Sprintf("%-4s %-10s %s: %s", f.Verdict, f.Check, f.Target, f.Text)
	}
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// Config says what is checked and with what.
type Config struct {
	Task       *harness.Task
	Judge      *judge.Judge
	Targets    []harness.Target // of the task
	Seed       uint64
	Shipped    bool // the task's baseline is part of this program
	ReportFunc func(Finding)
	// ProgressFunc is told what is looked at next; nil: nobody is.
	ProgressFunc func(what string)
}

// linter is one run of all checks.
type linter struct {
	Config
	failed bool
}

// Run runs every check and reports each finding as it is made; ok is false when one failed. A task whose reference cannot be
// evaluated is a *task.Error; other errors are this machine's.
func Run(ctx context.Context, c Config) (ok bool, err error) {
	l := &linter{Config: c}
	for _, step := range []func(context.Context) error{l.reference, l.nulls, l.cheapKernels, l.inputs, l.mutants, func(context.Context) error { return l.work() }} {
		if err := step(ctx); err != nil {
			return false, err
		}
	}
	for _, t := range c.Targets {
		l.hidden(t)
		if err := l.target(ctx, t); err != nil {
			return false, err
		}
	}
	return !l.failed, nil
}

func (l *linter) report(v Verdict, check, remedy, format string, args ...any) {
	l.failed = l.failed || v == Fail
	l.ReportFunc(Finding{Check: check, Verdict: v, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (l *linter) reportTarget(t harness.Target, v Verdict, check, remedy, format string, args ...any) {
	l.failed = l.failed || v == Fail
	l.ReportFunc(Finding{Check: check, Target: t.String(), Verdict: v, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// sizes returns the scored sizes of all targets, each once, in order.
func (l *linter) sizes() []harness.Size {
	var out []harness.Size
	for _, t := range l.Targets {
		for _, s := range l.Task.ScoredSizes(t) {
			if !slices.ContainsFunc(out, s.Equal) {
				out = append(out, s)
			}
		}
	}
	return out
}

// target runs the checks that need the target's compiler and device.
func (l *linter) target(ctx context.Context, t harness.Target) error {
	base, err := task.Baseline(l.Task, t)
	var missing *task.Error
	if errors.As(err, &missing) {
		l.reportTarget(t, Fail, "baseline", missing.Remedy, "%s", missing.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	base.Shipped = l.Shipped
	c, err := task.NewCandidate(l.Task, base, nil)
	if err != nil {
		return err
	}
	l.progress("the baseline of %s: compile, verify, time", t)
	r, err := l.judge(ctx, l.Task, c, harness.StageFirst)
	if skipped(ctx, err) {
		l.reportTarget(t, Skip, "baseline", "`ridgepoint doctor` says what is missing", "cannot be judged here: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !r.Fault.Measured() {
		l.reportTarget(t, Fail, "baseline", "correct the baseline, or the reference, or run `ridgepoint calibrate` for tolerances that it meets", "the baseline does not pass: %s: %s", r.Fault, r.Reason)
		return nil
	}
	l.reportTarget(t, Pass, "baseline", "", "passes at %d sizes and %d hidden ones, largest error %.2g", len(r.Sizes), harness.StageFirst.Verification().HiddenSizes, float64(r.Errors.MaxAbs))
	if s, below := tooFast(r); below {
		l.reportTarget(t, Fail, "work", "correct work: it says more than the kernel has to do", "the baseline takes %.2f us at %s, where by the work stated nothing can take less than %.2f us on this device", s.MedianUS, s.Size, s.FloorUS)
	}
	if err := l.shifted(ctx, t, c); err != nil {
		return err
	}
	return l.launchBound(ctx, t, r)
}

// tooFast returns the size at which a kernel that is known to be honest is below the floor.
func tooFast(r *harness.Report) (harness.SizeTime, bool) {
	for _, s := range r.Sizes {
		if s.FloorUS > 0 && s.MedianUS < s.FloorUS {
			return s, true
		}
	}
	return harness.SizeTime{}, false
}

// skipped reports whether an error means that the target cannot be judged on this machine.
func skipped(ctx context.Context, err error) bool {
	var wrong *task.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &wrong)
}

// judge compiles and evaluates a candidate without rivals.
func (l *linter) judge(ctx context.Context, t *harness.Task, c *harness.Candidate, stage harness.Stage) (*harness.Report, error) {
	q := &harness.Request{Task: t, Candidate: c, Plan: harness.Plan{Stage: stage, Seed: l.Seed}}
	b, r, err := l.Judge.Compile(ctx, q)
	if err != nil || b == nil {
		return r, err
	}
	return l.Judge.Benchmark(ctx, q, b)
}
