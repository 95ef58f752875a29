package main

import (
	"context"
	"errors"
	"fmt"

	"ridgepoint/configs"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// schedulerCmd runs campaigns over a fleet, without workers of its own.
type schedulerCmd struct {
	Campaigns []string `arg:"" optional:"" help:"Campaign files, or shipped ones by name, run side by side; unfinished ones of the same name go on. Without any, all unfinished campaigns of the store go on." placeholder:"CAMPAIGN"`
	Weight    float64  `help:"Share of the fleet against other schedulers' campaigns." default:"1"`
	Priority  int      `help:"Above 0: taken before others' work; below: after." default:"0"`
	Limits    string   `help:"Permits and rates across the fleet: gpu=2 is two measurements at once, compile=4@10/20 four compiles, ten begun a second, twenty after a pause." placeholder:"CLASS=N,..."`
	JSON      bool     `name:"json" help:"End with one JSON object a campaign on stdout."`
	dataFlag
	redisFlags
	serveFlags
}

// Run schedules until every campaign has ended.
func (c schedulerCmd) Run(ctx context.Context, env environment) error {
	if !(c.Weight > 0 && c.Weight < 1e6) {
		return &exitError{exitUsage, fmt.Errorf("--weight %g: want a number above 0, such as 2 for twice the share of a scheduler of weight 1", c.Weight)}
	}
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	if cfg.IsEmbedded() {
		return &exitError{exitUsage, errors.New("a scheduler needs a fleet: name its Redis with --redis or RIDGEPOINT_REDIS (on one machine, use `ridgepoint run`)")}
	}
	dir, err := c.dir(env, nil)
	if err != nil {
		return err
	}
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	n := &night{env: env, store: store, log: c.logger(env), parallel: true, left: -1}
	err = c.enter(ctx, n)
	if err == nil {
		err = n.nightNode(ctx, cfg, c.serveFlags, c.Limits, nil)
		err = errors.Join(nightError(err), n.print(env.stdout, c.JSON))
	}
	return errors.Join(err, store.Close())
}

// enter adds the named campaigns, or all unfinished ones.
func (c schedulerCmd) enter(ctx context.Context, n *night) error {
	for _, name := range c.Campaigns {
		cfg, err := configs.Load(name)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		if _, err := n.take(ctx, cfg.Campaign.Name, &cfg.Campaign, c.Weight, c.Priority); err != nil {
			return err
		}
	}
	if len(c.Campaigns) > 0 {
		return nil
	}
	rows, err := n.store.Campaigns(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		if row := &rows[i]; row.State != scheduler.StateDone {
			n.entries = append(n.entries, &nightEntry{label: row.Campaign.Name, weight: c.Weight, priority: c.Priority, resumed: true,
				session: &session{env: n.env, store: n.store, campaign: &row.Campaign, weight: c.Weight, priority: c.Priority}})
		}
	}
	if len(n.entries) == 0 {
		return &exitError{exitUsage, fmt.Errorf("%s holds no unfinished campaign: name one to start", n.store.Dir())}
	}
	return nil
}
