package queue

import (
	"context"
	"fmt"
	"sync"
)

// phase is one of the two kinds of work that alternate.
type phase int

const (
	compiling phase = iota + 1
	timing
)

func (p phase) other() phase {
	switch p {
	case compiling:
		return timing
	case timing:
		return compiling
	default:
		panic(fmt.Sprintf("queue: phase %d", p))
	}
}

// turns keeps compiling and timing apart: any number of one kind, never both. While the other kind waits, a phase lets at most
// batch in. A nil turns lets everybody in.
type turns struct {
	batch int

	mu      sync.Mutex
	now     phase // 0: nobody is inside
	inside  int
	let     int           // into the current phase, since the other kind began to wait
	waiting [3]int        // by phase
	changed chan struct{} // closed and remade when somebody may try again
}

func newTurns(batch int) *turns { return &turns{batch: batch, changed: make(chan struct{})} }

// enter waits for its kind's turn; leave must follow unless it returns an error.
func (t *turns) enter(ctx context.Context, p phase) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[p]++
	defer func() { t.waiting[p]-- }()
	for !t.mayLocked(p) {
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
			t.mu.Lock()
		case <-ctx.Done():
			t.mu.Lock()
			return context.Cause(ctx)
		}
	}
	if t.now != p {
		t.now, t.let = p, 0
	}
	t.inside++
	if t.waiting[p.other()] > 0 {
		t.let++
	}
	return nil
}

func (t *turns) mayLocked(p phase) bool {
	switch t.now {
	case 0:
		return true
	case p:
		return t.waiting[p.other()] == 0 || t.let < t.batch && t.inside > 0
	default:
		return t.inside == 0
	}
}

// leave ends a piece of work. The last one out opens the door for the other kind.
func (t *turns) leave(p phase) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	if t.inside == 0 && t.waiting[p.other()] == 0 {
		t.now = 0
	}
	close(t.changed)
	t.changed = make(chan struct{})
}
