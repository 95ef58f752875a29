package loop

import (
	"context"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// sender does, in order, what may only happen once a batch is durable: it answers deliverers and dispatches jobs.
type sender struct {
	dispatcher scheduler.Dispatcher
	log        zerolog.Logger
	wake       chan struct{} // holds one: something is queued
	failed     chan error    // holds one: a commit failed, nothing more is sent

	mu      sync.Mutex // guards queue, refused and busy
	queue   []parcel
	refused []*scheduler.Job // not accepted by the dispatcher; sent again at the next tick
	busy    bool
	idle    chan struct{} // closed and remade when the queue runs empty
}

// parcel is what follows from one batch.
type parcel struct {
	commit *memory.Commit
	acks   []chan<- error
	jobs   []*scheduler.Job
}

func newSender(d scheduler.Dispatcher, log zerolog.Logger) *sender {
	return &sender{dispatcher: d, log: log, wake: make(chan struct{}, 1), failed: make(chan error, 1), idle: make(chan struct{})}
}

func (s *sender) push(p parcel) {
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	s.signal()
}

func (s *sender) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// retry queues the jobs that the dispatcher refused.
func (s *sender) retry() {
	s.mu.Lock()
	if len(s.refused) > 0 {
		s.queue = append(s.queue, parcel{jobs: s.refused})
		s.refused = nil
	}
	s.mu.Unlock()
	s.signal()
}

// run sends until life ends; jobs are dispatched until stop does.
func (s *sender) run(life, stop context.Context) {
	for {
		p, ok := s.next()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-life.Done():
				return
			}
		}
		s.send(life, stop, p)
	}
}

func (s *sender) next() (parcel, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		if s.busy {
			s.busy = false
			close(s.idle)
			s.idle = make(chan struct{})
		}
		return parcel{}, false
	}
	p := s.queue[0]
	s.queue = s.queue[1:]
	s.busy = true
	return p, true
}

// finish waits until everything queued has been sent.
func (s *sender) finish(ctx context.Context) {
	for {
		s.mu.Lock()
		empty, idle := len(s.queue) == 0 && !s.busy, s.idle
		s.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

func (s *sender) send(life, stop context.Context, p parcel) {
	var err error
	if p.commit != nil {
		err = p.commit.Wait(life)
	}
	for _, ack := range p.acks {
		ack <- err
	}
	if err != nil {
		select {
		case s.failed <- fmt.Errorf("store the campaign: %w", err):
		default: // the first failure is the one that counts
		}
		return
	}
	for _, job := range p.jobs {
		if stop.Err() != nil {
			return
		}
		if err := s.dispatcher.Dispatch(stop, job); err != nil {
			s.log.Warn().Err(err).Int64("trial", job.Key.Trial).Msg("job not accepted, will be sent again")
			s.mu.Lock()
			s.refused = append(s.refused, job)
			s.mu.Unlock()
		}
	}
}
