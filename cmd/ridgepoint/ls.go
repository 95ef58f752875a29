package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/report"
)

// lsCmd lists the campaigns of a store.
type lsCmd struct {
	JSON bool `name:"json" help:"Print one JSON object a line."`
	dataFlag
}

// listed is one line of ls.
type listed struct {
	State   scheduler.State `json:"state"`
	Created time.Time       `json:"created"`
	*scheduler.Result
}

// Run prints the campaigns, oldest first.
func (c *lsCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	rows, err := store.Campaigns(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "CAMPAIGN\tSTATE\tSTARTED\tTASK\tTARGET\tEVALUATIONS\tSPEEDUP\tWINNER")
	}
	for i := range rows {
		r, err := report.Build(ctx, store, rows[i].Campaign.ID)
		if err != nil {
			return err
		}
		row := listed{State: rows[i].State, Created: rows[i].Campaign.Created, Result: r.Result}
		if c.JSON {
			if err := writeJSON(env.stdout, row); err != nil {
				return err
			}
			continue
		}
		speedup, winner := "-", "-"
		if k := row.Winner; k != nil {
			speedup, winner = fmt.Sprintf("%.2f× confirmed", k.Speedup), k.Structure
			if k.ReplayedSpeedup > 0 {
				speedup = fmt.Sprintf("%.2f× replayed", k.ReplayedSpeedup)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", row.Campaign, row.State, row.Created.Local().Format("2006-01-02 15:04"), row.Task, row.Target, row.Evaluations, speedup, winner)
	}
	return w.Flush()
}

// writeJSON writes one object on one line.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
