package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/check"
	"ridgepoint/harness/task"
)

// calibrateCmd runs a kernel that is known to be right and proposes tolerances.
type calibrateCmd struct {
	Task string `arg:"" help:"The task: a shipped name (softmax_2d), a task file, or a folder with a task.yaml."`
	File string `arg:"" optional:"" help:"A structure file that is known to be right; default: the task's baseline."`

	Target       string `placeholder:"NAME" help:"cpu, cuda or hip; default: the task's first that this machine can run."`
	JSON         bool   `name:"json" help:"Print the survey and the proposal as JSON."`
	Seed         uint64 `default:"1" help:"Inputs follow from it."`
	CC           string `name:"cc" placeholder:"PATH" help:"The C compiler; default: $$CC, else the first of gcc, clang and cc."`
	AllowReduced bool   `help:"Run a C source that is not shipped even where this machine cannot make the full sandbox."`
}

// Run prints the error distribution a size and the tolerances that follow.
func (c calibrateCmd) Run(ctx context.Context, env environment) error {
	loaded, candidates, err := c.load()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	j, err := newJudge(env, evalCmd{CC: c.CC}.compiler(env), c.AllowReduced)
	if err != nil {
		return err
	}
	say, quiet := progressTo(env.stderr)
	defer quiet()
	var p *check.Calibration
	for i, candidate := range candidates {
		p, err = check.Calibrate(ctx, j, loaded.Task, candidate, c.Seed, say)
		if err == nil || ctx.Err() != nil || i == len(candidates)-1 {
			break
		}
		_, _ = fmt.Fprintf(env.stderr, "%s cannot be run here (%v); trying the next target\n", candidate.Target, err) // a note to a person
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return evalError(err)
	}
	if c.JSON {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(p)
	}
	if _, err := fmt.Fprint(env.stdout, calibrationText(loaded.Task, p)); err != nil {
		return err
	}
	if p.Report.Fault != harness.FaultNone {
		return &exitError{exitVerdict, fmt.Errorf("%s: %s: %s", p.Kernel, p.Report.Fault, p.Report.Reason)}
	}
	return nil
}

// load returns the task and the kernel for each target that may serve.
func (c calibrateCmd) load() (*task.Loaded, []*harness.Candidate, error) {
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(c.Task)
	if err != nil {
		return nil, nil, err
	}
	targets, err := pickTargets(loaded.Task, c.Target)
	if err != nil {
		return nil, nil, err
	}
	var out []*harness.Candidate
	if c.File != "" {
		target := harness.TargetInvalid
		if c.Target != "" {
			target = targets[0]
		}
		s, err := task.LoadStructure(c.File, loaded.Task, target)
		if err != nil {
			return nil, nil, err
		}
		s.Shipped = isShipped(s.Digest)
		candidate, err := task.NewCandidate(loaded.Task, s, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.File, err)
		}
		return loaded, []*harness.Candidate{candidate}, nil
	}
	for _, t := range targets {
		b, err := task.Baseline(loaded.Task, t)
		if err != nil {
			return nil, nil, err
		}
		b.Shipped = loaded.Shipped
		candidate, err := task.NewCandidate(loaded.Task, b, nil)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, candidate)
	}
	return loaded, out, nil
}

// calibrationText is a table a size and input set, and the proposal.
func calibrationText(t *harness.Task, p *check.Calibration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "errors of %s (%s, %s) against the float64 reference\n", p.Kernel, p.Report.Target, p.Report.Arch)
	width := len("size")
	for _, s := range p.Report.Survey {
		width = max(width, len(s.Size.String()))
	}
	fmt.Fprintf(&b, "%-*s %-10s %-10s %9s %9s %9s %9s %9s %9s %9s\n", width, "size", "inputs", "output", "rms", "mean", "median", "99 %", "99.99 %", "max", "relative")
	for _, s := range p.Report.Survey {
		fmt.Fprintf(&b, "%-*s %-10s %-10s %9.2g %9.2g %9.2g %9.2g %9.2g %9.2g %9.2g\n", width, s.Size, s.Distribution, s.Tensor, s.RMS, float64(s.MeanAbs),
			check.Quantile(s, 0.5), check.Quantile(s, 0.99), check.Quantile(s, 0.9999), float64(s.MaxAbs), s.MaxRel)
	}
	fmt.Fprintf(&b, "\nwritten   eval: {atol: %g, rtol: %g}\n", t.Eval.ATol, t.Eval.RTol)
	if p.ATol > 0 || p.RTol > 0 {
		fmt.Fprintf(&b, "proposed  eval: {atol: %g, rtol: %g}   # %s\n", p.ATol, p.RTol, p.Reason)
	}
	for _, line := range p.Notes {
		b.WriteString(line + "\n")
	}
	return b.String()
}
