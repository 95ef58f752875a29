package limits_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"ridgepoint/workers/limits"
	"ridgepoint/workers/redistest"
)

// carriers runs a test on both carriers.
func carriers(t *testing.T, f func(t *testing.T, c redis.UniversalClient)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		m := miniredis.NewMiniRedis()
		c := redis.NewClient(&redis.Options{Addr: "embedded", PoolSize: 64, Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() }})
		t.Cleanup(func() { _ = c.Close(); m.Close() })
		f(t, c)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, redistest.Start(t, redistest.None).Client())
	})
}

// runGate renews a gate's leases until the test ends or the gate's process "dies".
func runGate(t *testing.T, g *limits.Gate) (die context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return g.Run(ctx) })
	t.Cleanup(func() { cancel(); _ = group.Wait() })
	return cancel
}

func pause(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

func TestFreeWithoutLimit(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		g := limits.NewGate(c, "w")
		for range 3 {
			_, l, err := g.Begin(t.Context(), "gpu", "")
			if err != nil || l.Fence != 0 || !l.Valid() {
				t.Fatalf("got %+v %v; want a free pass", l, err)
			}
		}
	})
}

// TestNeverExceeded runs 8 workers of each kind against {gpu: 2, compile: 4}; some die holding a permit. A dead worker's
// permit counts as held until its lease has run out.
func TestNeverExceeded(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		tasks := 700 // of each class and carrier; 10 000 in all with RIDGEPOINT_LONG=1
		if os.Getenv("RIDGEPOINT_LONG") == "1" {
			tasks = 2500
		}
		if err := limits.Set(t.Context(), c, map[string]int{"gpu": 2, "compile": 4}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var g errgroup.Group
		for class, permits := range map[string]int{"gpu": 2, "compile": 4} {
			var done, holding, most atomic.Int64
			for w := range 8 {
				g.Go(func() error {
					gate := limits.NewGate(c, fmt.Sprintf("%s-%d", class, w))
					die := runGate(t, gate)
					for n := done.Add(1); n <= int64(tasks); n = done.Add(1) {
						_, l, err := gate.Begin(ctx, class, "")
						if err != nil {
							return err
						}
						now := holding.Add(1)
						for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						}
						if now > int64(permits) {
							t.Errorf("%s: %d hold permits; want at most %d", class, now, permits)
						}
						pause(3 * time.Millisecond)
						holding.Add(-1)
						if n%500 == 499 { // this worker dies with the permit in hand, and another takes its place
							die()
							gate = limits.NewGate(c, fmt.Sprintf("%s-%d-%d", class, w, n))
							die = runGate(t, gate)
							continue
						}
						if err := l.Finish(ctx, 0); err != nil {
							return err
						}
					}
					return nil
				})
			}
			t.Cleanup(func() {
				if most.Load() < int64(permits) {
					t.Errorf("%s: never more than %d at once; the permits were not contended", class, most.Load())
				}
				t.Logf("%s: %d tasks, most holders at once %d of %d", class, tasks, most.Load(), permits)
			})
		}
		stop := make(chan struct{})
		var sampler errgroup.Group
		sampler.Go(func() error { return sample(t, c, stop) })
		err := g.Wait()
		close(stop)
		if err := errors.Join(err, sampler.Wait()); err != nil {
			t.Fatal(err)
		}
	})
}

// sample reads holders from Redis until stop is closed.
func sample(t *testing.T, c redis.UniversalClient, stop chan struct{}) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		usages, err := limits.Usages(t.Context(), c)
		if err != nil {
			return err
		}
		for _, u := range usages {
			if u.Holders > u.Permits {
				t.Errorf("%s: Redis shows %d holders of %d permits", u.Class, u.Holders, u.Permits)
			}
		}
	}
}

// TestDeadHolder shows that a permit of a holder that died comes back by itself, to one who waits, and that fences rise.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		if err := limits.Set(t.Context(), c, map[string]int{"gpu": 1}); err != nil {
			t.Fatal(err)
		}
		dead := limits.NewGate(c, "dead") // never runs: it renews nothing
		_, lost, err := dead.Begin(t.Context(), "gpu", "task1")
		if err != nil {
			t.Fatal(err)
		}
		alive := limits.NewGate(c, "alive")
		runGate(t, alive)
		started := time.Now()
		_, l, err := alive.Begin(t.Context(), "gpu", "task2")
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(started)
		t.Logf("a dead holder's permit came back after %v", took)
		if took > 7*time.Second {
			t.Errorf("took %v; want at most the lease and a wake-up", took)
		}
		if l.Fence <= lost.Fence {
			t.Errorf("fence %d after %d; want it higher", l.Fence, lost.Fence)
		}
		if lost.Valid() {
			t.Error("a lease that ran out says that it is valid")
		}
		if err := lost.Finish(t.Context(), time.Minute); !errors.Is(err, limits.ErrLost) {
			t.Errorf("the late holder's finish: got %v; want ErrLost", err)
		}
		if _, _, err := alive.Begin(t.Context(), "none", "task1"); err != nil {
			t.Errorf("a refused result must leave no done mark: %v", err)
		}
		if err := l.Finish(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		if _, _, err := alive.Begin(t.Context(), "gpu", "task2"); !errors.Is(err, limits.ErrDone) {
			t.Errorf("a finished task: got %v; want ErrDone", err)
		}
	})
}

// TestLeaseLostCancels shows that work whose lease was taken away is told by its context.
func TestLeaseLostCancels(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		if err := limits.Set(t.Context(), c, map[string]int{"gpu": 1}); err != nil {
			t.Fatal(err)
		}
		g := limits.NewGate(c, "w")
		runGate(t, g)
		work, l, err := g.Begin(t.Context(), "gpu", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Del(t.Context(), "{ridgepoint}:limit:gpu:holders").Err(); err != nil { // as when Redis lost its data
			t.Fatal(err)
		}
		select {
		case <-work.Done():
			if !errors.Is(context.Cause(work), limits.ErrLost) {
				t.Errorf("cause %v; want ErrLost", context.Cause(work))
			}
		case <-time.After(10 * time.Second):
			t.Error("work goes on without its lease")
		}
		if err := l.Finish(t.Context(), 0); !errors.Is(err, limits.ErrLost) {
			t.Errorf("got %v; want ErrLost", err)
		}
	})
}

// TestWaitersInOrder shows that who waits longest is served first.
func TestWaitersInOrder(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		if err := limits.Set(t.Context(), c, map[string]int{"gpu": 1}); err != nil {
			t.Fatal(err)
		}
		g := limits.NewGate(c, "w")
		runGate(t, g)
		_, first, err := g.Begin(t.Context(), "gpu", "")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		var group errgroup.Group
		for i := range 5 {
			group.Go(func() error {
				_, l, err := g.Begin(t.Context(), "gpu", "")
				if err != nil {
					return err
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				return l.Finish(t.Context(), 0)
			})
			awaitWaiting(t, c, i+1)
		}
		if err := first.Finish(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(order) != "[0 1 2 3 4]" {
			t.Errorf("served in the order %v", order)
		}
	})
}

func awaitWaiting(t *testing.T, c redis.UniversalClient, want int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		usages, err := limits.Usages(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if usages[0].Waiting == want {
			return
		}
		<-tick.C
	}
	t.Fatalf("nobody waits as number %d", want)
}
