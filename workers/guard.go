package workers

import (
	"sync"
	"time"
)

// guardLimit bounds a guard's memory; entries that still could be replayed are kept before older ones that could not.
const guardLimit = 1 << 17

// Guard remembers which task ids this process has finished until their payloads expire, so that a payload that comes again
// is not acted on twice. It is one half of the replay defence: the done marks in Redis cover the fleet, the guard covers a
// stranger who can delete them. Its methods may be called concurrently.
type Guard struct {
	mu   sync.Mutex
	done map[string]time.Time // task id to expiry, on Redis's clock
}

// NewGuard returns an empty guard.
func NewGuard() *Guard { return &Guard{done: map[string]time.Time{}} }

// Mark remembers that the task was finished; it is forgotten after expires.
func (g *Guard) Mark(taskID string, now, expires time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.done) >= guardLimit {
		g.pruneLocked(now)
	}
	g.done[taskID] = expires
}

// Done reports whether the task was finished here.
func (g *Guard) Done(taskID string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.done[taskID]
	return ok
}

// pruneLocked drops what has expired; when nothing has, the guard is full of live entries and the soonest to expire go.
func (g *Guard) pruneLocked(now time.Time) {
	soonest := time.Time{}
	for id, at := range g.done {
		if at.Before(now) {
			delete(g.done, id)
		} else if soonest.IsZero() || at.Before(soonest) {
			soonest = at
		}
	}
	if len(g.done) < guardLimit {
		return
	}
	limit := soonest.Add(time.Minute)
	for id, at := range g.done {
		if at.Before(limit) {
			delete(g.done, id)
		}
	}
}
