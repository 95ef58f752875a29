package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ridgepoint/workers/fleet"
	"ridgepoint/workers/queue"
)

// drainCmd takes a host out of the fleet without losing work.
type drainCmd struct {
	Host string        `arg:"" help:"The host, as fleet shows it."`
	Undo bool          `help:"Let the host take work again."`
	Wait time.Duration `help:"Wait so long for its workers to finish what they have; 0 does not wait." default:"10m"`
	redisFlags
}

// Run asks the host's workers to finish and waits until they have.
func (c drainCmd) Run(ctx context.Context, env environment) error {
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	if cfg.IsEmbedded() {
		return &exitError{exitUsage, errors.New("an embedded Redis has no fleet: name one with --redis or RIDGEPOINT_REDIS")}
	}
	client, err := queue.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(c.drain(ctx, env, fleet.NewRegistry(client)), client.Close())
}

func (c drainCmd) drain(ctx context.Context, env environment, r *fleet.Registry) error {
	members, _, err := r.List(ctx, 0)
	if err != nil {
		return err
	}
	if !c.Undo && !slices.ContainsFunc(members, func(m fleet.Member) bool { return m.Host == c.Host }) {
		return &exitError{exitUsage, fmt.Errorf("no process of host %q was seen today; hosts: %s", c.Host, hostsOf(members))}
	}
	if err := r.Drain(ctx, c.Host, !c.Undo); err != nil {
		return err
	}
	if c.Undo {
		_, err := fmt.Fprintf(env.stdout, "%s takes work again\n", c.Host)
		return err
	}
	if c.Wait == 0 {
		_, err := fmt.Fprintf(env.stdout, "%s is draining\n", c.Host)
		return err
	}
	return c.await(ctx, env, r)
}

// await reports progress until nothing is in hand on the host.
func (c drainCmd) await(ctx context.Context, env environment, r *fleet.Registry) error {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := ""
	for {
		members, _, err := r.List(ctx, fleet.Live)
		if err != nil && ctx.Err() == nil {
			return err
		}
		tasks, settled := 0, true
		for _, m := range members {
			if m.Host == c.Host && slices.ContainsFunc(m.Kinds, func(k string) bool { return k != "scheduler" }) {
				tasks += len(m.Tasks)
				settled = settled && m.State == fleet.StateDrained
			}
		}
		if err == nil && settled {
			_, err := fmt.Fprintf(env.stdout, "%s is drained; give it work again with: ridgepoint drain %s --undo\n", c.Host, c.Host)
			return err
		}
		if now := fmt.Sprintf("%s: %d in hand", c.Host, tasks); now != last {
			fmt.Fprintln(env.stderr, now)
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s still has %d in hand after %v; it goes on draining", c.Host, tasks, c.Wait)
		case <-tick.C:
		}
	}
}

func hostsOf(members []fleet.Member) string {
	var names []string
	for _, m := range members {
		if !slices.Contains(names, m.Host) {
			names = append(names, m.Host)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
