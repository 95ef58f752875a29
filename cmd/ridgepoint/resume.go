package main

import (
	"context"
	"errors"

	"ridgepoint/scheduler/memory"
)

// resumeCmd goes on with a campaign that was stopped or killed.
type resumeCmd struct {
	Campaign string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	Setup    bool   `help:"Install what is missing (a C compiler) with the system's package manager first."`
	JSON     bool   `name:"json" help:"End with one JSON object on stdout."`
	Limits   string `help:"Permits and rates across the fleet: gpu=2 is two measurements at once, compile=4@10/20 four compiles, ten begun a second, twenty after a pause." placeholder:"CLASS=N,..."`
	dataFlag
	redisFlags
	serveFlags
}

// Run goes on with the campaign.
func (c *resumeCmd) Run(ctx context.Context, env environment) error {
	dir, err := c.dir(env, nil)
	if err != nil {
		return err
	}
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	row, err := store.Campaign(ctx, c.Campaign)
	if err != nil {
		return errors.Join(&exitError{exitUsage, err}, store.Close())
	}
	s := &session{env: env, store: store, campaign: &row.Campaign, setup: c.Setup, json: c.JSON, redis: c.redisFlags, serve: c.serveFlags, permits: c.Limits}
	return errors.Join(s.run(ctx), store.Close())
}
