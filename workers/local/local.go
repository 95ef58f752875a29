// Package local evaluates jobs in this process: the Dispatcher of a campaign that needs no other machine. It calls a
// harness.Harness and knows nothing of how a kernel is built or measured.
//
// With fewer than four cores, compiling would disturb timing: batches of compiles and timing alternate, and timing has all
// cores (DESIGN.md, section 6). Otherwise compilers run beside the devices.
package local

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// Config is what a Dispatcher needs.
type Config struct {
	Harness harness.Harness
	Devices int // measured side by side; at least 1. On the cpu target there is one.
	// Compilers is how many builds run at once. 0: half the cores, at least 1; all of them when alternating.
	Compilers int
	// Alternating compiles a batch, then times it, instead of doing both at once.
	Alternating bool
	// Deliverers is how many outcomes may wait for their acknowledgement at once, so that they share the store's commits. 0: 16.
	// With 1, outcomes are delivered strictly in the order in which they came.
	Deliverers int
	// Batch bounds the jobs compiled before they are timed when alternating. 0: twice the compilers.
	Batch int
	Log   zerolog.Logger
}

// alternateBelow is the number of cores below which compiling and timing alternate.
const alternateBelow = 4

// Default returns the configuration for evaluating on one device of this machine; onCPU says that the candidates themselves
// run on its cores.
func Default(h harness.Harness, onCPU bool, log zerolog.Logger) Config {
	cores := runtime.NumCPU()
	return Config{Harness: h, Devices: 1, Alternating: onCPU && cores < alternateBelow, Log: log}
}

// Dispatcher holds accepted jobs and evaluates them in the order in which they came.
type Dispatcher struct {
	cfg    Config
	worker string
	wake   chan struct{} // holds one: a job is queued

	mu    sync.Mutex // guards queue
	queue []*scheduler.Job
}

var _ scheduler.Dispatcher = (*Dispatcher)(nil)

// New returns a dispatcher; Run does the work.
func New(cfg Config) *Dispatcher {
	cfg.Devices = max(1, cfg.Devices)
	if cfg.Compilers == 0 {
		cfg.Compilers = max(1, runtime.NumCPU()/2)
		if cfg.Alternating {
			cfg.Compilers = max(1, runtime.NumCPU())
		}
	}
	if cfg.Batch == 0 {
		cfg.Batch = 2 * cfg.Compilers
	}
	if cfg.Deliverers == 0 {
		cfg.Deliverers = deliverers
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &Dispatcher{cfg: cfg, worker: fmt.Sprintf("%s/%d", host, os.Getpid()), wake: make(chan struct{}, 1)}
}

// Dispatch accepts a job.
func (d *Dispatcher) Dispatch(_ context.Context, j *scheduler.Job) error {
	d.mu.Lock()
	d.queue = append(d.queue, j)
	d.mu.Unlock()
	d.signal()
	return nil
}

// Capacity returns how many jobs are measured at once.
func (d *Dispatcher) Capacity(context.Context) (int, error) { return d.cfg.Devices, nil }

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default: // someone will look anyway
	}
}

// Run evaluates jobs and hands their outcomes to deliver until ctx ends. Jobs in hand are dropped then: the scheduler plans
// them again.
func (d *Dispatcher) Run(ctx context.Context, deliver scheduler.Deliver) error {
	out := &outbox{slots: d.cfg.Deliverers, deliver: deliver, wake: make(chan struct{}, 1), log: d.cfg.Log}
	var wg sync.WaitGroup
	wg.Go(func() { out.run(ctx) })
	if d.cfg.Alternating {
		wg.Go(func() { d.alternate(ctx, out) })
	} else {
		d.divide(ctx, out, &wg)
	}
	wg.Wait()
	return nil
}

// divide runs compilers and devices side by side.
func (d *Dispatcher) divide(ctx context.Context, out *outbox, wg *sync.WaitGroup) {
	built := make(chan *work) // unbuffered: a compiler that is a job ahead of every device waits
	for range d.cfg.Compilers {
		wg.Go(func() {
			for {
				batch := d.take(ctx, 1)
				if batch == nil {
					return
				}
				w := d.compile(ctx, batch[0])
				if w.build == nil {
					out.push(w.outcome)
					continue
				}
				select {
				case built <- w:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i := range d.cfg.Devices {
		wg.Go(func() {
			for {
				select {
				case w := <-built:
					out.push(d.benchmark(ctx, w, i))
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// alternate compiles a batch with all cores, then measures it with all cores.
func (d *Dispatcher) alternate(ctx context.Context, out *outbox) {
	for {
		batch := d.take(ctx, d.cfg.Batch)
		if batch == nil {
			return
		}
		works := make([]*work, len(batch))
		slots := make(chan struct{}, d.cfg.Compilers) // as many builds at once as there are slots
		var wg sync.WaitGroup
		for i, j := range batch {
			slots <- struct{}{}
			wg.Go(func() {
				works[i] = d.compile(ctx, j)
				<-slots
			})
		}
		wg.Wait()
		for _, w := range works {
			if ctx.Err() != nil {
				return
			}
			if w.build == nil {
				out.push(w.outcome)
				continue
			}
			out.push(d.benchmark(ctx, w, 0))
		}
	}
}

// take waits for jobs and returns up to n of them; nil when ctx has ended.
func (d *Dispatcher) take(ctx context.Context, n int) []*scheduler.Job {
	for ctx.Err() == nil {
		d.mu.Lock()
		n := min(n, len(d.queue))
		batch := append([]*scheduler.Job(nil), d.queue[:n]...)
		d.queue = d.queue[n:]
		more := len(d.queue) > 0
		d.mu.Unlock()
		if more {
			d.signal()
		}
		if n > 0 {
			return batch
		}
		select {
		case <-d.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// work is a job on its way: built, or with its outcome already.
type work struct {
	job     *scheduler.Job
	build   *harness.Build
	took    float64 // seconds of compiling
	outcome *scheduler.Outcome
}

func (d *Dispatcher) compile(ctx context.Context, j *scheduler.Job) *work {
	start := time.Now()
	build, report, err := d.cfg.Harness.Compile(ctx, &j.Request)
	w := &work{job: j, took: time.Since(start).Seconds()}
	switch {
	case err != nil:
		w.outcome = d.broken(j, fmt.Errorf("compile: %w", err), start)
	case build != nil:
		w.build = build
	default:
		w.outcome = d.outcome(j, report, 0, start)
	}
	return w
}

func (d *Dispatcher) benchmark(ctx context.Context, w *work, device int) *scheduler.Outcome {
	start := time.Now()
	report, err := d.cfg.Harness.Benchmark(ctx, &w.job.Request, w.build)
	if err != nil {
		return d.broken(w.job, fmt.Errorf("device %d: %w", device, err), start)
	}
	if report != nil && report.Split.Compile == 0 {
		report.Split.Compile = w.took
	}
	return d.outcome(w.job, report, time.Since(start).Seconds(), start)
}

func (d *Dispatcher) outcome(j *scheduler.Job, r *harness.Report, held float64, start time.Time) *scheduler.Outcome {
	if r == nil {
		return d.broken(j, fmt.Errorf("the harness returned neither a report nor an error"), start)
	}
	if r.Split.Total == 0 {
		r.Split.Total = time.Since(start).Seconds()
	}
	return &scheduler.Outcome{Key: j.Key, Final: scheduler.Final(r.Fault, j.Strikes), Report: *r, Worker: d.worker, WorkerHeld: held}
}

// broken is the outcome of an attempt that infrastructure kept from saying anything of the kernel.
func (d *Dispatcher) broken(j *scheduler.Job, err error, start time.Time) *scheduler.Outcome {
	r := harness.Report{Version: harness.ReportVersion, CandidateID: j.Request.Candidate.ID(), Task: j.Request.Task.Name, TaskDigest: j.Request.Task.Digest,
		Target: j.Request.Candidate.Target, Arch: j.Request.Candidate.Options.Arch, Fault: harness.FaultInfra, Stage: j.Request.Plan.Stage, Reason: err.Error(),
		Seed: j.Request.Plan.Seed, Started: start.UTC(), Finished: time.Now().UTC()}
	return &scheduler.Outcome{Key: j.Key, Report: r, Worker: d.worker}
}

// outbox delivers outcomes in order beside the work, so that no device waits for a disk.
type outbox struct {
	slots   int
	deliver scheduler.Deliver
	wake    chan struct{} // holds one: an outcome is queued
	log     zerolog.Logger

	mu    sync.Mutex // guards queue
	queue []*scheduler.Outcome
}

func (o *outbox) push(outcome *scheduler.Outcome) {
	o.mu.Lock()
	o.queue = append(o.queue, outcome)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// deliverers is enough outcomes for one flush of the disk: at 500 outcomes a second and 5 ms a commit there are 3.
const deliverers = 16

func (o *outbox) run(ctx context.Context) {
	slots := make(chan struct{}, o.slots)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		o.mu.Lock()
		batch := o.queue
		o.queue = nil
		o.mu.Unlock()
		for _, outcome := range batch {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := o.deliver(ctx, outcome); err != nil && ctx.Err() == nil {
					o.log.Error().Err(err).Int64("trial", outcome.Key.Trial).Msg("outcome not delivered; the scheduler will plan it again")
				}
			})
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}
