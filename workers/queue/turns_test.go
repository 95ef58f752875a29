package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestTurns shows that compiling and timing are never inside together, that both get on, and that a cancelled wait leaves no trace.
func TestTurns(t *testing.T) {
	t.Parallel()
	turns := newTurns(4)
	var inside [3]atomic.Int64
	var most atomic.Int64
	var g errgroup.Group
	for range 4 {
		for _, p := range []phase{compiling, timing} {
			g.Go(func() error {
				for range 300 {
					if err := turns.enter(t.Context(), p); err != nil {
						return err
					}
					most.Store(max(most.Load(), inside[p].Add(1)))
					if inside[p.other()].Load() != 0 {
						t.Error("a compiler ran beside a measurement")
					}
					inside[p].Add(-1)
					turns.leave(p)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := turns.enter(t.Context(), timing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopping)
	if err := turns.enter(ctx, compiling); !errors.Is(err, errStopping) {
		t.Errorf("got %v; want the cause of the cancel", err)
	}
	entered := make(chan error, 1)
	go func() { entered <- turns.enter(t.Context(), compiling) }() // received below
	waitFor(t, 5*time.Second, "waiting", func() bool { turns.mu.Lock(); defer turns.mu.Unlock(); return turns.waiting[compiling] == 1 })
	turns.leave(timing)
	if err := <-entered; err != nil {
		t.Error(err)
	}
}
