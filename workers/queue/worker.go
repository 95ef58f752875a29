package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/workers"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/fleet"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/spool"
)

// The classes of work that limits may bound.
const (
	ClassCompile = "compile"
	ClassGPU     = "gpu"
)

// WorkerConfig says what a worker does. Either part may be empty.
type WorkerConfig struct {
	Compile      *compile.Handler // nil: no compile work
	CompileSlots int              // candidates compiled at once, at least 1
	Targets      []harness.Target // that Compile serves
	Devices      []gpu.Device     // each has its own handler
	Spool        *spool.Spool     // this worker's alone; the caller closes it
	// Grace is how long work in hand may go on after ctx has ended, before it is cut off and given back.
	Grace time.Duration
	// JobLimit bounds one step's own work, waiting for permits aside; 0: 30 minutes.
	JobLimit time.Duration
	// Prefetch lets each device take its next task while it measures, so that it never waits for Redis. It suits a lone device;
	// where several share a queue, one could take a task that another is free for.
	Prefetch bool
	// ExitWhenDrained makes Worker return once the host was asked to drain and nothing is in hand.
	ExitWhenDrained bool
}

// Validate reports what is missing.
func (c *WorkerConfig) Validate() error {
	switch {
	case c.Compile == nil && len(c.Devices) == 0:
		return errors.New("worker: neither compile targets nor devices; give it --kind compile, gpu or all, and devices that exist")
	case c.Compile != nil && (c.CompileSlots < 1 || len(c.Targets) == 0):
		return errors.New("worker: compiling needs at least one slot and one target")
	case c.Spool == nil:
		return errors.New("worker: no spool; outcomes must be on disk before they are delivered")
	default:
		return nil
	}
}

// worker is a running worker.
type worker struct {
	node     *Node
	cfg      WorkerConfig
	name     string // host/pid, in outcomes
	hand     *inHand
	handlers []*gpu.Handler
	courier  *courier
	compiled meter
	measured map[string]*meter // by device
	slots    chan struct{}     // compile slots, shared by the targets' servers

	mu       sync.Mutex
	nCompile int64
	faults   map[string]int64
}

// Worker serves compile and device queues until ctx ends, or until the host was drained when the config says so. Only one
// worker may run per Node.
func (n *Node) Worker(ctx context.Context, cfg WorkerConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.JobLimit <= 0 {
		cfg.JobLimit = 30 * time.Minute
	}
	w := &worker{node: n, cfg: cfg, name: processName(n.host), hand: newInHand(), measured: map[string]*meter{},
		slots: make(chan struct{}, max(1, cfg.CompileSlots)), faults: map[string]int64{}}
	w.courier = newCourier(n, cfg.Spool)
	for _, d := range cfg.Devices {
		w.handlers = append(w.handlers, gpu.New(d, n.host, w.name))
		w.measured[d.ID] = &meter{}
	}
	n.mu.Lock()
	n.spoolID = cfg.Spool.ID()
	n.describe = append(n.describe, w.describe)
	n.onAnswer = append(n.onAnswer, w.courier.onAnswer)
	n.onNewData = append(n.onNewData, w.courier.hurry)
	n.mu.Unlock()

	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	taking, stopTaking := context.WithCancel(ctx) // ends when ctx does, or with a drain that ends the worker
	defer stopTaking()
	courierCtx, stopCourier := context.WithCancel(base)
	defer stopCourier()
	var couriers errgroup.Group
	couriers.Go(func() error { return w.courier.run(courierCtx) })
	g, gctx := errgroup.WithContext(taking)
	if cfg.Compile != nil {
		g.Go(func() error { return w.serve(gctx, base, cut, w.compileServer) })
	}
	for _, h := range w.handlers {
		g.Go(func() error { return w.serveDevice(gctx, base, cut, h) })
	}
	if cfg.ExitWhenDrained {
		g.Go(func() error { return w.watchDrain(gctx, stopTaking) })
	}
	err := g.Wait()
	w.courier.lastCall(base)
	stopCourier()
	return errors.Join(err, couriers.Wait())
}

// serve runs a server while the host is not drained, until ctx ends.
func (w *worker) serve(ctx, base context.Context, cut context.CancelCauseFunc, start func(context.Context) (*stoppable, error)) error {
	for {
		if err := w.awaitUndrained(ctx); err != nil {
			return nil
		}
		srv, err := start(base)
		if err != nil {
			return err
		}
		w.awaitDrained(ctx, nil)
		srv.stop(ctx, cut, w.cfg.Grace)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// serveDevice is serve for one device, which also stops while the device is quarantined and is probed again from time to time.
func (w *worker) serveDevice(ctx, base context.Context, cut context.CancelCauseFunc, h *gpu.Handler) error {
	log := w.node.log.With().Str("device", h.Name()).Logger()
	gauge := w.node.metrics.Quarantined.WithLabelValues(h.Name())
	pause := 5 * time.Second
	_ = h.Probe(ctx) // the result is asked for below
	for {
		if w.awaitUndrained(ctx) != nil {
			return nil
		}
		if why := h.Quarantined(); why != nil {
			gauge.Set(1)
			log.Error().Err(why).Dur("next_probe", pause).Msg("device quarantined")
			if sleep(ctx, pause) != nil {
				return nil
			}
			pause = min(2*pause, 5*time.Minute)
			if h.Probe(ctx) == nil {
				log.Info().Msg("device passed its probe and is back")
				pause = 5 * time.Second
			}
			continue
		}
		gauge.Set(0)
		changed := h.Changed()
		srv, err := w.deviceServer(base, h)
		if err != nil {
			return err
		}
		w.awaitDrained(ctx, changed)
		srv.stop(ctx, cut, w.cfg.Grace)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// awaitUndrained waits until the host is not to drain; an error means that ctx ended.
func (w *worker) awaitUndrained(ctx context.Context) error {
	for w.node.draining.Load() {
		if err := sleep(ctx, beatEvery/2); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// awaitDrained waits until the host is to drain, changed is closed, or ctx ends.
func (w *worker) awaitDrained(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTicker(beatEvery / 2)
	defer tick.Stop()
	for !w.node.draining.Load() {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case <-tick.C:
		}
	}
}

// watchDrain ends the worker when its host is drained and nothing is in hand.
func (w *worker) watchDrain(ctx context.Context, stop context.CancelFunc) error {
	return every(ctx, beatEvery/2, func() {
		if w.node.draining.Load() && len(w.hand.list()) == 0 && w.cfg.Spool.Len() == 0 {
			w.node.log.Info().Msg("drained; this worker ends")
			stop()
		}
	})
}

// stoppable is an asynq server with the handler's base.
type stoppable struct{ servers []*asynq.Server }

// stop takes no more, lets work in hand go on for grace (for as long as it needs while ctx lives: a drain waits), and waits.
func (s *stoppable) stop(ctx context.Context, cut context.CancelCauseFunc, grace time.Duration) {
	for _, srv := range s.servers {
		srv.Stop()
	}
	done := make(chan struct{})
	go func() { // ends with the servers, which end with their handlers; waited for below
		defer close(done)
		for _, srv := range s.servers {
			srv.Shutdown()
		}
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		cut(errStopping)
		<-done
	}
}

// stopServer stops a server whose handlers end by themselves, or are cut off after grace.
func stopServer(srv *asynq.Server, cut func(), grace time.Duration) {
	srv.Stop()
	timer := time.AfterFunc(grace, cut)
	srv.Shutdown()
	timer.Stop()
}

func (w *worker) compileServer(base context.Context) (*stoppable, error) {
	out := &stoppable{}
	for _, t := range w.cfg.Targets {
		srv := w.node.server(workers.Priorities(workers.CompileQueue(t)), true, w.cfg.CompileSlots, w.cfg.Grace+3*time.Second)
		if err := srv.Start(w.node.handler(base, workers.KindCompile, w.hand, w.compile)); err != nil {
			return nil, fmt.Errorf("serve %s: %w", workers.CompileQueue(t), err)
		}
		out.servers = append(out.servers, srv)
	}
	return out, nil
}

func (w *worker) deviceServer(base context.Context, h *gpu.Handler) (*stoppable, error) {
	names := deviceQueues(h.Device())
	queues := map[string]int{}
	for _, q := range names {
		maps.Copy(queues, workers.Priorities(q))
	}
	slots := 1
	if w.cfg.Prefetch {
		slots = 2
	}
	srv := w.node.server(queues, true, slots, w.cfg.Grace+3*time.Second)
	do := func(ctx context.Context, payload []byte, at workers.Place, tries int) error {
		return w.measure(ctx, h, payload, at, tries)
	}
	if err := srv.Start(w.node.handler(base, workers.KindGPU, w.hand, do)); err != nil {
		return nil, fmt.Errorf("serve %v: %w", names, err)
	}
	return &stoppable{servers: []*asynq.Server{srv}}, nil
}

// deviceQueues returns the base queues that a device takes from.
func deviceQueues(d gpu.Device) []string {
	out := []string{workers.DeviceQueue(d.Target, d.Arch, d.Features)}
	for _, arch := range d.Archs {
		if q := workers.DeviceQueue(d.Target, arch, nil); !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// describe adds the worker to its process's entry in the fleet.
func (w *worker) describe(m *fleet.Member) {
	if w.cfg.Compile != nil {
		m.Kinds = append(m.Kinds, "compile")
		m.Slots = w.cfg.CompileSlots
		for _, t := range w.cfg.Targets {
			m.Targets = append(m.Targets, t.String())
			m.Queues = append(m.Queues, workers.CompileQueue(t))
		}
	}
	if len(w.handlers) > 0 {
		m.Kinds = append(m.Kinds, "gpu")
	}
	m.Tasks = append(m.Tasks, w.hand.list()...)
	m.Spool = w.cfg.Spool.Len()
	w.node.metrics.Spool.Set(float64(m.Spool))
	now := time.Now()
	m.PerMinute = w.compiled.perMinute(now)
	m.Counts = fleet.Counts{Faults: map[string]int64{}, Infra: w.node.infra.Load(), Refused: w.node.refused.Load(), Again: w.node.repeated.Load()}
	w.mu.Lock()
	m.Counts.Compiled = w.nCompile
	for f, c := range w.faults {
		m.Counts.Faults[f] = c
	}
	w.mu.Unlock()
	for _, h := range w.handlers {
		d := w.describeDevice(h, now)
		m.Queues = append(m.Queues, d.Queues...)
		m.Counts.Measured += d.Done
		m.PerMinute += d.PerMinute
		m.Devices = append(m.Devices, d)
	}
}

func (w *worker) describeDevice(h *gpu.Handler, now time.Time) fleet.Device {
	d, s := h.Device(), h.Stats()
	up := now.Sub(w.node.started).Seconds()
	out := fleet.Device{ID: d.ID, Name: d.Name, Arch: d.Arch, Queues: deviceQueues(d), State: fleet.StateWorking, Task: s.Task, Done: s.Done,
		PerMinute: w.measured[d.ID].perMinute(now), Faults: s.Faults, HeldShare: s.Held.Seconds() / up, BusyShare: s.Busy.Seconds() / up}
	if w.node.draining.Load() {
		out.State = fleet.StateDraining
	}
	if why := h.Quarantined(); why != nil {
		out.State, out.Reason = fleet.StateQuarantined, why.Error()
	}
	if !s.Since.IsZero() {
		out.SinceMS = s.Since.Add(time.Duration(w.node.offset.Load())).UnixMilli()
	}
	return out
}
