package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers/redistest"
)

func campaignOf(id string) Campaign {
	return Campaign{ID: id, Target: harness.TargetCUDA, Arch: "sm_90"}
}

// carriers runs a test on both carriers: one code path.
func carriers(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, Config{Redis: Embedded})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, testConfig(t, redistest.Start(t, redistest.None).URL))
	})
}

// fleetOf starts a node with a scheduler's side and a worker in it.
func fleetOf(t *testing.T, cfg Config, opt Options, h harness.Harness, devices ...string) (*Node, *ledger, *Dispatcher) {
	t.Helper()
	n := startNode(t, cfg, opt)
	book := newLedger()
	background(t, func(ctx ctxt) error { return n.Scheduler(ctx, "s1", book.deliver) })
	if h != nil {
		wcfg := workerConfig(t, h, 2, devices...)
		background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
	}
	return n, book, n.Dispatcher(campaignOf("c1"))
}

func dispatch(t *testing.T, d *Dispatcher, trials int) {
	t.Helper()
	for i := range int64(trials) {
		if err := d.Dispatch(t.Context(), testJob("c1", "s1", i, 1, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBothHops takes trials through both hops and back, and holds the number of messages to Redis to the limit.
func TestBothHops(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		h := newScripted()
		n, book, d := fleetOf(t, cfg, Options{Limits: map[string]int{"gpu": 2, "compile": 4}}, h, "gpu0", "gpu1")
		_, before := n.Messages()
		const trials = 150
		dispatch(t, d, trials)
		book.await(t, 30*time.Second, func(final, others int) bool { return final == trials-1 && others == 1 })
		_, after := n.Messages()
		perHop := float64(after-before) / (3 * trials)
		t.Logf("%.2f messages a hop beyond asynq's own", perHop)
		if perHop > 3 {
			t.Errorf("%.2f messages a hop beyond asynq's own; want at most 3", perHop)
		}
		book.mu.Lock()
		defer book.mu.Unlock()
		for i := range int64(trials) {
			o, ok := book.final[i]
			switch {
			case i == 17:
				if ok || book.others[0].Key.Trial != 17 || book.others[0].Final || book.others[0].Device != "host1/gpu0" && book.others[0].Device != "host1/gpu1" {
					t.Errorf("a first crash is not final and names its device: got %v, %+v", ok, book.others[0].Key)
				}
			case i == 13:
				if o.Report.Fault != harness.FaultCompile {
					t.Errorf("trial 13: fault %v; want compile", o.Report.Fault)
				}
			case o.Report.Fault != harness.FaultNone || o.Report.Sizes[0].MedianUS != truth(i) || o.WorkerHeld <= 0:
				t.Errorf("trial %d: %v %v; want none and %v", i, o.Report.Fault, o.Report.Sizes, truth(i))
			}
		}
		if got := h.measured.Load(); got != trials-1 {
			t.Errorf("%d measurements; want %d", got, trials-1)
		}
	})
}

// TestDispatchTwice shows that a job handed over again under its key is accepted and runs once.
func TestDispatchTwice(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		n, book, d := fleetOf(t, cfg, Options{}, nil)
		dispatch(t, d, 5)
		dispatch(t, d, 5)
		h := newScripted()
		wcfg := workerConfig(t, h, 1, "gpu0")
		background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 5 })
		dispatch(t, d, 5) // after the fact: found done
		waitFor(t, 30*time.Second, "found done", func() bool { return n.repeated.Load() == 5 })
		if got := h.measured.Load(); got != 5 {
			t.Errorf("%d measurements of 5 trials", got)
		}
	})
}

// TestAcknowledged shows that a worker's spool empties once the scheduler has its outcomes.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		n := startNode(t, cfg, Options{})
		book := newLedger()
		refuse := errors.New("disk full")
		attempts := map[int64]int{}
		background(t, func(ctx ctxt) error {
			return n.Scheduler(ctx, "s1", func(ctx ctxt, o *scheduler.Outcome) error {
				book.mu.Lock()
				attempts[o.Key.Trial]++
				again := attempts[o.Key.Trial]
				book.mu.Unlock()
				if again == 1 {
					return refuse // a store that cannot write now: the outcome comes again
				}
				return book.deliver(ctx, o)
			})
		})
		wcfg := workerConfig(t, newScripted(), 1, "gpu0")
		background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
		dispatch(t, n.Dispatcher(campaignOf("c1")), 5)
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 5 })
		waitFor(t, 30*time.Second, "acknowledged", func() bool { return wcfg.Spool.Len() == 0 })
	})
}

// TestCapacity shows that campaigns share devices by weight, and that the dead and the draining do not count.
func TestCapacity(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, redistest.Start(t, redistest.None).URL)
	_, _, d1 := fleetOf(t, cfg, Options{Host: "host1"}, newScripted(), "gpu0", "gpu1", "gpu2", "gpu3")
	if got, err := d1.Capacity(t.Context()); err != nil || got < 1 {
		t.Errorf("capacity before anybody beats: %d %v; want at least 1", got, err)
	}
	capacity := func(d *Dispatcher, want int) {
		t.Helper()
		waitFor(t, 30*time.Second, fmt.Sprintf("a capacity of %d", want), func() bool {
			got, err := d.Capacity(t.Context())
			return err == nil && got == want
		})
	}
	capacity(d1, 4)
	n2 := startNode(t, cfg, Options{Host: "host2"})
	background(t, func(ctx ctxt) error { return n2.Scheduler(ctx, "s2", newLedger().deliver) })
	heavy := campaignOf("c2")
	heavy.Weight = 3
	d2 := n2.Dispatcher(heavy)
	capacity(d2, 3)
	capacity(d1, 1)
	d2.Close()
	capacity(d1, 4)
	if err := n2.Registry().Drain(t.Context(), "host1", true); err != nil {
		t.Fatal(err)
	}
	capacity(d1, 1) // none left: at least 1 all the same
}

// TestPriority shows that work of a higher priority is taken first.
func TestPriority(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		n, book, low := fleetOf(t, cfg, Options{}, nil)
		high := campaignOf("c1")
		high.Priority = 1
		d := n.Dispatcher(high)
		for i := range int64(10) {
			if err := errors.Join(low.Dispatch(t.Context(), testJob("c1", "s1", i, 1, i)), d.Dispatch(t.Context(), testJob("c1", "s1", 20+i, 1, 20+i))); err != nil {
				t.Fatal(err)
			}
		}
		h := newScripted()
		var order []int64
		h.onMeasure = func(x int64) { order = append(order, x) } // one device: one at a time
		wcfg := workerConfig(t, h, 1, "gpu0")
		background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 20 })
		firstLow := len(order)
		for i, x := range order {
			if x < 20 {
				firstLow = min(firstLow, i)
			}
		}
		if firstLow < 8 { // the first of the high ones may still compile while the device takes a low one
			t.Errorf("measured in the order %v; want 20 to 29 first", order)
		}
	})
}
