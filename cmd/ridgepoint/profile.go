package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/gpu"
	"ridgepoint/harness/profile"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler/memory"
)

// profileCmd says where a kernel's time goes: Nsight Compute's counters distilled to a few diagnoses, or, where it cannot run,
// what the compiler's report, the computed occupancy and the roofline tell.
type profileCmd struct {
	Campaign  string   `arg:"" optional:"" help:"Campaign: an id, its beginning, or last." placeholder:"CAMPAIGN"`
	Candidate string   `help:"Candidate of the campaign, by its id or the beginning of it; default: the best one." placeholder:"ID"`
	Task      string   `help:"Instead of a campaign: a task, whose structure --structure names."`
	Structure string   `help:"Structure file of the task." type:"existingfile" placeholder:"FILE"`
	Param     []string `placeholder:"NAME=VALUE" sep:"none" help:"Set a parameter of the structure; may be given many times."`
	Size      string   `help:"Scored size, such as rows=4096,cols=4096; default: the largest."`
	Keep      string   `help:"Keep Nsight Compute's own report there (.ncu-rep)." placeholder:"FILE" type:"path"`
	JSON      bool     `name:"json" help:"Print the digests as JSON."`
	dataFlag
}

// Run profiles one candidate at one size.
func (c *profileCmd) Run(ctx context.Context, env environment) error {
	t, candidate, sizes, err := c.subject(ctx, env)
	if err != nil {
		return err
	}
	if candidate.Target == harness.TargetCPU {
		return &exitError{exitUsage, errors.New("profile: candidates of the cpu target are not profiled; name a cuda one")}
	}
	size, took, err := c.size(t, candidate.Target, sizes)
	if err != nil {
		return err
	}
	target := gpuTarget(env, false)
	j, err := newJudge(env, "", false, target)
	if err != nil {
		return err
	}
	digests, note, err := c.digests(ctx, j, target, gpu.ProfileOrder{Task: t, Candidate: candidate, Size: size, Took: took, Report: c.Keep})
	if err = errors.Join(err, j.Close()); err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(env.stderr, "note:", note)
	}
	if c.JSON {
		return writeJSON(env.stdout, digests)
	}
	fmt.Fprintf(env.stdout, "%s at %s\n", candidate.Structure.Name, size)
	for i := range digests {
		if _, err := fmt.Fprint(env.stdout, digests[i].Text()); err != nil {
			return err
		}
	}
	return nil
}

// builder is what profiling needs of a judge.
type builder interface {
	Compile(ctx context.Context, q *harness.Request) (*harness.Build, *harness.Report, error)
	Artifact(b *harness.Build) ([]byte, error)
}

func (c *profileCmd) digests(ctx context.Context, j builder, target *gpu.Target, o gpu.ProfileOrder) ([]profile.Digest, string, error) {
	b, r, err := j.Compile(ctx, &harness.Request{Task: o.Task, Candidate: o.Candidate, Plan: harness.Plan{Stage: harness.StageSearch}})
	if err != nil {
		return nil, "", err
	}
	if r != nil {
		return nil, "", &exitError{exitVerdict, fmt.Errorf("%s: %s", r.Fault, r.Reason)}
	}
	image, err := j.Artifact(b)
	if err != nil {
		return nil, "", err
	}
	f, err := os.CreateTemp("", "ridgepoint-module-")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.Remove(f.Name()) }() // scratch
	_, err = f.Write(image)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, "", err
	}
	o.Build, o.Path = b, f.Name()
	return target.Profile(ctx, o)
}

// subject finds the task and the candidate, with the times measured of it where there are any.
func (c *profileCmd) subject(ctx context.Context, env environment) (*harness.Task, *harness.Candidate, []harness.SizeTime, error) {
	if c.Campaign == "" {
		t, candidate, err := c.file()
		return t, candidate, nil, err
	}
	store, err := c.read(ctx, env)
	if err != nil {
		return nil, nil, nil, err
	}
	t, candidate, sizes, err := c.stored(ctx, store)
	return t, candidate, sizes, errors.Join(err, store.Close())
}

func (c *profileCmd) file() (*harness.Task, *harness.Candidate, error) {
	if c.Task == "" || c.Structure == "" {
		return nil, nil, &exitError{exitUsage, errors.New("profile: name a campaign, or --task and --structure")}
	}
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(c.Task)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	s, err := task.LoadStructure(c.Structure, loaded.Task, harness.TargetInvalid)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	s.Shipped = isShipped(s.Digest)
	config := harness.Configuration{}
	for _, assignment := range c.Param {
		name, v, err := task.ParseAssignment(s, assignment)
		if err != nil {
			return nil, nil, &exitError{exitUsage, err}
		}
		config[name] = v
	}
	candidate, err := task.NewCandidate(loaded.Task, s, config)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	return loaded.Task, candidate, nil
}

// stored finds a candidate among a campaign's records: the one asked for, else the one with the highest score.
func (c *profileCmd) stored(ctx context.Context, store *memory.Store) (*harness.Task, *harness.Candidate, []harness.SizeTime, error) {
	row, err := store.Campaign(ctx, c.Campaign)
	if err != nil {
		return nil, nil, nil, &exitError{exitUsage, err}
	}
	var best *harness.Record
	err = store.Records(ctx, row.Campaign.ID, 0, func(r *harness.Record) error {
		switch {
		case c.Candidate != "" && !strings.HasPrefix(r.CandidateID, c.Candidate), r.Score == nil:
		case best == nil || *r.Score > *best.Score:
			best = r
		}
		return nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if best == nil {
		return nil, nil, nil, &exitError{exitUsage, fmt.Errorf("campaign %s has no measured candidate %s", row.Campaign.ID, c.Candidate)}
	}
	structures, err := store.Structures(ctx, row.Campaign.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range append(structures, row.Campaign.Baseline.Structure) {
		if s.Digest != best.StructureSHA {
			continue
		}
		s.Shipped = isShipped(s.Digest)
		candidate, err := task.NewCandidate(row.Campaign.Task, s, best.Config)
		return row.Campaign.Task, candidate, best.Report.Sizes, err
	}
	return nil, nil, nil, fmt.Errorf("campaign %s lacks the structure %s of candidate %s", row.Campaign.ID, best.Structure, best.CandidateID)
}

// size is the scored size asked for, else the last one, with the time measured there.
func (c *profileCmd) size(t *harness.Task, target harness.Target, measured []harness.SizeTime) (harness.Size, time.Duration, error) {
	scored := t.ScoredSizes(target)
	size := scored[len(scored)-1]
	if c.Size != "" {
		found := false
		for _, s := range scored {
			if s.String() == c.Size {
				size, found = s, true
			}
		}
		if !found {
			return nil, 0, &exitError{exitUsage, fmt.Errorf("profile: %q is not a scored size of %s; write it as %s", c.Size, t.Name, size)}
		}
	}
	for _, m := range measured {
		if m.Size.Equal(size) {
			return size, time.Duration(m.MedianUS * 1e3), nil
		}
	}
	return size, 0, nil
}
