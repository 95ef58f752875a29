package queue

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/local"
	"ridgepoint/workers/redistest"
)

// manyTrials is a campaign that goes on for more trials than are wanted.
func manyTrials(t *testing.T, store *memory.Store, d scheduler.Dispatcher, onOutcome func()) *loop.Loop {
	t.Helper()
	return manyTrialsOf(t, campaignID, 32, store, d, onOutcome)
}

func manyTrialsOf(t *testing.T, id string, inFlight int, store *memory.Store, d scheduler.Dispatcher, onOutcome func()) *loop.Loop {
	t.Helper()
	task := harnesstest.Task(2)
	campaign := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: id, Name: "many", Task: task, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Seed: 1,
		Reward: task.Reward, Created: time.UnixMilli(1_800_000_000_000).UTC(),
		Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: 1 << 40}, Optimizer: "random", Probes: 1, InFlight: inFlight, RemeasureShare: 0, OverdueSeconds: 120, ReplayReserve: 0.01,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 8, Share: 0}}}
	l, err := loop.New(loop.Config{Campaign: campaign, Structures: []*harness.Structure{harnesstest.Structure("fast", harnesstest.Ints("A", 0, 399), harnesstest.Ints("B", 0, 399))},
		Store: store, Dispatcher: d, Log: zerolog.Nop(),
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New("random", s, strategy.Options{Seed: seed})
		},
		EventFunc: func(e *scheduler.Event, _ any) {
			if e.Kind == scheduler.EventOutcome {
				onOutcome()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSchedulerIsBack takes the time from a scheduler's start over a store with many records (100 000 with
// RIDGEPOINT_LONG=1) to the first outcome that comes back to it over Redis.
func TestSchedulerIsBack(t *testing.T) {
	t.Parallel()
	records := 300
	if isLong() {
		records = 100_000
	}
	dir := t.TempDir()
	fillStore(t, dir, records)

	srv := redistest.Start(t, redistest.AOF)
	n := startNode(t, testConfig(t, srv.URL), Options{})
	h := &harnesstest.Scripted{TimeFunc: campaignTime, Latency: time.Millisecond}
	wcfg := workerConfig(t, h, 2, "cpu0")
	wcfg.Targets[0], wcfg.Devices[0].Target, wcfg.Devices[0].Arch = harness.TargetCPU, harness.TargetCPU, "x86-64"
	background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })

	cpu := processorTime(t)
	started := time.Now()
	store, err := memory.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	sched, err := Open(t.Context(), testConfig(t, srv.URL), Options{Host: "sched", Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	back := make(chan time.Duration, 1)
	d := sched.Dispatcher(Campaign{ID: campaignID, Target: harness.TargetCPU, Arch: "x86-64"})
	l := manyTrials(t, store, d, func() {
		select {
		case back <- time.Since(started):
		default: // only the first counts
		}
	})
	var g errgroup.Group
	g.Go(func() error { return sched.Run(ctx) })
	g.Go(func() error { return sched.Scheduler(ctx, store.SchedulerID(), l.Deliver) })
	g.Go(func() error {
		_, err := l.Run(ctx)
		if errors.Is(err, loop.ErrStopped) {
			err = nil
		}
		return err
	})
	took := <-back
	cancel()
	if err := errors.Join(g.Wait(), sched.Close(), store.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("a scheduler with %d records had its first outcome %v after its start; until it was down again the process used %v of processor time",
		records, took.Round(time.Millisecond), (processorTime(t) - cpu).Round(time.Millisecond))
	if isLong() && took > 5*time.Second {
		t.Errorf("took %v; want at most 5s", took)
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fillStore runs a campaign in this process until its store has so many records, and lays it down.
func fillStore(t *testing.T, dir string, records int) {
	t.Helper()
	store, err := memory.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := local.New(local.Config{Harness: &harnesstest.Scripted{TimeFunc: campaignTime}, Devices: 8, Compilers: 4, Deliverers: 128, Log: zerolog.Nop()})
	count := 0
	l := manyTrials(t, store, d, func() {
		if count++; count == records {
			cancel()
		}
	})
	var g errgroup.Group
	g.Go(func() error { return d.Run(ctx, l.Deliver) })
	if _, err := l.Run(ctx); !errors.Is(err, loop.ErrStopped) {
		t.Fatal(err)
	}
	cancel()
	if err := errors.Join(g.Wait(), store.Close()); err != nil {
		t.Fatal(err)
	}
}
