package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ridgepoint/configs"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/queue"
)

// batchCmd runs many campaigns as one night.
type batchCmd struct {
	File     string `arg:"" help:"Batch file: campaigns with weights, their order, a total budget, a deadline." type:"existingfile"`
	NoWorker bool   `help:"Do not work in this process: a fleet's workers do (needs --redis)."`
	Limits   string `help:"Permits and rates across the fleet: gpu=2 is two measurements at once, compile=4@10/20 four compiles, ten begun a second, twenty after a pause." placeholder:"CLASS=N,..."`
	Setup    bool   `help:"Install what is missing (a C compiler) with the system's package manager first."`
	JSON     bool   `name:"json" help:"End with one JSON object a campaign on stdout."`
	dataFlag
	redisFlags
	serveFlags
}

// Run runs the night. The same command goes on with a night that was stopped, and skips what was done.
func (c batchCmd) Run(ctx context.Context, env environment) error {
	b, err := configs.LoadBatch(c.File)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	if c.NoWorker && cfg.IsEmbedded() {
		return &exitError{exitUsage, errors.New("--no-worker with an embedded Redis: nobody would work; name the fleet's with --redis")}
	}
	dir, err := c.dir(env, nil)
	if err != nil {
		return err
	}
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(c.night(ctx, env, b, cfg, store), store.Close())
}

func (c batchCmd) night(ctx context.Context, env environment, b *configs.Batch, cfg queue.Config, store *memory.Store) error {
	n := &night{env: env, store: store, log: c.logger(env), parallel: b.Order == configs.OrderParallel, left: -1}
	started, err := c.enter(ctx, n, b)
	if err != nil {
		return err
	}
	if b.Budget.Evaluations > 0 {
		n.left = b.Budget.Evaluations
	}
	if b.Budget.Wall > 0 {
		n.ends = started.Add(time.Duration(b.Budget.Wall))
	}
	if b.Deadline != nil && (n.ends.IsZero() || b.Deadline.Before(n.ends)) {
		n.ends = b.Deadline.Time
	}
	var worker *queue.WorkerConfig
	closeFunc := func() error { return nil }
	if campaigns := n.campaigns(); len(campaigns) > 0 && !c.NoWorker {
		if worker, closeFunc, err = ownWorker(ctx, env, campaigns, store.Dir(), cfg.IsEmbedded(), c.Setup, n.log); err != nil {
			return err
		}
	}
	err = n.nightNode(ctx, cfg, c.serveFlags, c.Limits, worker)
	return errors.Join(nightError(err), closeFunc(), n.print(env.stdout, c.JSON))
}

// enter adds the batch's campaigns and returns when its first one was started.
func (c batchCmd) enter(ctx context.Context, n *night, b *configs.Batch) (started time.Time, err error) {
	started = time.Now()
	for i, entry := range b.Campaigns {
		cfg, err := configs.Load(entry.Campaign)
		if err != nil {
			return started, &exitError{exitUsage, err}
		}
		if entry.Task != "" {
			cfg.Campaign.Task, cfg.Campaign.File = entry.Task, ""
		}
		if entry.Target != "" {
			cfg.Campaign.Target = entry.Target
		}
		e, err := n.take(ctx, fmt.Sprintf("%s/%d-%s", b.Name, i+1, cfg.Campaign.Name), &cfg.Campaign, entry.Weight, entry.Priority)
		if err != nil {
			return started, err
		}
		e.wall, e.most = time.Duration(entry.Budget.Wall), entry.Budget.Evaluations
		if e.resumed && e.session.campaign.Created.Before(started) {
			started = e.session.campaign.Created
		}
	}
	return started, nil
}
