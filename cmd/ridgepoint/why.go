package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/report"
)

// whyCmd says why a trial was run: the choice with its numbers, the structure's lineage, and what came of it.
type whyCmd struct {
	Trial    int64  `arg:"" help:"Number of the trial, as report and records.jsonl have it."`
	Campaign string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	JSON     bool   `name:"json" help:"Print one JSON object."`
	dataFlag
}

// reason is what the command prints.
type reason struct {
	Campaign  string             `json:"campaign"`
	Trial     int64              `json:"trial"`
	Purpose   scheduler.Purpose  `json:"purpose"`
	Structure string             `json:"structure"`
	Direction string             `json:"direction"`
	Point     scheduler.Point    `json:"point"`
	Asked     bool               `json:"asked"` // by the optimizer
	Why       map[string]float64 `json:"why,omitempty"`
	Draft     *scheduler.Draft   `json:"draft,omitempty"` // that the structure, or the point, came from
	Parents   []string           `json:"parents,omitempty"`
	Outcome   *scheduler.Summary `json:"outcome,omitempty"`
}

// Run finds the trial in the log and prints it.
func (c *whyCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var trial *scheduler.Trial
	var outcome *scheduler.Summary
	drafts, added := map[int64]*scheduler.Draft{}, map[int]*scheduler.Added{}
	v, err := viewOf(ctx, store, c.Campaign, func(e *scheduler.Event, data any, _ *decide.State) {
		switch d := data.(type) {
		case *scheduler.Trial:
			if e.Trial == c.Trial {
				trial = d
			}
		case *scheduler.Summary:
			if e.Trial == c.Trial {
				outcome = d
			}
		case *scheduler.Draft:
			drafts[d.Number] = d
		case *scheduler.Added:
			added[d.Structure] = d
		}
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if trial == nil {
		return &exitError{exitUsage, fmt.Errorf("campaign %s has no trial %d; it has planned %d", v.Campaign.ID, c.Trial, v.State.NextTrial-1)}
	}
	r := &reason{Campaign: v.Campaign.ID, Trial: c.Trial, Purpose: trial.Purpose, Structure: "baseline", Point: trial.Point, Asked: trial.Asked, Why: trial.Why, Outcome: outcome}
	if a := added[trial.Point.Structure]; a != nil {
		r.Structure, r.Direction, r.Draft = a.Name, a.Direction, drafts[a.Draft]
	}
	if trial.Draft > 0 {
		r.Draft = drafts[trial.Draft]
	}
	if r.Draft != nil {
		for _, n := range r.Draft.Ask.Parents {
			if a := added[n]; a != nil {
				r.Parents = append(r.Parents, a.Name)
			}
		}
	}
	if c.JSON {
		return writeJSON(env.stdout, r)
	}
	return r.print(env.stdout)
}

func (r *reason) print(w io.Writer) error {
	p := func(format string, args ...any) {
		fmt.Fprintf(w, format, args...) //nolint:errcheck // stdout: the last write's error is returned below
	}
	p("trial %d of %s: %s of %s", r.Trial, r.Campaign, r.Purpose, r.Structure)
	if r.Direction != "" {
		p(" (direction %s)", r.Direction)
	}
	p("\n")
	if len(r.Point.Configuration) > 0 {
		p("  configuration: %s\n", report.Config(r.Point.Configuration))
	}
	if r.Asked {
		p("  the optimizer, or a draft, named the configuration\n")
	}
	if len(r.Why) > 0 {
		p("  chosen because:\n")
		names := make([]string, 0, len(r.Why))
		for n := range r.Why {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			p("    %-24s %.5g\n", n, r.Why[n])
		}
	}
	if d := r.Draft; d != nil {
		p("  lineage: %s, asked to %s by %s", d.Name, d.Ask.Step, orNone(d.Model, "nobody"))
		if len(r.Parents) > 0 {
			p(" from %v", r.Parents)
		}
		p("; prompt %.12s, %d rounds, %d tokens, $%.4f\n", d.PromptHash, d.Rounds, d.Spent.Tokens, float64(d.Spent.MicroUSD)/1e6)
		if d.Change != "" {
			p("    change: %s\n", d.Change)
		}
		if d.Expected > 0 {
			p("    expected: %.2f of the best's run time then\n", d.Expected)
		}
	}
	o := r.Outcome
	switch {
	case o == nil:
		p("  outcome: none yet\n")
	case o.Score != nil:
		p("  outcome: %s, score %.5g, %.3f s of device time\n", o.Fault, *o.Score, o.DeviceSeconds)
	default:
		p("  outcome: %s %s\n", o.Fault, o.Reason)
	}
	_, err := fmt.Fprint(w)
	return err
}

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}
