package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/blobs"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/fleet"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/limits"
)

const (
	// infraTries is how often a step is tried, here or on another worker, before its infrastructure fault is reported to the
	// scheduler, which plans another attempt or stops the campaign.
	infraTries = 4
	// doneMargin keeps done marks a little longer than the payloads that they guard against.
	doneMargin = time.Minute
)

// open checks a payload and whether this process has finished it before.
func (w *worker) open(payload []byte, at workers.Place) (workers.Header, *workers.Evaluation, bool, error) {
	var e workers.Evaluation
	h, err := workers.Open(w.node.cfg.Keyring, payload, at, &e)
	if err != nil {
		return h, nil, false, err
	}
	if want := workers.TaskID(e.Key, at.Kind); want != at.TaskID {
		return h, nil, false, &workers.Refusal{Reason: workers.ReasonMisplaced, Detail: fmt.Sprintf("body of %s under the id %s", want, at.TaskID)}
	}
	if w.node.guard.Done(at.TaskID) {
		w.node.again(at.TaskID, at.Kind)
		return h, nil, true, nil
	}
	return h, &e, false, nil
}

// permit waits for a permit and a token of its class, and bounds the step's work. Done means that the step was finished before,
// somewhere.
func (w *worker) permit(ctx context.Context, class string, at workers.Place) (work context.Context, lease *limits.Lease, cancel context.CancelFunc, done bool, err error) {
	asked := time.Now()
	work, lease, err = w.node.gate.Begin(ctx, class, at.TaskID)
	w.node.metrics.LimitWait.WithLabelValues(class).Observe(time.Since(asked).Seconds())
	if errors.Is(context.Cause(ctx), errStopping) && err != nil {
		return nil, nil, nil, false, errStopping // it had not begun
	}
	if errors.Is(err, limits.ErrDone) {
		w.node.again(at.TaskID, at.Kind)
		return nil, nil, nil, true, nil
	}
	if err != nil {
		return nil, nil, nil, false, err
	}
	work, stop := context.WithTimeoutCause(work, w.cfg.JobLimit, fmt.Errorf("step took longer than %v", w.cfg.JobLimit))
	cancel = func() {
		stop()
		_ = lease.Finish(ctx, 0) // finished already, unless the harness panicked
	}
	return work, lease, cancel, false, nil
}

// giveBack ends a step that failed. Our own stopping is no fault; a lost lease is one of the infrastructure.
func (w *worker) giveBack(ctx, work context.Context, lease *limits.Lease, err error) error {
	if ferr := lease.Finish(ctx, 0); errors.Is(ferr, limits.ErrLost) {
		err = errors.Join(err, ferr)
	}
	if errors.Is(context.Cause(work), errStopping) {
		return errStopping
	}
	if cause := context.Cause(work); errors.Is(cause, limits.ErrLost) {
		err = errors.Join(err, cause)
	}
	return err
}

// finish ends a step whose next one is on its way: the permit is given back and the task marked as done.
func (w *worker) finish(ctx context.Context, lease *limits.Lease, h workers.Header) {
	expires := time.UnixMilli(h.ExpiresMS).Add(doneMargin)
	now := w.node.Now()
	w.node.guard.Mark(h.TaskID, now, expires)
	if err := lease.Finish(ctx, max(expires.Sub(now), doneMargin)); err != nil && !errors.Is(err, limits.ErrLost) {
		w.node.log.Debug().Err(err).Str("task", h.TaskID).Msg("done mark not set; a second run is dropped by the store")
	}
}

// compile is the first hop: build, publish the artifact, pass on; or report why there is no build.
func (w *worker) compile(ctx context.Context, payload []byte, at workers.Place, tries int) error {
	h, e, done, err := w.open(payload, at)
	if err != nil || done {
		return err
	}
	wait := w.node.waited(h, w.node.log)
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return errStopping
	}
	work, lease, cancel, done, err := w.permit(ctx, ClassCompile, at)
	if err != nil || done {
		return w.infra(ctx, h, e, tries, err)
	}
	defer cancel()
	built, err := w.build(work, e)
	if err == nil && !lease.Valid() {
		err = w.fenced(ClassCompile, lease)
	}
	if err != nil {
		return w.infra(ctx, h, e, tries, w.giveBack(ctx, work, lease, err))
	}
	w.compiled.mark(time.Now())
	w.node.metrics.Stage.WithLabelValues("compile").Observe(built.Took.Seconds())
	w.count(built.Report)
	e.CompileSeconds, e.QueueSeconds = built.Took.Seconds(), wait.Seconds()
	if built.Build == nil {
		err = w.courier.deliver(ctx, h.Scheduler, w.refused(e, built))
	} else {
		e.Build = built.Build
		queue := workers.DeviceQueue(e.Candidate.Target, e.Candidate.Options.Arch, e.Candidate.Options.Features)
		err = w.node.enqueue(ctx, workers.Header{Kind: workers.KindGPU, Queue: workers.PriorityQueue(queue, e.Priority),
			TaskID: workers.TaskID(e.Key, workers.KindGPU), Scheduler: e.Scheduler, ExpiresMS: h.ExpiresMS}, e)
	}
	if err != nil {
		return w.giveBack(ctx, work, lease, err)
	}
	w.finish(ctx, lease, h)
	return nil
}

func (w *worker) build(ctx context.Context, e *workers.Evaluation) (*compile.Built, error) {
	job, err := w.node.unpack(ctx, e)
	if err != nil {
		return nil, err
	}
	built, err := w.cfg.Compile.Compile(ctx, &job.Request)
	if err != nil {
		return nil, err
	}
	if built.Data != nil {
		if err := w.node.publish(ctx, []workers.Blob{{Digest: built.Build.Artifact, Data: built.Data}}); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// refused is the outcome of a candidate that did not come as far as a device.
func (w *worker) refused(e *workers.Evaluation, built *compile.Built) *workers.Result {
	report := *built.Report
	if report.Split.Queue == 0 {
		report.Split.Queue = e.QueueSeconds
	}
	return &workers.Result{Outcome: scheduler.Outcome{Key: e.Key, Final: scheduler.Final(report.Fault, e.Strikes), Report: report, Worker: w.name}}
}

// measure is the second hop: verify and measure on a device, spool, deliver. What can be made ready is made ready before the
// device's turn comes, and the turn ends before the outcome is on its way.
func (w *worker) measure(ctx context.Context, h *gpu.Handler, payload []byte, at workers.Place, tries int) error {
	head, e, done, err := w.open(payload, at)
	if err != nil || done {
		return err
	}
	if w.belongsElsewhere(ctx, h, e) {
		return errElsewhere
	}
	job, err := w.prepare(ctx, h, e)
	if err != nil {
		return w.infra(ctx, head, e, tries, err)
	}
	give, err := h.Turn(ctx)
	if err != nil {
		return w.infra(ctx, head, e, tries, err)
	}
	give = sync.OnceFunc(give)
	defer give() // also when the harness panics
	wait := w.node.waited(head, w.node.log)
	work, lease, cancel, done, err := w.permit(ctx, ClassGPU, at)
	if err != nil || done {
		return w.infra(ctx, head, e, tries, err)
	}
	defer cancel()
	outcome, err := h.Measure(work, at.TaskID, job, e.Build)
	give()
	if err == nil && !lease.Valid() {
		err = w.fenced(ClassGPU, lease)
	}
	if err != nil {
		return w.infra(ctx, head, e, tries, w.giveBack(ctx, work, lease, err))
	}
	w.measured[h.Device().ID].mark(time.Now())
	w.node.metrics.Stage.WithLabelValues("measure").Observe(outcome.WorkerHeld)
	w.node.metrics.DeviceHeld.WithLabelValues(h.Name()).Add(outcome.WorkerHeld)
	w.node.metrics.DeviceBusy.WithLabelValues(h.Name()).Add(gpu.BusySeconds(&outcome.Report))
	w.count(&outcome.Report)
	fillSplit(&outcome.Report, e, wait)
	if err := w.courier.deliver(ctx, head.Scheduler, &workers.Result{Outcome: *outcome, Fence: lease.Fence}); err != nil {
		return w.giveBack(ctx, work, lease, err)
	}
	w.finish(ctx, lease, head)
	return nil
}

// prepare unpacks a job and makes its build present.
func (w *worker) prepare(ctx context.Context, h *gpu.Handler, e *workers.Evaluation) (*scheduler.Job, error) {
	if e.Build == nil {
		return nil, &workers.Refusal{Reason: workers.ReasonMalformed, Detail: "a gpu payload without a build"}
	}
	job, err := w.node.unpack(ctx, e)
	if err != nil {
		return nil, err
	}
	return job, h.Ready(ctx, e.Build, func(ctx context.Context) ([]byte, error) { return w.node.fetch(ctx, e.Build.Artifact) })
}

// belongsElsewhere reports whether this device is one to avoid and another live one serves the queue.
func (w *worker) belongsElsewhere(ctx context.Context, h *gpu.Handler, e *workers.Evaluation) bool {
	avoided := false
	for _, name := range e.Avoid {
		avoided = avoided || name == h.Name()
	}
	if !avoided {
		return false
	}
	members, err := w.node.fleetNow(ctx)
	queue := workers.DeviceQueue(e.Candidate.Target, e.Candidate.Options.Arch, e.Candidate.Options.Features)
	return err == nil && fleet.Others(members, queue, e.Avoid)
}

// fillSplit adds what the queue knows to where the time went.
func fillSplit(r *harness.Report, e *workers.Evaluation, wait time.Duration) {
	if r.Split.Queue == 0 {
		r.Split.Queue = e.QueueSeconds + wait.Seconds()
	}
	if r.Split.Compile == 0 {
		r.Split.Compile = e.CompileSeconds
	}
}

// fenced refuses the result of a step whose lease ran out while it worked.
func (w *worker) fenced(class string, l *limits.Lease) error {
	w.node.metrics.LeasesLost.WithLabelValues(class).Inc()
	return fmt.Errorf("%s permit with fence %d: %w; its result is refused", class, l.Fence, limits.ErrLost)
}

func (w *worker) count(r *harness.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r == nil {
		w.nCompile++
		return
	}
	if r.Build == nil && r.Runtime == harness.StatusNone {
		w.nCompile++
	}
	w.faults[r.Fault.String()]++
}

// infra decides what becomes of a step that infrastructure stopped: asynq tries it again, and after some tries the scheduler
// is told. What is not infrastructure passes through, and nil does.
func (w *worker) infra(ctx context.Context, h workers.Header, e *workers.Evaluation, tries int, err error) error {
	var refusal *workers.Refusal
	switch {
	case err == nil, errors.Is(err, errStopping), errors.Is(err, errElsewhere), errors.As(err, &refusal):
		return err
	case errors.Is(err, gpu.ErrQuarantined):
		return errElsewhere // the device's server stops now; another device, or this one when it is back, takes the task
	case tries+1 < infraTries || !w.node.Up():
		return err
	}
	now := w.node.Now()
	reason := err.Error()
	if errors.Is(err, blobs.ErrMissing) {
		reason += "; schedulers keep blobs for their campaigns: is the one that planned this running?"
	}
	report := harness.Report{Version: harness.ReportVersion, TaskDigest: e.TaskDigest, Target: e.Candidate.Target, Arch: e.Candidate.Options.Arch,
		Fault: harness.FaultInfra, Stage: e.Plan.Stage, Seed: e.Plan.Seed, Reason: reason, Started: now, Finished: now}
	w.node.log.Error().Str("task", h.TaskID).Int("tries", tries+1).Err(err).Msg("infrastructure fault reported to the scheduler")
	return w.courier.deliver(ctx, h.Scheduler, &workers.Result{Outcome: scheduler.Outcome{Key: e.Key, Report: report, Worker: w.name}})
}

func resultHeader(schedulerID string, key scheduler.TrialKey) workers.Header {
	return workers.Header{Kind: workers.KindOutcome, Queue: workers.ResultsQueue(schedulerID), TaskID: workers.TaskID(key, workers.KindOutcome), Scheduler: schedulerID}
}
