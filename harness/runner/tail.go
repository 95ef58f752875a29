//go:build linux

package runner

import "sync"

// tail keeps the end of what a child prints, and calls overflow once when it prints too much.
type tail struct {
	limit    int
	overflow func()

	mu    sync.Mutex
	total int
	last  []byte
}

// tailBytes is how much of the end is kept: more than a Go runtime's last words.
const tailBytes = 16 << 10

// Write takes everything.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.total
	t.total += len(b)
	t.last = append(t.last, b[max(0, len(b)-tailBytes):]...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	if before <= t.limit && t.total > t.limit {
		go t.overflow() // takes another lock; one short call
	}
	return len(b), nil
}

// String returns the end of what was printed.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}

func (t *tail) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total > t.limit
}
