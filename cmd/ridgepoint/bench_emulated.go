package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// emulatedBytes is the footprint up to which a task's sizes are sent to the emulated device, which is slow.
const emulatedBytes = 1 << 20

// emulate lays a campaign out for the emulated device: its arch, and the task's sizes that are small enough for it.
func emulate(c *scheduler.Campaign) error {
	own := *c.Task
	own.Targets = append([]harness.TargetSpec(nil), own.Targets...)
	c.Task = &own
	for i := range own.Targets {
		spec := &own.Targets[i]
		if spec.Target != c.Target {
			continue
		}
		spec.Arch = device.Emulated
		var small []harness.Size
		for _, s := range own.ScoredSizes(c.Target) {
			if footprint(c.Task, s) <= emulatedBytes {
				small = append(small, s)
			}
		}
		if len(small) == 0 {
			return &exitError{exitUsage, fmt.Errorf("task %s has no size under %d KB, which the emulated device needs", own.Name, emulatedBytes>>10)}
		}
		spec.Sizes = small
		own.Digest += "-" + device.Emulated // another task than the one on cards
	}
	baseline, err := task.NewCandidate(c.Task, c.Baseline.Structure, nil)
	c.Baseline = baseline
	return err
}

func footprint(t *harness.Task, s harness.Size) (bytes int64) {
	extents, err := task.Shapes(t, s)
	if err != nil {
		return 1 << 62
	}
	for _, e := range extents {
		bytes += e.Bytes()
	}
	return bytes
}

// emulated sends candidates over the embedded queue to the emulated device, and counts what became of them. It refuses every
// time: what it shows is that the way is whole.
func (c *benchThroughputCmd) emulated(ctx context.Context, env environment, campaign *scheduler.Campaign, st *harness.Structure) error {
	if err := emulate(campaign); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ridgepoint-throughput-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	s := &session{env: env, store: store, campaign: campaign}
	outcomes := make(chan *scheduler.Outcome)
	var records []*harness.Record
	err = s.withCarriage(ctx, zerolog.New(env.stderr).Level(zerolog.WarnLevel), func(ctx context.Context, carriage *carriage) error {
		defer carriage.join(campaign.ID, func(ctx context.Context, o *scheduler.Outcome) error {
			select {
			case outcomes <- o:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})()
		d := carriage.dispatcher(campaign, 1, 0)
		defer d.Close()
		if err := c.dispatch(ctx, d, store.SchedulerID(), campaign, st); err != nil {
			return err
		}
		for len(records) < c.Emulated {
			select {
			case o := <-outcomes:
				records = append(records, &harness.Record{Purpose: string(scheduler.PurposeSearch), Trial: o.Key.Trial, Report: o.Report})
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return c.told(env, records, campaign, st)
}

// dispatch draws configurations that the task allows and sends them out.
func (c *benchThroughputCmd) dispatch(ctx context.Context, d scheduler.Dispatcher, id string, campaign *scheduler.Campaign, st *harness.Structure) error {
	rng := rand.New(rand.NewPCG(c.Seed, 0xe171))
	for n, tries := int64(1), 0; n <= int64(c.Emulated); tries++ {
		if tries > 10_000 {
			return fmt.Errorf("structure %s: no feasible configuration in %d drawn", st.Name, tries)
		}
		candidate, err := task.NewCandidate(campaign.Task, st, drawn(st, rng))
		if err != nil {
			continue // not feasible: draw again
		}
		job := &scheduler.Job{Key: scheduler.TrialKey{Campaign: campaign.ID, Trial: n, Attempt: 1}, Scheduler: id, Purpose: scheduler.PurposeSearch, Weight: 1, Deadline: time.Now().Add(time.Hour),
			Request: harness.Request{Task: campaign.Task, Candidate: candidate, Plan: harness.Plan{Stage: harness.StageSearch, Seed: rng.Uint64()}}}
		if err := d.Dispatch(ctx, job); err != nil {
			return err
		}
		n++
	}
	return nil
}

// drawn is a configuration at random, feasible or not.
func drawn(s *harness.Structure, rng *rand.Rand) harness.Configuration {
	out := harness.Configuration{}
	for _, p := range s.Params {
		values := task.Values(p)
		out[p.Name] = values[rng.IntN(len(values))]
	}
	return out
}
