package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/replay"
	"ridgepoint/scheduler/loop"
)

// bruteCmd measures every configuration of a structure and records the space.
type bruteCmd struct {
	Task      string `arg:"" help:"The task: a shipped name (softmax_2d), a task file, or a folder with a task.yaml."`
	Structure string `arg:"" help:"The structure file."`

	Out   string `short:"o" type:"path" placeholder:"FILE" help:"Where the recording goes (.jsonl or .jsonl.gz), which is called after it; default: TASK_STRUCTURE.jsonl.gz. \"bench optimizer --spaces\" reads its folder, and a campaign's transfer key may name it. Lines so far are kept in FILE.part; run the command again to go on."`
	Limit int    `default:"20000" help:"Refuse spaces with more configurations than this."`
	Seed  uint64 `default:"1" help:"Inputs, poison and hidden sizes follow from it."`
	CC    string `name:"cc" placeholder:"PATH" help:"The C compiler; default: $$CC, else the first of gcc, clang and cc."`
	Setup bool   `help:"Install what is missing (a C compiler) through the system's package manager, showing what is run."`

	AllowReduced bool `help:"Run a C source that is not shipped even where this machine cannot make the full sandbox."`
}

// Run evaluates the configurations in the space's order and writes the recording when all are done.
func (b bruteCmd) Run(ctx context.Context, env environment) error {
	e, q, err := b.request()
	if err != nil {
		return err
	}
	s := q.Candidate.Structure
	space, err := loop.SpaceOf(q.Task, s)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("%s: %w", b.Structure, err)}
	}
	if b.Limit < 1 {
		return &exitError{exitUsage, fmt.Errorf("--limit is %d: want at least 1", b.Limit)}
	}
	if space.Size() > float64(b.Limit) {
		return &exitError{exitUsage, fmt.Errorf("%s has %.0f configurations, more than --limit %d: narrow its parameters or raise the limit", b.Structure, space.Size(), b.Limit)}
	}
	if b.Out == "" {
		b.Out = q.Task.Name + "_" + s.Name + ".jsonl.gz"
	}
	if err := e.prepare(ctx, env, q.Candidate.Target); err != nil {
		return err
	}
	j, err := newJudge(env, e.compiler(env), e.AllowReduced)
	if err != nil {
		return err
	}
	err = b.record(ctx, env, q, space, func(ctx context.Context, q *harness.Request) (*harness.Report, error) { return e.judge(ctx, j, q) })
	if err = errors.Join(err, j.Close()); err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return &exitError{exitStopped, fmt.Errorf("interrupted; what was measured is in %s.part: run the command again to go on", b.Out)}
	}
	var known *exitError
	if errors.As(err, &known) {
		return known
	}
	return evalError(err)
}

// request is what each configuration is asked with: one process for all of them, since they are compared with each other.
func (b bruteCmd) request() (evalCmd, *harness.Request, error) {
	e := evalCmd{Task: b.Task, File: b.Structure, Stage: string(harness.StageSearch), Seed: b.Seed, CC: b.CC, Setup: b.Setup, AllowReduced: b.AllowReduced}
	q, err := e.request()
	if err == nil {
		q.Plan.Processes = 0
	}
	return e, q, err
}

// record goes through the space, skipping what an earlier run left in the part file.
func (b bruteCmd) record(ctx context.Context, env environment, q *harness.Request, space *optimizer.Space, judge func(context.Context, *harness.Request) (*harness.Report, error)) (err error) {
	h := replay.NewHeader(space, recordingName(b.Out), q.Task.Name+" "+q.Candidate.Structure.Name, q.Candidate.Options.Arch)
	h.Made = fmt.Sprintf("task %.12s candidate %.12s seed %d", q.Task.Digest, q.Candidate.ID(), b.Seed)
	w, err := replay.OpenWriter(b.Out, h, space)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	pool := space.NewPool()
	began, measured := time.Now(), 0
	for id := range pool.Len() {
		if w.Has(id) {
			continue
		}
		c, err := task.NewCandidate(q.Task, q.Candidate.Structure, space.Configuration(pool.Row(id)))
		if err != nil {
			return &exitError{exitUsage, err}
		}
		r, err := judge(ctx, &harness.Request{Task: q.Task, Candidate: c, Plan: q.Plan})
		if err != nil {
			return err
		}
		if err := w.Add(id, measurement(r)); err != nil {
			return err
		}
		if measured++; measured%25 == 0 {
			each := time.Since(began) / time.Duration(measured)
			_, _ = fmt.Fprintf(env.stderr, "%d of %d configurations, %v left\n", w.Len(), pool.Len(), (each * time.Duration(pool.Len()-w.Len())).Round(time.Second)) // progress only
		}
	}
	best, failed, err := w.Finish()
	var nothing *replay.NothingRanError
	if errors.As(err, &nothing) {
		return &exitError{exitVerdict, fmt.Errorf("%s: all %d configurations failed (%s), so that there is nothing to record: see why with `ridgepoint eval %s %s`, then remove %s.part and run the command again",
			b.Structure, nothing.Configurations, nothing.Kinds(), b.Task, b.Structure, b.Out)}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "%s: %d configurations, %d failed, best %.6g ms\n", b.Out, pool.Len(), failed, best)
	return err
}

// recordingName is the file's name without its ending: two recordings in one folder then differ in name, too.
func recordingName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".jsonl")
}

// measurement is what a recording keeps of a report: the geometric mean over the scored sizes of the medians, with the mean
// spread of their repeats.
func measurement(r *harness.Report) replay.Measurement {
	m := replay.Measurement{BenchMS: r.Split.Measure * 1e3}
	if r.Build != nil {
		m.CompileMS = r.Build.TookSeconds * 1e3
	}
	if !r.Fault.Measured() || len(r.Sizes) == 0 {
		m.Fail = r.Fault.String()
		return m
	}
	log, spread := 0.0, 0.0
	for _, s := range r.Sizes {
		log += math.Log(s.MedianUS/1e3) / float64(len(r.Sizes))
		spread += s.SpreadRatio / 2.56 / float64(len(r.Sizes)) // (p90-p10)/median of a normal is 2.56 deviations
	}
	m.TimeMS = math.Exp(log)
	m.SDMS = spread * m.TimeMS
	return m
}
