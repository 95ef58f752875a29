package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/configs"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/queue"
)

// night runs several campaigns of one store over one carriage, one after another or side by side.
type night struct {
	env      environment
	store    *memory.Store
	log      zerolog.Logger
	parallel bool
	ends     time.Time // zero: no deadline
	left     int64     // evaluations that may still be started; < 0: no limit
	entries  []*nightEntry
}

// nightEntry is one campaign of a night.
type nightEntry struct {
	label    string
	session  *session
	weight   float64
	priority int
	wall     time.Duration // at most; 0: what the night has left
	most     int64         // evaluations at most; 0: what the night has left
	resumed  bool          // its budget was written when it was started
	skipped  string        // why it is not run
	result   *scheduler.Result
	err      error
}

// take adds a campaign: the unfinished one of that label in the store, or a new one. One that is done is not run again.
func (n *night) take(ctx context.Context, label string, c *configs.Campaign, weight float64, priority int) (*nightEntry, error) {
	e := &nightEntry{label: label, weight: weight, priority: priority}
	n.entries = append(n.entries, e)
	rows, err := n.store.Campaigns(ctx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		row := &rows[i]
		if row.Campaign.Name != label {
			continue
		}
		if row.State == scheduler.StateDone {
			e.skipped = "done before: campaign " + row.Campaign.ID
			return e, nil
		}
		e.session = &session{env: n.env, store: n.store, campaign: &row.Campaign, weight: weight, priority: priority}
		e.resumed = true
		return e, nil
	}
	campaign, structures, err := newCampaign(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	campaign.Name = label
	e.session = &session{env: n.env, store: n.store, campaign: campaign, structures: structures, weight: weight, priority: priority}
	return e, nil
}

// campaigns returns what is to be run.
func (n *night) campaigns() []*scheduler.Campaign {
	var out []*scheduler.Campaign
	for _, e := range n.entries {
		if e.session != nil {
			out = append(out, e.session.campaign)
		}
	}
	return out
}

// run runs the night. It returns loop.ErrStopped when ctx ended before it was over.
func (n *night) run(ctx context.Context, c *carriage) error {
	if !n.ends.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, n.ends, errDeadline)
		defer cancel()
	}
	if n.parallel {
		shares := n.shares(n.entries, time.Now())
		var g errgroup.Group
		for i, e := range n.entries {
			g.Go(func() error {
				n.one(ctx, c, e, shares[i])
				return nil
			})
		}
		_ = g.Wait() // entries keep their errors
	} else {
		for i, e := range n.entries {
			n.one(ctx, c, e, n.shares(n.entries[i:], time.Now())[0])
		}
	}
	return n.verdict(ctx)
}

var errDeadline = errors.New("the night's deadline has come")

// share is what one campaign may use.
type share struct {
	wall        time.Duration // 0: no limit
	evaluations int64         // 0: no limit
}

// shares divides what is left of the night among the entries that are still to run, by weight; side by side, all have the
// whole time.
func (n *night) shares(entries []*nightEntry, now time.Time) []share {
	total := 0.0
	for _, e := range entries {
		if e.session != nil {
			total += e.weight
		}
	}
	out := make([]share, len(entries))
	for i, e := range entries {
		part := 1.0
		if total > 0 {
			part = e.weight / total
		}
		if !n.ends.IsZero() {
			out[i].wall = n.ends.Sub(now)
			if !n.parallel {
				out[i].wall = time.Duration(part * float64(n.ends.Sub(now)))
			}
		}
		if n.left >= 0 {
			out[i].evaluations = max(1, int64(part*float64(n.left)))
		}
		if e.wall > 0 && (out[i].wall == 0 || e.wall < out[i].wall) {
			out[i].wall = e.wall
		}
		if e.most > 0 && (out[i].evaluations == 0 || e.most < out[i].evaluations) {
			out[i].evaluations = e.most
		}
	}
	return out
}

// one runs one campaign to its end and keeps what came of it.
func (n *night) one(ctx context.Context, c *carriage, e *nightEntry, s share) {
	switch {
	case e.session == nil:
		return
	case ctx.Err() != nil:
		e.skipped = "not started: " + context.Cause(ctx).Error()
		return
	case !e.resumed:
		b := &e.session.campaign.Settings.Budget
		if s.wall > 0 && (b.WallSeconds == 0 || s.wall.Seconds() < b.WallSeconds) {
			b.WallSeconds = s.wall.Seconds()
		}
		if s.evaluations > 0 && (b.Evaluations == 0 || s.evaluations < b.Evaluations) {
			b.Evaluations = s.evaluations
		}
	}
	view := newView(&labelled{w: n.env.stderr, label: e.label}, e.session.campaign)
	e.result, e.err = e.session.drive(ctx, c, view, n.log)
	view.close()
	if e.result != nil && n.left >= 0 && !n.parallel {
		n.left = max(0, n.left-e.result.Evaluations)
	}
}

// verdict is the night's own: stopped, broken, or over.
func (n *night) verdict(ctx context.Context) error {
	stopped, broken := false, error(nil)
	for _, e := range n.entries {
		switch {
		case errors.Is(e.err, loop.ErrStopped):
			stopped = true
		case e.err != nil:
			broken = errors.Join(broken, fmt.Errorf("%s: %w", e.label, e.err))
		}
	}
	switch {
	case broken != nil:
		return broken
	case stopped || ctx.Err() != nil:
		return fmt.Errorf("%w; the same command goes on with it", loop.ErrStopped)
	default:
		return nil
	}
}

// print shows what came of every campaign.
func (n *night) print(w io.Writer, asJSON bool) error {
	if asJSON {
		for _, e := range n.entries {
			line := struct {
				Campaign string            `json:"campaign"`
				Skipped  string            `json:"skipped,omitempty"`
				Error    string            `json:"error,omitempty"`
				Result   *scheduler.Result `json:"result,omitempty"`
			}{Campaign: e.label, Skipped: e.skipped, Result: e.result}
			if e.err != nil {
				line.Error = e.err.Error()
			}
			if err := writeJSON(w, line); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CAMPAIGN\tID\tEVALUATIONS\tWINNER\tSPEEDUP\tEND")
	for _, e := range n.entries {
		id, evaluations, winner, speedup, end := "-", "-", "-", "-", e.skipped
		if e.session != nil {
			id = e.session.campaign.ID
		}
		if r := e.result; r != nil {
			evaluations, end = fmt.Sprint(r.Evaluations), "done"
			if r.Winner != nil {
				winner, speedup = r.Winner.Structure, fmt.Sprintf("%.2f", r.Winner.ReplayedSpeedup)
			}
		}
		if e.err != nil {
			end = e.err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.label, id, evaluations, winner, speedup, end)
	}
	return t.Flush()
}

// labelled writes lines with a campaign's name before them; it is no terminal, so that views write plain lines.
type labelled struct {
	w     io.Writer
	label string
	mu    sync.Mutex
}

// Write passes whole writes on, which views make line by line.
func (l *labelled) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintf(l.w, "[%s] %s", l.label, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// nightNode opens the way to workers for a night and runs it.
func (n *night) nightNode(ctx context.Context, redis queue.Config, serve serveFlags, limits string, worker *queue.WorkerConfig) error {
	bounds, err := limitsFor(n.campaigns(), limits)
	if err != nil {
		return err
	}
	return withNode(ctx, n.env, nodeConfig{Redis: redis, Serve: serve, Limits: bounds, Log: n.log}, func(ctx context.Context, node *queue.Node) error {
		c := newCarriage(node, n.store, n.log)
		return c.carry(ctx, worker, func(ctx context.Context) error { return n.run(ctx, c) })
	})
}

// nightError gives a night's end its exit code.
func nightError(err error) error {
	if errors.Is(err, loop.ErrStopped) {
		return &exitError{exitStopped, err}
	}
	return err
}
