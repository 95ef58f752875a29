package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/spool"
)

// scripted is a harness whose verdicts follow from the configuration: X=13 does not compile, X=17 crashes its device, every
// other X measures |X-42|+1 microseconds. It counts, and takes as long as it is told.
type scripted struct {
	compileTime, measureTime time.Duration
	compiled, measured       atomic.Int64
	infra                    atomic.Pointer[error] // when set, Benchmark fails with it
	onStart, onMeasure       func(x int64)
	onCompile                func(x int64)

	mu    sync.Mutex
	times map[int64]int // measurements by X
}

func newScripted() *scripted { return &scripted{times: map[int64]int{}} }

func (s *scripted) Compile(ctx context.Context, r *harness.Request) (*harness.Build, *harness.Report, error) {
	s.compiled.Add(1)
	if s.onCompile != nil {
		s.onCompile(xOf(r))
	}
	if err := sleep(ctx, s.compileTime); err != nil {
		return nil, nil, err
	}
	x := xOf(r)
	if x == 13 {
		rep := reportOf(r, harness.FaultCompile)
		return nil, &rep, nil
	}
	return &harness.Build{Key: fmt.Sprintf("key-%d", x), Toolchain: "scripted"}, nil, nil
}

func (s *scripted) Benchmark(ctx context.Context, r *harness.Request, b *harness.Build) (*harness.Report, error) {
	if err := s.infra.Load(); err != nil {
		return nil, *err
	}
	x := xOf(r)
	if s.onStart != nil {
		s.onStart(x)
	}
	if err := sleep(ctx, s.measureTime); err != nil {
		return nil, err
	}
	s.measured.Add(1)
	s.mu.Lock()
	s.times[x]++
	s.mu.Unlock()
	if s.onMeasure != nil {
		s.onMeasure(x)
	}
	fault := harness.FaultNone
	if x == 17 {
		fault = harness.FaultCrash
	}
	rep := reportOf(r, fault)
	if want := fmt.Sprintf("key-%d", x); b.Key != want {
		return nil, fmt.Errorf("build %s came with the candidate of %s", b.Key, want)
	}
	return &rep, nil
}

func xOf(r *harness.Request) int64 {
	x, _ := r.Candidate.Configuration["X"].AsInt()
	return x
}

// truth is what a configuration scripted to X measures, in microseconds.
func truth(x int64) float64 {
	if x < 42 {
		return float64(42-x) + 1
	}
	return float64(x-42) + 1
}

func reportOf(r *harness.Request, f harness.Fault) harness.Report {
	rep := harness.Report{Version: harness.ReportVersion, CandidateID: r.Candidate.ID(), Task: r.Task.Name, TaskDigest: r.Task.Digest,
		Target: r.Candidate.Target, Arch: r.Candidate.Options.Arch, Fault: f, Stage: r.Plan.Stage, Seed: r.Plan.Seed}
	if f.Measured() {
		rep.Sizes = []harness.SizeTime{{Size: r.Task.Sizes[0], MedianUS: truth(xOf(r)), SamplesUS: []float64{truth(xOf(r))}}}
		rep.Split.Measure = 0.001
	}
	return rep
}

func testTask() *harness.Task {
	size := harness.Size{{Name: "n", Value: 64}}
	return &harness.Task{Name: "scripted", Dims: []string{"n"}, Problem: size, Sizes: []harness.Size{size}, Digest: "task-digest",
		Targets: []harness.TargetSpec{{Target: harness.TargetCUDA, Arch: "sm_90"}}}
}

func testStructure() *harness.Structure {
	const source = "void s(void) {}"
	return &harness.Structure{Name: "s", Direction: "s", Target: harness.TargetCUDA, Source: source, Digest: workers.NewBlob([]byte(source)).Digest,
		Launches: []harness.Launch{{Kernel: "s", Args: []string{"input"}}}}
}

func testJob(campaign, schedulerID string, trial int64, attempt int, x int64) *scheduler.Job {
	c := &harness.Candidate{Structure: testStructure(), Configuration: harness.Configuration{"X": expr.Int(x)}, Target: harness.TargetCUDA,
		Options: harness.BuildOptions{Arch: "sm_90"}}
	return &scheduler.Job{Key: scheduler.TrialKey{Campaign: campaign, Trial: trial, Attempt: attempt}, Scheduler: schedulerID,
		Purpose: scheduler.PurposeSearch, Request: harness.Request{Task: testTask(), Candidate: c, Plan: harness.Plan{Stage: harness.StageSearch, Seed: uint64(trial)}},
		Deadline: time.Now().Add(5 * time.Minute), Weight: 1}
}

// ledger is a scheduler's store reduced to its rule: the first final outcome of a trial wins.
type ledger struct {
	mu     sync.Mutex
	final  map[int64]scheduler.Outcome
	others []scheduler.Outcome // not final, or final again
	signal chan struct{}
}

func newLedger() *ledger {
	return &ledger{final: map[int64]scheduler.Outcome{}, signal: make(chan struct{}, 1)}
}

func (l *ledger) deliver(_ context.Context, o *scheduler.Outcome) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.final[o.Key.Trial]; !known && o.Final {
		l.final[o.Key.Trial] = *o
	} else {
		l.others = append(l.others, *o)
	}
	select {
	case l.signal <- struct{}{}:
	default:
	}
	return nil
}

func (l *ledger) count() (final, others int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.final), len(l.others)
}

// await waits until done says so, or fails the test after limit.
func (l *ledger) await(t *testing.T, limit time.Duration, done func(final, others int) bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if done(l.count()) {
			return
		}
		select {
		case <-l.signal:
		case <-deadline.C:
			f, o := l.count()
			t.Fatalf("after %v: %d final outcomes and %d others", limit, f, o)
		}
	}
}

type ctxt = context.Context

// startNode opens a node and runs it until the test ends.
func startNode(t *testing.T, cfg Config, opt Options) *Node {
	t.Helper()
	if opt.Log.GetLevel() == zerolog.Disabled || opt.Log.GetLevel() == zerolog.TraceLevel {
		opt.Log = testLog(t)
	}
	if opt.Host == "" {
		opt.Host = "host1"
	}
	n, err := Open(t.Context(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() }) // cleanups run last first: Run has ended by then
	background(t, n.Run)
	return n
}

// background runs f until the test ends, and waits for it.
func background(t *testing.T, f func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return f(ctx) })
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = g.Wait()
		})
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("background: %v", err)
		}
	})
	return stop
}

func testLog(t *testing.T) zerolog.Logger {
	if testing.Verbose() {
		return zerolog.New(zerolog.ConsoleWriter{Out: t.Output(), NoColor: true}).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	}
	return zerolog.Nop()
}

func openSpool(t *testing.T, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func deviceOf(id string, h harness.Harness) gpu.Device {
	return gpu.Device{ID: id, Name: "scripted", Arch: "sm_90", Target: harness.TargetCUDA, Harness: h}
}

func workerConfig(t *testing.T, h harness.Harness, slots int, devices ...string) WorkerConfig {
	cfg := WorkerConfig{Compile: &compile.Handler{Harness: h}, CompileSlots: slots, Targets: []harness.Target{harness.TargetCUDA}, Spool: openSpool(t, t.TempDir()), Grace: time.Second}
	for _, d := range devices {
		cfg.Devices = append(cfg.Devices, deviceOf(d, h))
	}
	return cfg
}
