package queue

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// meter counts events over the last minute.
type meter struct {
	mu      sync.Mutex
	seconds [60]struct{ at, count int64 }
}

func (m *meter) mark(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.seconds[now.Unix()%60]
	if s.at != now.Unix() {
		s.at, s.count = now.Unix(), 0
	}
	s.count++
}

func (m *meter) perMinute(now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := int64(0)
	for _, s := range m.seconds {
		if now.Unix()-s.at < 60 {
			total += s.count
		}
	}
	return float64(total)
}

func processName(host string) string { return fmt.Sprintf("%s/%d", host, os.Getpid()) }
