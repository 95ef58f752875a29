package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ridgepoint/harness/harnesstest"
	"ridgepoint/scheduler/loop"
	"ridgepoint/workers/queue"
)

// rivalFlag is one scheduler of a bench of shares: weight, and priority where it is not 0.
type rivalFlag struct {
	weight   float64
	priority int
}

// parseRivals reads "1,3" or "1,3,2@1": weights, each with its priority.
func parseRivals(text string) ([]rivalFlag, error) {
	var out []rivalFlag
	for part := range strings.SplitSeq(text, ",") {
		weight, priority, has := strings.Cut(part, "@")
		var r rivalFlag
		var errs [2]error
		r.weight, errs[0] = strconv.ParseFloat(weight, 64)
		if has {
			r.priority, errs[1] = strconv.Atoi(priority)
		}
		if errors.Join(errs[:]...) != nil || !(r.weight > 0 && r.weight < 1e6) {
			return nil, &exitError{exitUsage, fmt.Errorf("--shares %q: %q: want WEIGHT or WEIGHT@PRIORITY, such as 1,3,2@1", text, part)}
		}
		out = append(out, r)
	}
	if len(out) < 2 {
		return nil, &exitError{exitUsage, fmt.Errorf("--shares %q: want the weights of at least two schedulers, such as 1,3", text)}
	}
	return out, nil
}

// settling is how long schedulers have to see each other: a beat, and a look at the book.
const settling = 3 * time.Second

// shares lets several schedulers, each with a store and a node of its own, share one fleet, and prints what each got done of the
// outcomes after they had settled, against its weight.
func (b *queueBench) shares(ctx context.Context) error {
	rivals, err := parseRivals(b.cmd.Shares)
	if err != nil {
		return err
	}
	if b.address == queue.Embedded {
		return &exitError{exitUsage, errors.New("several schedulers need a Redis that they share (--redis own)")}
	}
	life, end := context.WithCancel(ctx)
	defer end()
	g, gctx := errgroup.WithContext(life)
	h := &harnesstest.Scripted{NoiseSD: 0.004, TimeFunc: scriptedTime, Latency: b.cmd.Latency}
	closers, err := b.host(gctx, g, h)
	done := make([]atomic.Int64, len(rivals))
	for i, r := range rivals {
		if err != nil {
			break
		}
		var n *queue.Node
		if n, err = b.node(gctx, fmt.Sprintf("scheduler%d", i), b.bounds); err == nil {
			closers = append(closers, n.Close)
			g.Go(func() error { return n.Run(gctx) })
			id := fmt.Sprintf("rival%d", i)
			g.Go(func() error {
				err := b.drive(gctx, n, driven{id: id, trials: 1 << 40, weight: r.weight, priority: r.priority, outcomeFunc: func() { done[i].Add(1) }}, g)
				if errors.Is(err, loop.ErrStopped) {
					return nil
				}
				return err
			})
		}
	}
	var before []int64
	if err == nil {
		before, err = b.watchShares(gctx, done)
	}
	end()
	err = errors.Join(err, g.Wait())
	for _, f := range closers {
		err = errors.Join(err, f())
	}
	if err != nil {
		return err
	}
	return b.printShares(rivals, before, done)
}

// watchShares waits until so many outcomes have come after the schedulers had settled, and returns what each had before.
func (b *queueBench) watchShares(ctx context.Context, done []atomic.Int64) (before []int64, err error) {
	if err := pauseFor(ctx, settling); err != nil {
		return nil, err
	}
	before = make([]int64, len(done))
	for i := range done {
		before[i] = done[i].Load()
	}
	for {
		total := int64(0)
		for i := range done {
			total += done[i].Load() - before[i]
		}
		if total >= int64(b.cmd.Trials) {
			return before, nil
		}
		if err := pauseFor(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// host starts one worker with all simulated devices.
func (b *queueBench) host(ctx context.Context, g *errgroup.Group, h *harnesstest.Scripted) (closers []func() error, err error) {
	w, err := b.workerConfig("host", b.cmd.Workers, h)
	if err != nil {
		return nil, err
	}
	closers = append(closers, w.Spool.Close)
	n, err := b.node(ctx, "host", fleetLimits{})
	if err != nil {
		return closers, err
	}
	g.Go(func() error { return n.Run(ctx) })
	g.Go(func() error { return n.Worker(ctx, w) })
	return append(closers, n.Close), nil
}

// printShares prints a line a scheduler. Due is its weight's part of the weights of its own priority; what a priority gets as a
// whole follows from the order of the queues: higher first.
func (b *queueBench) printShares(rivals []rivalFlag, before []int64, done []atomic.Int64) error {
	out := b.env.stdout
	got, total := make([]float64, len(rivals)), 0.0
	weights, part := map[int]float64{}, map[int]float64{}
	for i, r := range rivals {
		got[i] = float64(done[i].Load() - before[i])
		total += got[i]
		weights[r.priority] += r.weight
		part[r.priority] += got[i]
	}
	fmt.Fprintf(out, "%s: %d devices, %.0f outcomes\nscheduler  weight  priority  outcomes  share  share of its priority  due\n", b.address, b.cmd.Workers, total)
	for i, r := range rivals {
		within := 0.0
		if part[r.priority] > 0 {
			within = got[i] / part[r.priority]
		}
		if _, err := fmt.Fprintf(out, "%9d  %6g  %8d  %8.0f  %5.3f  %21.3f  %.3f\n", i, r.weight, r.priority, got[i], got[i]/total, within, r.weight/weights[r.priority]); err != nil {
			return err
		}
	}
	return nil
}
