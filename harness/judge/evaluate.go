package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Bout is one evaluation on one device: everything that Evaluate needs, built and loaded by nobody yet.
type Bout struct {
	Request *harness.Request
	Engine  verify.Engine
	Module  verify.Module        // the candidate's
	Rivals  []measure.Contestant // built, in the order of Request.Rivals
	Pool    *verify.Pool
	// Environment is filled into the report as it is.
	Environment harness.Environment
	// LaunchLimit bounds one launch; 0: by the work of its size (LaunchLimit).
	LaunchLimit time.Duration
}

// RivalError says that a rival, not the candidate, was at fault: the task's baseline is wrong, or an incumbent no longer
// passes. There is nothing to say about the candidate.
type RivalError struct {
	Role string
	Stop *verify.Stop
}

// Error names the rival.
func (e *RivalError) Error() string {
	return fmt.Sprintf("the %s is at fault, so nothing can be measured against it: %v; run `ridgepoint check` on the task", e.Role, e.Stop)
}

// Unwrap returns the rival's fault.
func (e *RivalError) Unwrap() error { return e.Stop }

// Evaluate verifies a candidate and then measures it under the request's plan. A candidate's fault is in the report; an error
// is broken infrastructure, or a *RivalError.
func Evaluate(ctx context.Context, b Bout) (*harness.Report, error) {
	r := NewReport(b.Request)
	r.Rules, r.Compile, r.Build, r.Environment = harness.StatusPass, harness.StatusPass, b.Module.Build, b.Environment
	outer := ctx
	if d := b.Request.Plan.Deadline; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	err := b.evaluate(ctx, r)
	r.Finished = time.Now().UTC()
	r.Split.Total = r.Finished.Sub(r.Started).Seconds()
	if err != nil && outer.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		apply(r, &verify.Stop{Fault: harness.FaultTimeout, Reason: fmt.Sprintf("the evaluation ran past its deadline of %s", b.Request.Plan.Deadline), Evidence: harness.Evidence{Kind: verify.KindTimeout}})
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (b *Bout) evaluate(ctx context.Context, r *harness.Report) error {
	q := b.Request
	limit := func(s harness.Size) time.Duration {
		if b.LaunchLimit > 0 {
			return b.LaunchLimit
		}
		return LaunchLimit(q.Task, s)
	}
	if q.Plan.Stage == harness.StageCalibrate {
		return b.survey(ctx, r, limit)
	}
	cases := verify.Cases(q.Task, q.Candidate.Target, q.Plan.Stage, q.Plan.Seed, b.Engine.Traits().MemoryBytes)
	v, err := verify.Run(ctx, b.Engine, verify.Order{Task: q.Task, Module: b.Module, Cases: cases, Pool: b.Pool, Seed: verify.Mix(q.Plan.Seed, 1), LimitFunc: limit})
	if err != nil {
		return fmt.Errorf("verify %s: %w", q.Candidate.Structure.Name, err)
	}
	r.Errors = v.Errors
	r.Split.Load, r.Split.Inputs, r.Split.Verify, r.Split.Device = v.Split.Load, v.Split.Inputs, v.Split.Verify, v.Split.Device
	if v.Stop != nil {
		apply(r, v.Stop)
		return nil
	}
	m, err := measure.Run(ctx, b.Engine, measure.Order{
		Task: q.Task, Target: q.Candidate.Target, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: b.Module}, Rivals: b.Rivals,
		Stage: q.Plan.Stage, Seed: MeasureSeed(q.Plan.Seed), Race: q.Plan.Race, Rounds: q.Plan.Rounds, Pool: b.Pool, LimitFunc: limit,
		Hidden: timedHidden(cases),
	})
	if err != nil {
		return fmt.Errorf("measure %s: %w", q.Candidate.Structure.Name, err)
	}
	addSplit(&r.Split, m.Split)
	if m.Stop != nil {
		if m.Role != measure.RoleCandidate {
			return &RivalError{Role: m.Role, Stop: m.Stop}
		}
		if m.Errors != nil {
			r.Errors = m.Errors
		}
		apply(r, m.Stop)
		return nil
	}
	r.Errors = worst(r.Errors, m.Errors)
	r.Fault, r.Runtime, r.Numerical = harness.FaultNone, harness.StatusPass, harness.StatusPass
	r.Sizes, r.Hidden, r.Censored, r.Contest = m.Sizes, m.Hidden, m.Censored, m.Contest
	if m.Noisy {
		r.Fault = harness.FaultNoisy
		r.Reason = "the spread of some sizes stayed over the limit after two retries: the machine was busy"
	}
	r.Detail = append(r.Detail, details(r)...)
	if b.Engine.Traits().Untimed {
		r.Detail = append(r.Detail, "times are refused on this device: it emulates a card, slowly")
	}
	return nil
}

// mostHidden is how many hidden sizes a replay times.
const mostHidden = 3

// timedHidden picks the largest of the hidden sizes that were verified: the smallest ones time the launch.
func timedHidden(cases []verify.Case) []harness.Size {
	var out []harness.Size
	for i := len(cases) - 1; i >= 0 && len(out) < mostHidden; i-- {
		if cases[i].Hidden {
			out = append(out, cases[i].Size)
		}
	}
	return out
}

// MeasureSeed returns the seed that a plan's timing follows from.
func MeasureSeed(plan uint64) uint64 { return verify.Mix(plan, 2) }

// worst adds the errors b to a: the larger maximum, and means over what both compared. Without one of them it is a.
func worst(a, b *harness.Errors) *harness.Errors {
	if a == nil || b == nil {
		return a
	}
	n := float64(a.Compared + b.Compared)
	return &harness.Errors{
		MaxAbs:        max(a.MaxAbs, b.MaxAbs),
		MeanAbs:       harness.Number((float64(a.MeanAbs)*float64(a.Compared) + float64(b.MeanAbs)*float64(b.Compared)) / n),
		MismatchRatio: (a.MismatchRatio*float64(a.Compared) + b.MismatchRatio*float64(b.Compared)) / n,
		NonFinite:     a.NonFinite + b.NonFinite, Compared: a.Compared + b.Compared,
	}
}

func addSplit(to *harness.Split, s harness.Split) {
	to.Load += s.Load
	to.Inputs += s.Inputs
	to.Flush += s.Flush
	to.Measure += s.Measure
	to.Device += s.Device
	to.Kernels += s.Kernels
}

// details are the lines that feedback folds away.
func details(r *harness.Report) []string {
	var out []string
	for _, s := range r.Sizes {
		if s.Dropped > 0 || s.Noisy {
			line := fmt.Sprintf("%s: %d samples kept, %d dropped for steal time or involuntary switches, spread %.0f %%", s.Size, len(s.SamplesUS), s.Dropped, 100*s.SpreadRatio)
			if s.Noisy {
				line += ", noisy"
			}
			out = append(out, line)
		}
		if s.FloorUS > 0 && s.MedianUS < s.FloorUS {
			out = append(out, fmt.Sprintf("%s: %.1f us is below the physical floor of %.1f us: quarantined", s.Size, s.MedianUS, s.FloorUS))
		}
	}
	if r.Censored != nil {
		out = append(out, fmt.Sprintf("stopped after %d sizes: at least %.3f times the incumbent's time", r.Censored.MeasuredSizes, r.Censored.LowerBound))
	}
	return out
}

// NewReport starts a request's report.
func NewReport(q *harness.Request) *harness.Report {
	return &harness.Report{
		Version: harness.ReportVersion, CandidateID: q.Candidate.ID(), Task: q.Task.Name, TaskDigest: q.Task.Digest, Target: q.Candidate.Target,
		Arch: q.Candidate.Options.Arch, Stage: q.Plan.Stage, Seed: q.Plan.Seed, Started: time.Now().UTC(),
	}
}

// apply writes a candidate's fault into its report: the stage that failed, and nothing of later ones.
func apply(r *harness.Report, stop *verify.Stop) {
	evidence := stop.Evidence
	r.Fault, r.Reason, r.Evidence = stop.Fault, stop.Reason, &evidence
	r.Sizes, r.Hidden, r.Contest, r.Censored = nil, nil, nil, nil
	switch stop.Fault {
	case harness.FaultIncorrect:
		r.Runtime, r.Numerical = harness.StatusPass, harness.StatusFail
	case harness.FaultCrash, harness.FaultTimeout, harness.FaultLaunch:
		r.Runtime, r.Numerical, r.Errors = harness.StatusFail, harness.StatusNone, nil
	default:
		panic(fmt.Sprintf("judge: a launch cannot end in fault %s", stop.Fault))
	}
}

// Constants of LaunchLimit: a kernel that needs more than a hundredth of a second for a million operations hangs. A plain C loop
// does a hundred times as many.
const (
	leastLimit     = 5 * time.Second
	slowestPerSec  = 1e8 // FLOPs and bytes
	longestAllowed = 2 * time.Minute
)

// LaunchLimit returns how long one launch of a task may take at a size before it counts as hung.
func LaunchLimit(t *harness.Task, s harness.Size) time.Duration {
	flops, bytes, err := task.WorkAt(t, s)
	if err != nil || flops+bytes == 0 {
		if extents, err := task.Shapes(t, s); err == nil {
			for _, e := range extents {
				bytes += float64(e.Bytes())
			}
		}
		bytes *= 16 // nothing is known of the work: give it time
	}
	return min(leastLimit+time.Duration((flops+bytes)/slowestPerSec*float64(time.Second)), longestAllowed)
}
