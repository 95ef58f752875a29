package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/check"
	"ridgepoint/harness/task"
)

// checkCmd is the linter of tasks.
type checkCmd struct {
	Task string `arg:"" help:"The task: a shipped name (softmax_2d), a task file, or a folder with a task.yaml."`

	Target       string `placeholder:"NAME" help:"Check one target alone: cpu, cuda or hip. Default: all of the task's."`
	Setup        bool   `help:"Install what is missing (a C compiler) through the system's package manager, showing what is run."`
	JSON         bool   `name:"json" help:"Print one JSON object a finding."`
	Seed         uint64 `default:"1" help:"Inputs and hidden sizes follow from it."`
	CC           string `name:"cc" placeholder:"PATH" help:"The C compiler; default: $$CC, else the first of gcc, clang and cc."`
	AllowReduced bool   `help:"Run a C baseline that is not shipped even where this machine cannot make the full sandbox."`
}

// Run prints a line a finding. A check that fails ends with exit code 1.
func (c checkCmd) Run(ctx context.Context, env environment) error {
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(c.Task)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	targets, err := pickTargets(loaded.Task, c.Target)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	for _, t := range targets { // structures are read too: a night would trip over a wrong one
		if _, err := loaded.Structures(t); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	j, err := newJudge(env, evalCmd{CC: c.CC}.compiler(env), c.AllowReduced)
	if err != nil {
		return err
	}
	if c.Setup {
		if err := (evalCmd{CC: c.CC, Setup: true}).prepare(ctx, env, targets[0]); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	report := func(f check.Finding) { _, _ = fmt.Fprintln(env.stdout, f) } // a closed stdout ends the process by itself
	if c.JSON {
		enc := json.NewEncoder(env.stdout)
		report = func(f check.Finding) { _ = enc.Encode(f) } // likewise
	}
	say, quiet := progressTo(env.stderr)
	defer quiet()
	ok, err := check.Run(ctx, check.Config{Task: loaded.Task, Judge: j, Targets: targets, Seed: c.Seed, Shipped: loaded.Shipped, ReportFunc: report, ProgressFunc: say})
	if err = errors.Join(err, j.Close()); err != nil {
		return evalError(err)
	}
	if !ok {
		return &exitError{exitVerdict, fmt.Errorf("task %s does not pass its check", loaded.Task.Name)}
	}
	return nil
}

// pickTargets returns the targets of a task that a person asked for; all of them for "".
func pickTargets(t *harness.Task, name string) ([]harness.Target, error) {
	var out []harness.Target
	for _, spec := range t.Targets {
		if name == "" || spec.Target.String() == name {
			out = append(out, spec.Target)
		}
	}
	if len(out) == 0 {
		if _, err := harness.ParseTarget(name); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: task %s has no target %s; add it under `targets:`", t.File, t.Name, name)
	}
	return out, nil
}
