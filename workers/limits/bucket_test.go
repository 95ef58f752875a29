package limits_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"ridgepoint/workers/limits"
)

// begun is when steps began, by this process's clock.
type begun struct {
	mu sync.Mutex
	at []time.Time
}

func (b *begun) mark() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = append(b.at, time.Now())
}

// check holds what had begun at any time to the burst and what the time since started brings, one more for milliseconds that were
// rounded. A late begin proves nothing, an early one does.
func (b *begun) check(t *testing.T, started time.Time, r limits.Rate) {
	t.Helper()
	slices.SortFunc(b.at, time.Time.Compare)
	for i, at := range b.at {
		if most := r.Burst + r.PerSecond*at.Sub(started).Seconds() + 1; float64(i+1) > most {
			t.Fatalf("%d steps had begun after %v; want at most %.1f", i+1, at.Sub(started), most)
		}
	}
}

// TestRateOfAClass shows that the steps of several processes together keep to a class's rate, also where the class has permits, that
// other classes do not wait, and that a class is free again when its rate is taken away.
func TestRateOfAClass(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		r := limits.Rate{PerSecond: 40, Burst: 5}
		err := errors.Join(limits.Set(t.Context(), c, map[string]int{"gpu": 3}), limits.SetRates(t.Context(), c, map[string]limits.Rate{"gpu": r, "compile": {PerSecond: 0.001, Burst: 1}}))
		if err != nil {
			t.Fatal(err)
		}
		var log begun
		started := time.Now()
		var group errgroup.Group
		for range 4 {
			gate := limits.NewGate(c, "w")
			runGate(t, gate)
			group.Go(func() error {
				for range 8 {
					_, l, err := gate.Begin(t.Context(), "gpu", "")
					if err != nil {
						return err
					}
					log.mark()
					if err := l.Finish(t.Context(), 0); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		log.check(t, started, r)
		g := limits.NewGate(c, "other")
		if _, _, err := g.Begin(t.Context(), "board", ""); err != nil {
			t.Errorf("a class without a rate: %v", err)
		}
		if _, _, err := g.Begin(t.Context(), "compile", ""); err != nil {
			t.Errorf("the burst of a slow class: %v", err)
		}
		if err := limits.SetRates(t.Context(), c, map[string]limits.Rate{"compile": {}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Begin(t.Context(), "compile", ""); err != nil { // 1000 s away, were there still a rate
			t.Errorf("a class whose rate was taken away: %v", err)
		}
	})
}

// TestRateAnswersCancel shows that a wait for a token ends with its context, gives the permit and the token back, and that a
// finished task takes none.
func TestRateAnswersCancel(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		err := errors.Join(limits.Set(t.Context(), c, map[string]int{"gpu": 1}), limits.SetRates(t.Context(), c, map[string]limits.Rate{"gpu": {PerSecond: 0.001, Burst: 2}}))
		if err != nil {
			t.Fatal(err)
		}
		g := limits.NewGate(c, "w")
		runGate(t, g)
		for _, id := range []string{"one", "two"} {
			_, l, err := g.Begin(t.Context(), "gpu", id)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Finish(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := g.Begin(t.Context(), "gpu", "one"); !errors.Is(err, limits.ErrDone) {
			t.Errorf("a finished task: %v; want ErrDone at once", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopping := errors.New("stopping")
		ended := make(chan error, 1)
		go func() { // ends with the cancel; received below
			_, _, err := g.Begin(ctx, "gpu", "three")
			ended <- err
		}()
		awaitTokens(t, c, func(u limits.Usage) bool { return u.Tokens < -0.5 && u.Holders == 1 })
		cancel(stopping)
		if err := <-ended; !errors.Is(err, stopping) {
			t.Errorf("a wait whose context ended: %v; want the cause", err)
		}
		awaitTokens(t, c, func(u limits.Usage) bool { return u.Tokens > -0.5 && u.Holders == 0 })
	})
}

// awaitTokens waits until the only limited class stands as ok says.
func awaitTokens(t *testing.T, c redis.UniversalClient, ok func(limits.Usage) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var last []limits.Usage
	for range 2000 {
		var err error
		if last, err = limits.Usages(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if len(last) == 1 && ok(last[0]) {
			return
		}
		<-tick.C
	}
	t.Fatalf("the class stands at %+v", last)
}

func TestUsages(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c redis.UniversalClient) {
		err := errors.Join(limits.Set(t.Context(), c, map[string]int{"gpu": 2}), limits.SetRates(t.Context(), c, map[string]limits.Rate{"compile": {PerSecond: 0.001, Burst: 3}}))
		if err != nil {
			t.Fatal(err)
		}
		usages, err := limits.Usages(t.Context(), c)
		if err != nil || len(usages) != 2 || usages[0] != (limits.Usage{Class: "compile", Rate: 0.001, Burst: 3, Tokens: 3}) || usages[1] != (limits.Usage{Class: "gpu", Permits: 2}) {
			t.Fatalf("usages %+v %v", usages, err)
		}
		if _, _, err := limits.NewGate(c, "w").Begin(t.Context(), "compile", ""); err != nil {
			t.Fatal(err)
		}
		if usages, err = limits.Usages(t.Context(), c); err != nil || math.Abs(usages[0].Tokens-2) > 0.5 {
			t.Errorf("after one of three tokens: %+v %v", usages, err)
		}
	})
}

func TestBucketArguments(t *testing.T) {
	t.Parallel()
	for _, r := range []limits.Rate{{}, {PerSecond: -1, Burst: 1}, {PerSecond: 1}, {PerSecond: 1, Burst: 0.5}, {PerSecond: math.NaN(), Burst: 1}, {PerSecond: 1, Burst: math.Inf(1)}} {
		if _, err := limits.NewBucket(nil, "x", r); err == nil {
			t.Errorf("a bucket of %+v was made", r)
		}
		if r == (limits.Rate{}) {
			continue // takes a rate away
		}
		if err := limits.SetRates(t.Context(), nil, map[string]limits.Rate{"x": r}); err == nil {
			t.Errorf("the rate %+v was set", r)
		}
	}
	b, err := limits.NewBucket(nil, "x", limits.Rate{PerSecond: 1, Burst: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []float64{-1, 4, math.NaN()} {
		if err := b.Take(t.Context(), n); err == nil {
			t.Errorf("%g tokens were given at once", n)
		}
	}
}
