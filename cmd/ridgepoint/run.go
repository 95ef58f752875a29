package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ridgepoint/configs"
	"ridgepoint/scheduler/memory"
)

// runCmd starts a campaign and works on it until it ends.
type runCmd struct {
	Campaign      string        `arg:"" optional:"" help:"Campaign file, or a shipped one by name (default: softmax-cpu)." placeholder:"CAMPAIGN"`
	Task          string        `help:"Task instead of the campaign's: a shipped name, a file or a folder."`
	Target        string        `help:"Target instead of the campaign's: cpu, cuda or hip."`
	Budget        time.Duration `help:"Wall time of the whole campaign, such as 60s or 12h."`
	Evaluations   int64         `help:"Stop after so many evaluations."`
	TargetSpeedup float64       `help:"Stop when a confirmed kernel is this many times faster than the baseline."`
	Optimizer     string        `help:"Parameter search: tpe, random, goptuna-tpe, ..."`
	LLM           string        `name:"llm" help:"replay:FILE takes a recording in the models' place; off asks nobody." placeholder:"WORD"`
	Feedback      string        `help:"What models are told of a measurement instead of the campaign's: structured_v1 or plain." placeholder:"SCHEMA"`
	Seed          uint64        `help:"Seed of every random choice; 0 draws one."`
	Setup         bool          `help:"Install what is missing (a C compiler) with the system's package manager first."`
	JSON          bool          `name:"json" help:"End with one JSON object on stdout."`
	Limits        string        `help:"Permits and rates across the fleet: gpu=2 is two measurements at once, compile=4@10/20 four compiles, ten begun a second, twenty after a pause." placeholder:"CLASS=N,..."`
	dataFlag
	redisFlags
	serveFlags
}

// Run runs the campaign.
func (c *runCmd) Run(ctx context.Context, env environment) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	campaign, structures, err := newCampaign(&cfg.Campaign)
	if err != nil {
		return err
	}
	dir, err := c.dir(env, cfg)
	if err != nil {
		return err
	}
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	s := &session{env: env, store: store, campaign: campaign, structures: structures, setup: c.Setup, json: c.JSON, redis: c.redisFlags, serve: c.serveFlags, permits: c.Limits}
	return errors.Join(s.run(ctx), store.Close())
}

// checkFlags refuses numbers that no campaign can have.
func (c *runCmd) checkFlags() error {
	switch {
	case c.Budget < 0:
		return fmt.Errorf("--budget %s: want a positive time, such as 60s", c.Budget)
	case c.Evaluations < 0:
		return fmt.Errorf("--evaluations %d: want a positive number", c.Evaluations)
	case c.TargetSpeedup != 0 && !(c.TargetSpeedup > 1 && c.TargetSpeedup < 1e6):
		return fmt.Errorf("--target-speedup %v: want a number over 1", c.TargetSpeedup)
	default:
		return nil
	}
}

// config is the campaign's file with the flags laid over it.
func (c *runCmd) config() (*configs.Config, error) {
	if err := c.checkFlags(); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	name := c.Campaign
	if name == "" {
		name = configs.DefaultCampaign
	}
	cfg, err := configs.Load(name)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	k := &cfg.Campaign
	if c.Task != "" {
		if k.Task != c.Task && c.Campaign == "" {
			k.Name = c.Task
		}
		k.Task, k.File = c.Task, ""
	}
	if c.Target != "" {
		k.Target = c.Target
	}
	if c.Budget > 0 {
		k.Budget.Wall = configs.Duration(c.Budget)
	}
	if c.Evaluations > 0 {
		k.Budget.Evaluations = c.Evaluations
	}
	if c.TargetSpeedup > 0 {
		k.TargetSpeedup = c.TargetSpeedup
	}
	if c.Optimizer != "" {
		k.Optimizer = c.Optimizer
	}
	if c.Seed != 0 {
		k.Seed = c.Seed
	}
	if c.Feedback != "" {
		k.LLM.FeedbackSchema = c.Feedback
	}
	if c.LLM != "" {
		if err := overrideLLM(k, c.LLM); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	return cfg, nil
}
