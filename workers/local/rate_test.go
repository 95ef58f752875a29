package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/local"
)

// side is the number of values of each of two parameters: 1.96 million configurations.
const side = 1400

// counting proposes one configuration after another and remembers nothing: what is measured is loop and store.
type counting struct{ next int64 }

func (c *counting) Ask(context.Context) (optimizer.Configuration, error) {
	c.next++
	return optimizer.Configuration{"A": expr.Int(c.next / side), "B": expr.Int(c.next % side)}, nil
}
func (c *counting) Tell(context.Context, optimizer.Observation) error { return nil }
func (c *counting) Resume(o optimizer.Configuration) error {
	a, _ := o["A"].AsInt()
	b, _ := o["B"].AsInt()
	c.next = max(c.next, a*side+b)
	return nil
}

// simulate runs a campaign of n evaluations with 16 simulated devices that answer in 1 ms, in dir.
func simulate(ctx context.Context, dir string, n int64, stop func(trial int64) bool) (took time.Duration, err error) {
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	t := harnesstest.Task(8)
	c := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: "scripted-cpu-rate", Name: "rate", Task: t, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Seed: 1,
		Reward: t.Reward, Created: time.Now().UTC(), Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: n}, Optimizer: "counting", InFlight: 2, OverdueSeconds: 600,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 4, MinRounds: 4, MaxRounds: 10, Share: 0}}}
	st := harnesstest.Structure("wide", harnesstest.Ints("A", 0, side-1), harnesstest.Ints("B", 0, side-1))
	d := local.New(local.Config{Harness: &harnesstest.Scripted{NoiseSD: 0.01, Latency: time.Millisecond}, Devices: 16, Compilers: 2, Deliverers: 32, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := loop.New(loop.Config{Campaign: c, Structures: []*harness.Structure{st}, Store: store, Dispatcher: d, Log: zerolog.Nop(),
		OptimizerFunc: func(*optimizer.Space, uint64) (optimizer.Optimizer, error) { return &counting{}, nil },
		EventFunc: func(e *scheduler.Event, _ any) {
			if stop != nil && stop(e.Trial) {
				cancel()
			}
		}})
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1) // one result
	work, end := context.WithCancel(ctx)
	go func() { done <- d.Run(work, l.Deliver) }()
	start := time.Now()
	_, err = l.Run(ctx)
	took = time.Since(start)
	end()
	return took, errors.Join(err, <-done)
}

// BenchmarkOutcomes counts outcomes a second through loop and store. RIDGEPOINT_OUTCOMES sets how many (default 3000);
// memory is told at the end, and with RIDGEPOINT_OUTCOMES=1000000 it is the memory-flat run, which fails when the heap grew.
func BenchmarkOutcomes(b *testing.B) {
	n := int64(3000)
	if text := os.Getenv("RIDGEPOINT_OUTCOMES"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		dir := b.TempDir()
		var middle, late runtime.MemStats
		took, err := simulate(b.Context(), dir, n, func(trial int64) bool {
			switch trial {
			case n / 10:
				runtime.GC()
				runtime.ReadMemStats(&middle)
			case n:
				runtime.GC()
				runtime.ReadMemStats(&late)
			}
			return false
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n)/took.Seconds(), "outcomes/s")
		b.ReportMetric(float64(middle.HeapAlloc)/1e6, "MB-at-10%")
		b.ReportMetric(float64(late.HeapAlloc)/1e6, "MB-at-end")
		if n >= 100_000 && late.HeapAlloc > middle.HeapAlloc+middle.HeapAlloc/5+8<<20 {
			b.Errorf("the heap grew from %d MB at a tenth of the outcomes to %d MB at the end: something is kept for every outcome", middle.HeapAlloc/1e6, late.HeapAlloc/1e6)
		}
		if info, err := os.Stat(filepath.Join(dir, "ridgepoint.db")); err == nil {
			b.ReportMetric(float64(info.Size())/float64(n), "B/outcome")
		}
	}
}

// BenchmarkResume100k measures how long a scheduler takes from opening a store with 100 000 records to planning again.
// RIDGEPOINT_RESUME_DIR keeps the store between runs, since filling it takes minutes.
func BenchmarkResume100k(b *testing.B) {
	dir := os.Getenv("RIDGEPOINT_RESUME_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, "ridgepoint.db")); err != nil {
		if _, err := simulate(b.Context(), dir, 1_000_000, func(trial int64) bool { return trial >= 100_000 }); !errors.Is(err, loop.ErrStopped) {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		start := time.Now()
		var ready time.Duration
		_, err := simulate(b.Context(), dir, 1_000_000, func(int64) bool {
			if ready == 0 {
				ready = time.Since(start)
			}
			return true
		})
		if !errors.Is(err, loop.ErrStopped) {
			b.Fatal(err)
		}
		b.ReportMetric(ready.Seconds(), "s-to-first-event")
	}
}
