package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/redistest"
)

// rival is a scheduler of its own with one campaign.
type rival struct {
	weight   float64
	priority int
}

// contend runs schedulers, each with its store, on one Redis and one worker, lets them come to their shares, and then counts
// whose outcomes come in until there are so many. inFlight trials of each part are kept in line.
func contend(t *testing.T, devices, inFlight, outcomes int, rivals ...rival) []float64 {
	t.Helper()
	cfg := testConfig(t, redistest.Start(t, redistest.None).URL)
	worker := startNode(t, cfg, Options{Host: "worker"})
	h := &harnesstest.Scripted{TimeFunc: campaignTime, Latency: 4 * time.Millisecond}
	names := make([]string, devices)
	for i := range names {
		names[i] = fmt.Sprintf("cpu%d", i)
	}
	wcfg := workerConfig(t, h, 4, names...)
	wcfg.Targets[0] = harness.TargetCPU
	for i := range wcfg.Devices {
		wcfg.Devices[i].Target, wcfg.Devices[i].Arch = harness.TargetCPU, "x86-64"
	}
	background(t, func(ctx ctxt) error { return worker.Worker(ctx, wcfg) })
	came := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	dispatchers := make([]*Dispatcher, len(rivals))
	for i, r := range rivals {
		store, err := memory.Open(ctx, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() }) // the test is over
		id := fmt.Sprintf("scripted-cpu-%04d", i)
		n := startNode(t, cfg, Options{Host: "sched" + fmt.Sprint(i)})
		dispatchers[i] = n.Dispatcher(Campaign{ID: id, Target: harness.TargetCPU, Arch: "x86-64", Weight: r.weight, Priority: r.priority})
		l := manyTrialsOf(t, id, inFlight, store, dispatchers[i], func() {
			select {
			case came <- i:
			case <-ctx.Done():
			}
		})
		g.Go(func() error { return n.Scheduler(ctx, store.SchedulerID(), l.Deliver) })
		g.Go(func() error {
			_, err := l.Run(ctx)
			if errors.Is(err, loop.ErrStopped) {
				return nil
			}
			return err
		})
	}
	shares := make([]float64, len(rivals))
	settled := time.After(2 * beatEvery) // everybody has seen everybody
	counted := 0
	for counted < outcomes {
		select {
		case i := <-came:
			if settled == nil {
				shares[i]++
				counted++
			}
		case <-settled:
			settled = nil
			for range 200 { // more than was in line before
				<-came
			}
		}
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	for i := range shares {
		shares[i] /= float64(counted)
	}
	return shares
}

// TestSharesFollowWeights runs campaigns of several schedulers against each other: what each gets done stands as the weights do,
// also on fewer devices than campaigns.
func TestSharesFollowWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		devices int
		weights []float64
	}{{1, []float64{1, 3}}, {4, []float64{1, 2}}, {2, []float64{1, 1, 2}}} {
		t.Run(fmt.Sprintf("%d devices, weights %v", c.devices, c.weights), func(t *testing.T) {
			t.Parallel()
			var rivals []rival
			total := 0.0
			for _, w := range c.weights {
				rivals = append(rivals, rival{weight: w})
				total += w
			}
			shares := contend(t, c.devices, 4, 600, rivals...)
			t.Logf("shares %.3f for weights %v", shares, c.weights)
			for i, w := range c.weights {
				if math.Abs(shares[i]-w/total) > 0.06 {
					t.Errorf("weight %g of %g got %.3f of the outcomes; want %.3f", w, total, shares[i], w/total)
				}
			}
		})
	}
}

// TestHigherPriorityFirst shows that a campaign of higher priority gets what it can use, whatever the weights.
func TestHigherPriorityFirst(t *testing.T) {
	t.Parallel()
	shares := contend(t, 2, 32, 300, rival{weight: 9}, rival{weight: 1, priority: 1})
	t.Logf("shares %.3f", shares)
	if shares[1] < 0.9 {
		t.Errorf("the campaign of higher priority got %.3f of the outcomes; want nearly all", shares[1])
	}
}
