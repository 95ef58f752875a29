package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ridgepoint/harness/baselines"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
)

// reportCmd shows a campaign.
type reportCmd struct {
	Campaign string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	HTML     string `name:"html" placeholder:"FILE" help:"Write one self-contained page instead; - is stdout."`
	JSON     bool   `name:"json" help:"Print the report as one JSON object."`
	dataFlag
}

// Run prints the report.
func (c *reportCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r, err := report.Build(ctx, store, c.Campaign)
	if err != nil {
		return notFound(err)
	}
	switch {
	case c.JSON:
		return writeJSON(env.stdout, r)
	case c.HTML == "-":
		return r.HTML(env.stdout)
	case c.HTML != "":
		f, err := os.Create(c.HTML)
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("--html: %w", err)}
		}
		if err := errors.Join(r.HTML(f), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", c.HTML, err)
		}
		_, err = fmt.Fprintf(env.stdout, "%s\n", c.HTML)
		return err
	default:
		return errors.Join(r.Text(env.stdout), externals(ctx, env, store, c.Campaign))
	}
}

// externals prints what external baselines took on this machine's devices, where `baseline` has kept some of the campaign's task.
func externals(ctx context.Context, env environment, store *memory.Store, campaign string) error {
	row, err := store.Campaign(ctx, campaign)
	if err != nil {
		return err
	}
	t := row.Campaign.Task
	kept, err := baselines.Open(baselineFolder(env)).All(t.Name)
	if err != nil {
		return err
	}
	for _, e := range kept {
		if len(e.External) == 0 || e.Key.Digest != t.Digest || e.Key.Target != row.Campaign.Target {
			continue
		}
		if _, err := fmt.Fprintln(env.stdout); err != nil {
			return err
		}
		if err := writeBaselines(env.stdout, e, row.Campaign.Sizes()); err != nil {
			return err
		}
	}
	return nil
}
