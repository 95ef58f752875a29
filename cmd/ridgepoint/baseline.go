package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/baselines"
	"ridgepoint/harness/task"
)

// baselineCmd measures a task's textbook baseline on this machine, and external baselines beside it, and keeps both.
type baselineCmd struct {
	Task         string   `arg:"" help:"The task: a shipped name (softmax_2d), a task file, or a folder with a task.yaml."`
	Target       string   `default:"cuda" help:"Target: cpu, cuda or hip."`
	External     []string `placeholder:"COMMAND" sep:"none" help:"Run this command line, which prints a line \"SIZE MICROSECONDS\" a size, such as: python3 configs/tasks/torch_baseline.py softmax_2d. May be given many times."`
	Setup        bool     `help:"Install what is missing (a C compiler) with the system's package manager first."`
	AllowReduced bool     `help:"Run a C baseline that is not shipped even where this machine cannot make the full sandbox."`
	JSON         bool     `name:"json" help:"Print what is kept as JSON."`
}

// baselineFolder is where the registry lies.
func baselineFolder(env environment) string { return filepath.Join(cacheFolder(env), "baselines") }

// Run measures, keeps and prints.
func (c *baselineCmd) Run(ctx context.Context, env environment) error {
	target, err := harness.ParseTarget(c.Target)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(c.Task)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	source, err := task.Baseline(loaded.Task, target)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	source.Shipped = loaded.Shipped
	candidate, err := task.NewCandidate(loaded.Task, source, nil)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	e := evalCmd{Setup: c.Setup, AllowReduced: c.AllowReduced}
	if err := e.prepare(ctx, env, target); err != nil {
		return err
	}
	j, err := newJudge(env, e.compiler(env), c.AllowReduced)
	if err != nil {
		return err
	}
	plan := harness.Plan{Stage: harness.StageFirst, Seed: 1}
	if plan.Processes, err = e.processes(candidate); err != nil {
		return err
	}
	r, err := e.judge(ctx, j, &harness.Request{Task: loaded.Task, Candidate: candidate, Rivals: []harness.Rival{{Role: "baseline", Candidate: candidate}}, Plan: plan})
	if err = errors.Join(err, j.Close()); err != nil {
		return evalError(err)
	}
	if !r.Fault.Measured() {
		return &exitError{exitVerdict, fmt.Errorf("the baseline of %s: %s: %s", loaded.Task.Name, r.Fault, r.Reason)}
	}
	if len(r.Sizes) == 0 {
		return &exitError{exitVerdict, errors.New("times are refused on the emulated device: there is no baseline to keep")}
	}
	registry := baselines.Open(baselineFolder(env))
	key := baselines.KeyOf(loaded.Task, r)
	for _, command := range c.External {
		m, err := baselines.Run(ctx, command, loaded.Task.ScoredSizes(target))
		if err == nil {
			err = registry.PutExternal(key, command, m)
		}
		if err != nil {
			return &exitError{exitInfra, err}
		}
	}
	kept, err := registry.Get(key)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(env.stdout, kept)
	}
	return writeBaselines(env.stdout, kept, loaded.Task.ScoredSizes(target))
}

// writeBaselines prints an entry: a line a size, in microseconds.
func writeBaselines(w io.Writer, e *baselines.Entry, sizes []harness.Size) error {
	commands := slices.Sorted(maps.Keys(e.External))
	_, err := fmt.Fprintf(w, "baselines of %s on %s (%s), us:\n%-28s %10s", e.Key.Task, e.Key.Device, driverName(e.Key.Driver), "size", "textbook")
	for i := range commands {
		_, werr := fmt.Fprintf(w, " %12s", fmt.Sprintf("external %d", i+1))
		err = errors.Join(err, werr)
	}
	blank := false
	for _, s := range sizes {
		blank = blank || e.Textbook.Of(s) == 0
		_, werr := fmt.Fprintf(w, "\n%-28s %10s", s, microseconds(e.Textbook.Of(s)))
		err = errors.Join(err, werr)
		for _, command := range commands {
			_, werr := fmt.Fprintf(w, " %12s", microseconds(e.External[command].Of(s)))
			err = errors.Join(err, werr)
		}
	}
	for i, command := range commands {
		_, werr := fmt.Fprintf(w, "\nexternal %d: %s", i+1, command)
		err = errors.Join(err, werr)
	}
	note := ""
	if blank {
		note = "\na size without a textbook time was disturbed: measure it again on a quiet machine"
	}
	_, werr := fmt.Fprintln(w, note)
	return errors.Join(err, werr)
}

func driverName(driver string) string {
	if driver == "" {
		return "no driver"
	}
	return driver
}
