package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/workers/queue"
)

// soakFaults are what befalls the fleet, one a simulated minute, in turn.
var soakFaults = []string{"crash", "infra", "connections cut", "crash", "poisoned payload", "worker stopped", "infra", "redis loses its data"}

// soakHost is a simulated host that can be stopped and started again.
type soakHost struct {
	name string
	stop func() error
}

// soaker is a running soak.
type soaker struct {
	*queueBench
	client  redis.UniversalClient
	harness *harnesstest.Scripted
	broken  atomic.Int64 // infrastructure faults still to come
	crash   atomic.Int64 // crashes still to come
	hosts   []*soakHost
	faults  map[string]int
}

// soak runs campaigns for so many simulated hours with a fault every minute.
func (b *queueBench) soak(ctx context.Context) error {
	if b.address == queue.Embedded {
		return &exitError{exitUsage, errors.New("a soak cuts connections and stops workers: it needs a real redis-server (--redis own)")}
	}
	client, err := queue.Connect(ctx, queue.Config{Redis: b.address})
	if err != nil {
		return err
	}
	s := &soaker{queueBench: b, client: client, faults: map[string]int{}}
	s.harness = &harnesstest.Scripted{NoiseSD: 0.004, TimeFunc: scriptedTime, Latency: b.cmd.Latency,
		ErrorFunc: func(int64) error {
			if s.broken.Add(-1) >= 0 {
				return errors.New("scripted: the device does not answer")
			}
			s.broken.Store(0)
			return nil
		},
		FaultFunc: func(*harness.Candidate, *harness.Plan) harness.Fault {
			if s.crash.Add(-1) >= 0 {
				return harness.FaultCrash
			}
			s.crash.Store(0)
			return harness.FaultNone
		}}
	for i := range 2 {
		h := &soakHost{name: fmt.Sprintf("host%d", i)}
		if h.stop, err = s.start(ctx, h.name); err != nil {
			return err
		}
		s.hosts = append(s.hosts, h)
	}
	life, end := context.WithCancel(ctx)
	g, gctx := errgroup.WithContext(life)
	g.Go(func() error { return s.campaigns(gctx) })
	err = s.hours(gctx)
	end()
	err = errors.Join(err, g.Wait())
	for _, h := range s.hosts {
		err = errors.Join(err, h.stop())
	}
	fmt.Fprintf(b.env.stdout, "faults: %v\n", s.faults)
	return errors.Join(err, client.Close())
}

// start runs a worker host until stop is called.
func (s *soaker) start(ctx context.Context, host string) (stop func() error, err error) {
	w, err := s.workerConfig(host, 2, s.harness)
	if err != nil {
		return nil, err
	}
	n, err := s.node(ctx, host, fleetLimits{})
	if err != nil {
		return nil, errors.Join(err, w.Spool.Close())
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return n.Run(life) })
	g.Go(func() error { return n.Worker(life, w) })
	return func() error {
		end()
		return errors.Join(g.Wait(), w.Spool.Close(), n.Close())
	}, nil
}

// campaigns runs one short campaign after another until ctx ends: each is a night of its own.
func (s *soaker) campaigns(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		n, err := s.node(ctx, "scheduler", s.bounds)
		if err != nil {
			if ctx.Err() != nil || pauseFor(ctx, s.cmd.Minute) != nil {
				return nil
			}
			continue // cut off while it connected: a supervisor would start it again
		}
		life, end := context.WithCancel(ctx)
		var g errgroup.Group
		g.Go(func() error { return n.Run(life) })
		err = s.drive(ctx, n, fmt.Sprintf("night%d", i), 2000, &g)
		end()
		err = errors.Join(err, g.Wait(), n.Close(), os.RemoveAll(fmt.Sprintf("%s/store-night%d", s.dir, i)))
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.env.stderr, "night %d: %v\n", i, err)
		}
	}
	return nil
}

// hours lets the minutes pass, each with its fault, and prints a line an hour.
func (s *soaker) hours(ctx context.Context) error {
	fmt.Fprintf(s.env.stdout, "hour  outcomes  heap MiB  goroutines  descriptors  redis MiB\n")
	rng := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(s.cmd.Minute)
	defer tick.Stop()
	for minute := 1; minute <= s.cmd.Soak*60; minute++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := s.fault(ctx, soakFaults[minute%len(soakFaults)], rng); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.env.stderr, "minute %d: %v\n", minute, err)
		}
		if minute%60 == 0 {
			s.line(ctx, minute/60)
		}
	}
	return nil
}

func (s *soaker) fault(ctx context.Context, kind string, rng *rand.Rand) error {
	s.faults[kind]++
	switch kind {
	case "crash":
		s.crash.Store(1)
	case "infra":
		s.broken.Store(1)
	case "connections cut":
		return s.client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
	case "poisoned payload":
		return queue.Poison(ctx, s.client, "compile:cpu", fmt.Sprintf("poison-%d", rng.Int64()))
	case "worker stopped":
		h := s.hosts[rng.IntN(len(s.hosts))]
		err := h.stop()
		next, serr := s.start(ctx, h.name)
		if serr != nil {
			return errors.Join(err, serr)
		}
		h.stop = next
		return err
	case "redis loses its data":
		return s.client.FlushAll(ctx).Err()
	default:
		return fmt.Errorf("fault %q is not known", kind)
	}
	return nil
}

func (s *soaker) line(ctx context.Context, hour int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	descriptors := -1
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		descriptors = len(entries)
	}
	s.queueBench.mu.Lock()
	outcomes := len(s.waits)
	s.queueBench.mu.Unlock()
	fmt.Fprintf(s.env.stdout, "%4d  %8d  %8.1f  %10d  %11d  %9.1f\n", hour, outcomes, float64(m.HeapAlloc)/(1<<20), runtime.NumGoroutine(), descriptors,
		float64(redisMemory(ctx, s.client))/(1<<20))
}
