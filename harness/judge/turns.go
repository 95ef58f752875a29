package judge

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// turns keeps compiling and timing apart where there are too few cores for both. Timing has the cores alone. Compiles share
// them, and go in batches: while measurements stand in line, a single compile waits for others until there is one for each
// core, since compiling one alone leaves the other cores idle and delays the measurement as long as compiling all would.
type turns struct {
	batch int // compiles at once

	mu        sync.Mutex
	compiling int
	measuring bool
	compiles  []chan struct{} // in line, in the order they came
	measures  []chan struct{}
	passed    int // measurements that have gone before the first compile in line
}

// patience is how many measurements may go before a compile that waits alone.
const patience = 4

func newTurns() *turns { return &turns{batch: runtime.NumCPU()} }

// compile waits for a turn to compile; done ends it.
func (t *turns) compile(ctx context.Context) (done func(), err error) {
	if err := t.wait(ctx, &t.compiles); err != nil {
		return nil, err
	}
	return t.end(func() { t.compiling-- }), nil
}

// measure waits for a turn to time; done ends it.
func (t *turns) measure(ctx context.Context) (done func(), err error) {
	if err := t.wait(ctx, &t.measures); err != nil {
		return nil, err
	}
	return t.end(func() { t.measuring = false }), nil
}

func (t *turns) end(give func()) func() {
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		give()
		t.next()
	}
}

func (t *turns) wait(ctx context.Context, line *[]chan struct{}) error {
	turn := make(chan struct{})
	t.mu.Lock()
	*line = append(*line, turn)
	t.next()
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(*line, turn)
	if at < 0 {
		return nil // the turn came at the same time; its owner ends it as soon as it looks at ctx
	}
	*line = slices.Delete(*line, at, at+1)
	t.next()
	return context.Cause(ctx)
}

// next gives turns to those who may go now.
func (t *turns) next() {
	if t.measuring {
		return
	}
	batch := len(t.compiles) >= t.batch || len(t.compiles) > 0 && (len(t.measures) == 0 || t.passed >= patience)
	if batch && (t.compiling == 0 || len(t.measures) == 0) {
		n := min(t.batch-t.compiling, len(t.compiles))
		for _, turn := range t.compiles[:max(n, 0)] {
			close(turn)
			t.compiling++
		}
		t.compiles, t.passed = t.compiles[max(n, 0):], 0
	}
	if t.compiling == 0 && len(t.measures) > 0 {
		close(t.measures[0])
		t.measures, t.measuring = t.measures[1:], true
		if len(t.compiles) > 0 {
			t.passed++
		}
	}
}
