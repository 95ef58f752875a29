// Package gpu is the device worker's handler: it holds one device, asks a harness to verify and measure on it, probes the
// device's health after a crash, a hang or an infrastructure fault, and quarantines it when the probe fails. Devices of the
// cpu target are devices like any other. It must not know how work arrives.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// ErrQuarantined says that the device failed its health probe and takes no work until it passes again.
var ErrQuarantined = errors.New("device is quarantined")

// probeLimit bounds a health probe; a device that does not answer for so long is not healthy.
const probeLimit = 60 * time.Second

// Builds makes a build that was compiled elsewhere present on this host.
type Builds interface {
	// Has reports whether the build is present.
	Has(b *harness.Build) bool
	// Import stores the bytes, whose SHA-256 is b.Artifact, so that Benchmark finds the build.
	Import(b *harness.Build, data []byte) error
}

// Device is one device with the harness that drives it.
type Device struct {
	ID       string // unique on its host
	Name     string
	Arch     string
	Target   harness.Target
	Features []string // cpu targets
	// Archs are further archs, without features, whose candidates the device runs: the x86-64 levels that a cpu has.
	Archs   []string
	Harness harness.Harness
	Builds  Builds // nil: builds are always present (one host)
	// ProbeFunc checks the device's health; nil: it is always healthy.
	ProbeFunc func(ctx context.Context) error
}

// Handler owns one device. Its methods may be called concurrently; measurements take turns, in the order in which they asked.
type Handler struct {
	device Device
	host   string
	worker string

	turn chan struct{} // holds one: somebody has the device

	mu          sync.Mutex
	quarantined error
	changed     chan struct{} // closed and replaced when quarantined changes
	stats       Stats
}

// Stats are totals of a device since its handler was made.
type Stats struct {
	Done   int64
	Faults map[string]int64
	Held   time.Duration
	Busy   time.Duration // event-measured
	Task   string        // in hand
	Since  time.Time
}

// New returns the handler of a device. Worker names the process in outcomes: host/pid.
func New(d Device, host, worker string) *Handler {
	return &Handler{device: d, host: host, worker: worker, turn: make(chan struct{}, 1), changed: make(chan struct{}), stats: Stats{Faults: map[string]int64{}}}
}

// Device returns the device.
func (h *Handler) Device() Device { return h.device }

// Name returns "host/device", the device's name in outcomes and in Job.Avoid.
func (h *Handler) Name() string { return h.host + "/" + h.device.ID }

// Ready makes a build present on this host; fetch brings its bytes when it is not. It may run while the device is busy.
func (h *Handler) Ready(ctx context.Context, b *harness.Build, fetch func(context.Context) ([]byte, error)) error {
	if h.device.Builds == nil || b.Artifact == "" || h.device.Builds.Has(b) {
		return nil
	}
	data, err := fetch(ctx)
	if err != nil {
		return err
	}
	if err := h.device.Builds.Import(b, data); err != nil {
		return fmt.Errorf("import build %.12s: %w", b.Key, err)
	}
	return nil
}

// Turn waits for the device. Give must be called once with what it returned; a quarantined device gives no turns.
func (h *Handler) Turn(ctx context.Context) (give func(), err error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give = func() { <-h.turn }
	if err := h.Quarantined(); err != nil {
		give()
		return nil, err
	}
	return give, nil
}

// Measure verifies and measures a built candidate; the caller has the device's turn. An error is broken infrastructure; a bad
// kernel is an outcome.
func (h *Handler) Measure(ctx context.Context, task string, j *scheduler.Job, b *harness.Build) (*scheduler.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	started := h.take(task)
	report, err := h.device.Harness.Benchmark(ctx, &j.Request, b)
	held := h.release(started, report, err)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, fmt.Errorf("measure on %s: %w", h.Name(), cause) // we stopped it: the device is not to blame
	}
	if err == nil && report.Fault == harness.FaultInfra {
		err = errors.New(report.Reason)
	}
	if err != nil || report.Fault == harness.FaultCrash || report.Fault == harness.FaultTimeout {
		h.Probe(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("measure on %s: %w", h.Name(), err)
	}
	return &scheduler.Outcome{Key: j.Key, Final: scheduler.Final(report.Fault, j.Strikes), Report: *report, Worker: h.worker + "/" + h.device.ID,
		Device: h.Name(), WorkerHeld: held.Seconds()}, nil
}

func (h *Handler) take(task string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Task, h.stats.Since = task, time.Now()
	return h.stats.Since
}

func (h *Handler) release(started time.Time, report *harness.Report, err error) time.Duration {
	held := time.Since(started)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Task, h.stats.Since = "", time.Time{}
	h.stats.Held += held
	if err != nil || report == nil {
		h.stats.Faults[harness.FaultInfra.String()]++
		return held
	}
	h.stats.Done++
	h.stats.Faults[report.Fault.String()]++
	h.stats.Busy += time.Duration(BusySeconds(report) * float64(time.Second))
	return held
}

// BusySeconds is the event-measured device time of a report; the cpu target has no events, there it is the measuring itself.
func BusySeconds(r *harness.Report) float64 {
	if r.Split.Device > 0 {
		return r.Split.Device
	}
	return r.Split.Measure
}

// Stats returns a copy of the totals.
func (h *Handler) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stats
	s.Faults = make(map[string]int64, len(h.stats.Faults))
	for k, v := range h.stats.Faults {
		s.Faults[k] = v
	}
	if s.Task != "" {
		s.Held += time.Since(s.Since)
	}
	return s
}

// Probe checks the device's health and quarantines it, or frees it, by the result.
func (h *Handler) Probe(ctx context.Context) error {
	if h.device.ProbeFunc == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	err := h.device.ProbeFunc(ctx)
	if err != nil {
		err = fmt.Errorf("%w: health probe of %s: %w", ErrQuarantined, h.Name(), err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if (err == nil) != (h.quarantined == nil) {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	h.quarantined = err
	return err
}

// Quarantined returns why the device takes no work, or nil.
func (h *Handler) Quarantined() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quarantined
}

// Changed returns a channel that is closed when the device is quarantined or freed.
func (h *Handler) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}
