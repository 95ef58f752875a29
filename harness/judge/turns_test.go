package judge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// come starts one that wants a turn, waits until it stands in line or has its turn, and returns what tells of the turn.
func come(t *testing.T, turns *turns, ask func(context.Context) (func(), error)) <-chan func() {
	t.Helper()
	got := make(chan func(), 1) // its turn's end
	before := inLine(turns)
	go func() {
		if done, err := ask(t.Context()); err == nil {
			got <- done
		}
	}()
	for range 2000 {
		if len(got) > 0 || inLine(turns) > before {
			return got
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it neither stands in line nor has a turn")
	return nil
}

func inLine(t *turns) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.compiles) + len(t.measures)
}

func take(t *testing.T, got <-chan func()) func() {
	t.Helper()
	select {
	case done := <-got:
		return done
	case <-time.After(10 * time.Second):
		t.Fatal("its turn does not come")
		return nil
	}
}

// A compile that comes alone while measurements stand in line waits until there is one for each core; then both go before the
// next measurement.
func TestCompilesGoInBatches(t *testing.T) {
	t.Parallel()
	u := &turns{batch: 2}
	first := take(t, come(t, u, u.measure))
	second := come(t, u, u.measure)
	alone := come(t, u, u.compile)
	first()
	end := take(t, second)
	if len(alone) > 0 {
		t.Fatal("a compile goes alone before a measurement in line")
	}
	third := come(t, u, u.measure)
	other := come(t, u, u.compile)
	end()
	a, b := take(t, alone), take(t, other)
	if len(third) > 0 {
		t.Fatal("timing beside compiling")
	}
	a()
	b()
	take(t, third)()
}

// Nobody waits for ever: a lone compile goes when no measurement stands in line, and after some that do.
func TestLoneCompileGoes(t *testing.T) {
	t.Parallel()
	u := &turns{batch: 2}
	take(t, come(t, u, u.compile))()
	end := take(t, come(t, u, u.measure))
	alone := come(t, u, u.compile)
	for range patience {
		next := come(t, u, u.measure)
		end()
		end = take(t, next)
	}
	last := come(t, u, u.measure)
	end()
	take(t, alone)()
	take(t, last)()
}

// One that gives up leaves the line.
func TestGivenUpTurn(t *testing.T) {
	t.Parallel()
	u := &turns{batch: 2}
	end := take(t, come(t, u, u.measure))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := u.measure(ctx)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	end()
	take(t, come(t, u, u.compile))()
	take(t, come(t, u, u.measure))()
}

// Compiling and timing never meet, whoever comes when.
func TestTurnsNeverMeet(t *testing.T) {
	t.Parallel()
	u := &turns{batch: 2}
	var compiling, measuring atomic.Int64
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for range 300 {
				if n%2 == 0 {
					done, err := u.compile(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if c := compiling.Add(1); c > 2 || measuring.Load() > 0 {
						t.Errorf("%d compile, %d measure", c, measuring.Load())
					}
					compiling.Add(-1)
					done()
					continue
				}
				done, err := u.measure(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if m := measuring.Add(1); m > 1 || compiling.Load() > 0 {
					t.Errorf("%d measure, %d compile", m, compiling.Load())
				}
				measuring.Add(-1)
				done()
			}
		})
	}
	group.Wait()
}
