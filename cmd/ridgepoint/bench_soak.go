package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
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
	lines   []soakLine
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
	if err == nil {
		err = s.verdict()
	}
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
		err = s.drive(ctx, n, driven{id: fmt.Sprintf("night%d", i), trials: 2000}, &g)
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
	fmt.Fprintf(s.env.stdout, "hour  outcomes  heap MiB  resident MiB  goroutines  descriptors  redis MiB\n")
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

// soakLine is how the process stands at the end of an hour.
type soakLine struct {
	outcomes                                 int64
	heap, resident, goroutines, files, redis float64 // memory in MiB
}

// line measures and prints an hour's line.
func (s *soaker) line(ctx context.Context, hour int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l := soakLine{outcomes: s.outcomes.Load(), heap: float64(m.HeapAlloc) / (1 << 20), resident: residentMiB(), goroutines: float64(runtime.NumGoroutine()),
		redis: float64(redisMemory(ctx, s.client)) / (1 << 20)}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		l.files = float64(len(entries))
	}
	s.lines = append(s.lines, l)
	fmt.Fprintf(s.env.stdout, "%4d  %8d  %8.1f  %12.1f  %10.0f  %11.0f  %9.1f\n", hour, l.outcomes, l.heap, l.resident, l.goroutines, l.files, l.redis)
}

// residentMiB is the memory that the process has, as the system counts it; 0 where it does not say.
func residentMiB() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages float64
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// A figure is flat when the median of a soak's last third is not over that of its second one by more than a tenth and slack.
const (
	soakGrowth = 0.10
	soakLeast  = 6 // hours from which it is judged
)

// verdict compares the soak's last third with the one before.
func (s *soaker) verdict() error {
	if len(s.lines) < soakLeast {
		return nil
	}
	third := len(s.lines) / 3
	before, last := s.lines[third:2*third], s.lines[len(s.lines)-third:]
	var grown error
	for _, f := range []struct {
		name  string
		slack float64
		of    func(soakLine) float64
	}{
		{"heap MiB", 2, func(l soakLine) float64 { return l.heap }},
		{"resident MiB", 8, func(l soakLine) float64 { return l.resident }},
		{"goroutines", 10, func(l soakLine) float64 { return l.goroutines }},
		{"descriptors", 10, func(l soakLine) float64 { return l.files }},
		{"redis MiB", 0.5, func(l soakLine) float64 { return l.redis }},
	} {
		a, b := medianOf(before, f.of), medianOf(last, f.of)
		fmt.Fprintf(s.env.stdout, "%s: median %.1f in the second third, %.1f in the last\n", f.name, a, b)
		if b > a*(1+soakGrowth)+f.slack {
			grown = errors.Join(grown, fmt.Errorf("%s grew from %.1f to %.1f: something is kept for good", f.name, a, b))
		}
	}
	if grown != nil {
		return &exitError{exitVerdict, grown}
	}
	return nil
}

func medianOf(lines []soakLine, of func(soakLine) float64) float64 {
	values := make([]float64, len(lines))
	for i, l := range lines {
		values[i] = of(l)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
