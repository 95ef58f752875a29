package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/judge"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/queue"
	"ridgepoint/workers/spool"
)

// carriage takes the campaigns of one store to workers and their outcomes back, through one node: the embedded one of a
// single process, or a fleet's.
type carriage struct {
	node  *queue.Node
	store *memory.Store
	log   zerolog.Logger

	mu    sync.Mutex
	loops map[string]scheduler.Deliver // by campaign, while its loop runs
}

func newCarriage(n *queue.Node, store *memory.Store, log zerolog.Logger) *carriage {
	return &carriage{node: n, store: store, log: log, loops: map[string]scheduler.Deliver{}}
}

// join routes a campaign's outcomes to its loop, until leave is called.
func (c *carriage) join(id string, d scheduler.Deliver) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops[id] = d
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.loops, id)
	}
}

// deliver hands an outcome to its campaign's loop; without one it is stored, for when the campaign is resumed.
func (c *carriage) deliver(ctx context.Context, o *scheduler.Outcome) error {
	c.mu.Lock()
	d := c.loops[o.Key.Campaign]
	c.mu.Unlock()
	if d != nil {
		return d(ctx, o)
	}
	err := c.store.SaveOutcome(ctx, o)
	if errors.Is(err, memory.ErrNotFound) {
		c.log.Warn().Str("campaign", o.Key.Campaign).Int64("trial", o.Key.Trial).Msg("outcome of a campaign that the store does not hold, dropped")
		return nil
	}
	return err
}

// dispatcher returns what carries a campaign's jobs.
func (c *carriage) dispatcher(campaign *scheduler.Campaign, weight float64, priority int) *queue.Dispatcher {
	o := campaign.Baseline.Options
	return c.node.Dispatcher(queue.Campaign{ID: campaign.ID, Target: campaign.Target, Arch: o.Arch, Features: o.Features, Weight: weight, Priority: priority})
}

// carry runs work with the scheduler's side of the queue beside it, and with a worker of this process when there is one. The
// end of work ends them; when one of them fails, work's context ends.
func (c *carriage) carry(ctx context.Context, worker *queue.WorkerConfig, work func(context.Context) error) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // outcomes are still taken while work is laid down
	defer end()
	g, gctx := errgroup.WithContext(life)
	g.Go(func() error { return c.node.Scheduler(gctx, c.store.SchedulerID(), c.deliver) })
	if worker != nil {
		g.Go(func() error { return c.node.Worker(gctx, *worker) })
	}
	workCtx, stop := context.WithCancel(ctx)
	defer stop()
	unlink := context.AfterFunc(gctx, stop)
	err := work(workCtx)
	unlink()
	end()
	return errors.Join(err, g.Wait())
}

// byTarget is a harness of several, one for each target.
type byTarget map[harness.Target]harness.Harness

// Compile asks the target's harness.
func (b byTarget) Compile(ctx context.Context, r *harness.Request) (*harness.Build, *harness.Report, error) {
	h, ok := b[r.Candidate.Target]
	if !ok {
		return nil, nil, fmt.Errorf("nothing here compiles for %s", r.Candidate.Target)
	}
	return h.Compile(ctx, r)
}

// Benchmark asks the target's harness.
func (b byTarget) Benchmark(ctx context.Context, r *harness.Request, build *harness.Build) (*harness.Report, error) {
	h, ok := b[r.Candidate.Target]
	if !ok {
		return nil, fmt.Errorf("nothing here measures %s", r.Candidate.Target)
	}
	return h.Benchmark(ctx, r, build)
}

// ownWorker opens a worker in this process for some campaigns: one device for each of their archs, compilers for their targets.
// A lone embedded one needs no artifacts to travel, and fetches its next task early. What it starts does not see the models' keys.
func ownWorker(ctx context.Context, env environment, campaigns []*scheduler.Campaign, dir string, embedded, setup bool, log zerolog.Logger) (*queue.WorkerConfig, func() error, error) {
	env.hideKeys(campaigns)
	own := byTarget{}
	var closers []func() error
	closeAll := func() error {
		var err error
		for _, f := range closers {
			err = errors.Join(err, f())
		}
		return err
	}
	w := &queue.WorkerConfig{CompileSlots: compileSlots(), Prefetch: embedded}
	for _, c := range campaigns {
		h, ok := own[c.Target]
		if !ok {
			var closeFunc func() error
			var err error
			if h, closeFunc, err = env.openHarness(ctx, harnessConfig{Task: c.Task, Target: c.Target, Setup: setup, Log: log}); err != nil {
				return nil, nil, errors.Join(err, closeAll())
			}
			closers = append(closers, closeFunc)
			own[c.Target] = h
			w.Targets = append(w.Targets, c.Target)
		}
		d := deviceFor(c, h, embedded)
		if !slices.ContainsFunc(w.Devices, func(have gpu.Device) bool { return have.ID == d.ID }) {
			w.Devices = append(w.Devices, d)
		}
	}
	w.Compile = &compile.Handler{Harness: own}
	if j := anyJudge(own); j != nil && !embedded {
		w.Compile.Artifacts = j
	}
	s, err := spool.Open(filepath.Join(dir, "worker"))
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	closers = append(closers, s.Close)
	w.Spool = s
	return w, closeAll, nil
}

// deviceFor is this machine's device for a campaign.
func deviceFor(c *scheduler.Campaign, h harness.Harness, embedded bool) gpu.Device {
	o := c.Baseline.Options
	d := gpu.Device{ID: c.Target.String() + "-" + o.Arch, Name: o.Arch, Arch: o.Arch, Features: o.Features, Target: c.Target, Harness: h}
	if j, ok := h.(*judge.Judge); ok && !embedded {
		d.Builds = builds{j}
	}
	return d
}

// anyJudge returns one of the judges: they share this user's cache of builds.
func anyJudge(b byTarget) *judge.Judge {
	for _, h := range b {
		if j, ok := h.(*judge.Judge); ok {
			return j
		}
	}
	return nil
}
