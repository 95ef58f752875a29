package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/queue"
	"ridgepoint/workers/spool"
)

// benchQueueCmd takes scripted trials through the whole way: loop, store, queue, workers, and back.
type benchQueueCmd struct {
	Trials  int           `help:"Trials of the campaign." default:"10000"`
	Workers int           `help:"Simulated devices, eight to a worker process's share." default:"32"`
	Latency time.Duration `help:"What a scripted measurement takes." default:"10ms"`
	Redis   string        `help:"own starts a redis-server of its own; embedded uses the one in the process; else an address on this machine." default:"own" placeholder:"ADDR"`
	Soak    int           `help:"Instead: so many simulated hours with a fault every minute; prints memory, goroutines and descriptors hour by hour." placeholder:"HOURS"`
	Shares  string        `help:"Instead: schedulers of these weights, with priorities where they differ (1,3,2@1), share the devices; prints what each got done. --trials outcomes are counted." placeholder:"WEIGHT[@PRIORITY],..."`
	Minute  time.Duration `help:"What a simulated minute takes in a soak." default:"100ms"`
	Limits  string        `help:"Permits and rates, such as gpu=2,compile=4@10/20." placeholder:"CLASS=N,..."`
}

// Run prints the rate and the messages, or the soak's table.
func (c benchQueueCmd) Run(ctx context.Context, env environment) error {
	bounds, err := limitsFor(nil, c.Limits)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ridgepoint-bench-")
	if err != nil {
		return err
	}
	address, stop, err := c.server(ctx, dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	b := &queueBench{cmd: c, env: env, dir: dir, address: address, bounds: bounds, log: zerolog.Nop()}
	switch {
	case c.Soak > 0:
		err = b.soak(ctx)
	case c.Shares != "":
		err = b.shares(ctx)
	default:
		err = b.rate(ctx)
	}
	return errors.Join(err, stop(), os.RemoveAll(dir))
}

// server starts a redis-server on a unix socket, with the append-only file that deploy/redis has, when it is asked for.
func (c benchQueueCmd) server(ctx context.Context, dir string) (address string, stop func() error, err error) {
	if c.Redis != "own" {
		return c.Redis, func() error { return nil }, nil
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no")
	if err := cmd.Start(); err != nil {
		return "", nil, &exitError{exitInfra, fmt.Errorf("redis-server: %w; install it, or say --redis embedded", err)}
	}
	stop = func() error {
		_ = cmd.Process.Kill() // its data is of no use
		_ = cmd.Wait()         // killed on purpose
		return nil
	}
	address = "unix://" + socket
	for range 100 {
		client, err := queue.Connect(ctx, queue.Config{Redis: address})
		if err == nil {
			return address, stop, client.Close()
		}
		if err := pauseFor(ctx, 50*time.Millisecond); err != nil {
			break
		}
	}
	return "", nil, errors.Join(&exitError{exitInfra, errors.New("redis-server does not answer")}, stop())
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// queueBench is one run of the benchmark.
type queueBench struct {
	cmd     benchQueueCmd
	env     environment
	dir     string
	address string
	bounds  fleetLimits
	log     zerolog.Logger

	outcomes atomic.Int64

	mu    sync.Mutex
	waits []float64 // seconds from plan to outcome; a soak keeps none
}

// campaign is scripted: as many configurations as trials, searched at random.
func (b *queueBench) campaign(id string, trials int) (*scheduler.Campaign, []*harness.Structure) {
	side := min(int64(math.Ceil(math.Sqrt(float64(trials))))+1, 1000) // a million configurations are enough for any bench
	task := harnesstest.Task(8)
	structures := []*harness.Structure{harnesstest.Structure("scripted", harnesstest.Ints("A", 0, side), harnesstest.Ints("B", 0, side))}
	return &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: id, Name: "bench queue", Task: task, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(),
		Seed: 1, Reward: task.Reward, Created: time.Now().UTC(),
		Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: int64(trials)}, Optimizer: "random", Probes: 1, InFlight: 3, RemeasureShare: 0, OverdueSeconds: 120, ReplayReserve: 0.01,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 8, Share: 0.01}}}, structures
}

func scriptedTime(c *harness.Candidate, size harness.Size) float64 {
	n, _ := size.Get("n")
	a, _ := c.Configuration["A"].AsFloat()
	b, _ := c.Configuration["B"].AsFloat()
	return float64(n) / 10 * (1 + 0.01*math.Abs(a-7) + 0.02*math.Abs(b-3))
}

// node opens a node on the bench's Redis.
func (b *queueBench) node(ctx context.Context, host string, bounds fleetLimits) (*queue.Node, error) {
	return queue.Open(ctx, queue.Config{Redis: b.address}, queue.Options{Host: host, Log: b.log, Limits: bounds.permits, Rates: bounds.rates})
}

// workerConfig is one simulated host: up to eight devices, compile slots, a spool.
func (b *queueBench) workerConfig(host string, devices int, h harness.Harness) (queue.WorkerConfig, error) {
	s, err := spool.Open(filepath.Join(b.dir, host))
	if err != nil {
		return queue.WorkerConfig{}, err
	}
	w := queue.WorkerConfig{Compile: &compile.Handler{Harness: h}, CompileSlots: 4, Targets: []harness.Target{harness.TargetCPU}, Spool: s}
	for d := range devices {
		w.Devices = append(w.Devices, gpu.Device{ID: fmt.Sprintf("d%d", d), Name: "scripted", Arch: "x86-64", Target: harness.TargetCPU, Harness: h})
	}
	return w, nil
}

// rate runs one campaign and prints how fast it went.
func (b *queueBench) rate(ctx context.Context) error {
	h := &harnesstest.Scripted{NoiseSD: 0.004, TimeFunc: scriptedTime, Latency: b.cmd.Latency}
	n, err := b.node(ctx, "scheduler", b.bounds)
	if err != nil {
		return err
	}
	nodes := []*queue.Node{n}
	life, end := context.WithCancel(ctx)
	defer end()
	g, gctx := errgroup.WithContext(life)
	g.Go(func() error { return n.Run(gctx) })
	var spools []*spool.Spool
	for i := 0; i*8 < b.cmd.Workers; i++ {
		host := fmt.Sprintf("host%d", i)
		w, err := b.workerConfig(host, min(8, b.cmd.Workers-i*8), h)
		if err != nil {
			return err
		}
		spools = append(spools, w.Spool)
		wn := n
		if b.address != queue.Embedded { // an embedded Redis is this node's alone, and a node has one worker
			if wn, err = b.node(ctx, host, fleetLimits{}); err != nil {
				return err
			}
			nodes = append(nodes, wn)
			g.Go(func() error { return wn.Run(gctx) })
		} else if i > 0 {
			break
		}
		g.Go(func() error { return wn.Worker(gctx, w) })
	}
	started := time.Now()
	err = b.drive(gctx, n, driven{id: "bench", trials: b.cmd.Trials}, g)
	took := time.Since(started)
	end()
	err = errors.Join(err, g.Wait())
	for _, s := range spools {
		err = errors.Join(err, s.Close())
	}
	var asynqs, own int64
	for _, n := range nodes {
		a, o := n.Messages()
		asynqs, own = asynqs+a, own+o
		err = errors.Join(err, n.Close())
	}
	if err != nil {
		return err
	}
	return b.print(took, asynqs, own)
}

// driven is a campaign of the bench.
type driven struct {
	id          string
	trials      int
	weight      float64 // 0: 1
	priority    int
	outcomeFunc func() // called at every outcome, by the loop; nil: nothing
}

// drive runs a campaign's loop over a node to its end.
func (b *queueBench) drive(ctx context.Context, n *queue.Node, c driven, g *errgroup.Group) (err error) {
	store, err := memory.Open(ctx, filepath.Join(b.dir, "store-"+c.id))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	campaign, structures := b.campaign(c.id, c.trials)
	planned := map[int64]time.Time{}
	d := n.Dispatcher(queue.Campaign{ID: campaign.ID, Target: campaign.Target, Arch: "x86-64", Weight: c.weight, Priority: c.priority})
	defer d.Close()
	l, err := loop.New(loop.Config{Campaign: campaign, Structures: structures, Store: store, Dispatcher: d, Log: b.log,
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New("random", s, strategy.Options{Seed: seed})
		},
		EventFunc: func(e *scheduler.Event, _ any) { // on the loop's goroutine
			switch e.Kind {
			case scheduler.EventPlanned:
				planned[e.Trial] = time.Now()
			case scheduler.EventOutcome:
				b.outcomes.Add(1)
				if c.outcomeFunc != nil {
					c.outcomeFunc()
				}
				if b.cmd.Soak == 0 {
					b.mu.Lock()
					b.waits = append(b.waits, time.Since(planned[e.Trial]).Seconds())
					b.mu.Unlock()
				}
				delete(planned, e.Trial)
			default: // not timed
			}
		}})
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	served := make(chan struct{})
	g.Go(func() error {
		defer close(served)
		return n.Scheduler(life, store.SchedulerID(), l.Deliver)
	})
	_, err = l.Run(ctx)
	end()
	<-served
	return err
}

func (b *queueBench) print(took time.Duration, asynqs, own int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.waits)
	outcomes := len(b.waits)
	if outcomes == 0 {
		return errors.New("no outcome came back")
	}
	hops := float64(3 * outcomes)
	at := func(q float64) float64 { return 1000 * b.waits[int(q*float64(outcomes-1))] }
	_, err := fmt.Fprintf(b.env.stdout, "%s: %d outcomes in %.1f s: %.0f a second\nplan to outcome: median %.0f ms, 90 %% %.0f ms, 99 %% %.0f ms\n"+
		"messages to Redis a hop: asynq's %.2f, our own %.2f (three hops an outcome)\n", b.address, outcomes, took.Seconds(), float64(outcomes)/took.Seconds(),
		at(0.5), at(0.9), at(0.99), float64(asynqs)/hops, float64(own)/hops)
	return err
}

// redisMemory reads used_memory in bytes.
func redisMemory(ctx context.Context, client redis.UniversalClient) int64 {
	m, err := client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0
	}
	var n int64
	if _, err := fmt.Sscan(m["Memory"]["used_memory"], &n); err != nil {
		return 0
	}
	return n
}
