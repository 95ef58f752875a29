package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"ridgepoint/configs"
	"ridgepoint/scheduler/report"
)

// rescoreCmd ranks a campaign's candidates under another reward, from the stored runtimes, without running anything.
type rescoreCmd struct {
	Campaign string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	Reward   string `required:"" placeholder:"FILE|{...}" help:"Reward file, or one line such as '{kind: expr, expr: \"-max([a / b for a, b in zip(t, baseline)])\"}'."`
	Top      int    `default:"15" help:"How many candidates to print; 0: all."`
	JSON     bool   `name:"json" help:"Print one JSON object a candidate, best first."`
	dataFlag
}

// Run prints the ranking.
func (c *rescoreCmd) Run(ctx context.Context, env environment) (err error) {
	r, err := configs.LoadReward(c.Reward)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	rows, err := report.Rescore(ctx, store, c.Campaign, r)
	if err != nil {
		return notFound(err)
	}
	if c.Top > 0 && len(rows) > c.Top {
		rows = rows[:c.Top]
	}
	if c.JSON {
		for _, row := range rows {
			if err := writeJSON(env.stdout, row); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RANK\tWAS\tSCORE\tWAS\tSPEEDUP\tCANDIDATE\tSTRUCTURE\tCONFIGURATION")
	for _, row := range rows {
		fmt.Fprintf(w, "%d\t%d\t%.5g\t%.5g\t%.2f×\t%s\t%s\t%s\n", row.Rank, row.OldRank, row.Score, row.OldScore, row.Speedup, report.Short(row.Candidate), row.Structure, report.Config(row.Configuration))
	}
	return w.Flush()
}
