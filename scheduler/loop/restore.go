package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// open stores a new campaign, or rebuilds the state of a stored one from its log, and begins a session.
func (l *Loop) open(ctx context.Context) error {
	l.opened = l.cfg.Now()
	_, err := l.cfg.Store.Campaign(ctx, l.campaign.ID)
	switch {
	case errors.Is(err, memory.ErrNotFound):
		if err := l.begin(); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := l.restore(ctx); err != nil {
			return fmt.Errorf("resume campaign %s: %w", l.campaign.ID, err)
		}
	}
	l.spent = l.state.SpentSeconds()
	if l.state.Phase == scheduler.PhaseDone {
		return nil // killed between its last event and its end
	}
	if err := l.emit(scheduler.EventPhase, 0, &scheduler.Phase{Phase: scheduler.PhaseOpened, Reason: "by scheduler " + l.cfg.Store.SchedulerID(), SpentSeconds: l.spent}); err != nil {
		return err
	}
	l.batch.States = append(l.batch.States, memory.StateChange{Campaign: l.campaign.ID, State: scheduler.StateRunning})
	l.flush()
	return l.pending.Wait(context.WithoutCancel(ctx)) // a stop is noticed by the loop, which writes it down
}

// begin stores a new campaign with its structures.
func (l *Loop) begin() error {
	l.batch.Campaigns = append(l.batch.Campaigns, *l.campaign)
	given := l.structures
	l.structures = nil
	for _, st := range given {
		if err := l.add(st, "library", 0); err != nil {
			return err
		}
	}
	if len(l.structures) == 0 && !l.campaign.Settings.LLM.Active() {
		return fmt.Errorf("task %s has no structures for %s: name some under `structures:` in the task file", l.campaign.Task.Name, l.campaign.Target)
	}
	return nil
}

// add joins a structure to the search; one whose source is there already is passed over. draft is the number of the draft that it was,
// or 0.
func (l *Loop) add(st *harness.Structure, origin string, draft int64) error {
	for _, have := range l.structures {
		if have.Digest == st.Digest {
			return nil
		}
	}
	number := len(l.structures) + 1
	l.structures = append(l.structures, st)
	l.batch.Structures = append(l.batch.Structures, memory.StructureRow{Campaign: l.campaign.ID, Number: number, Structure: st})
	if err := l.emit(scheduler.EventStructure, 0, &scheduler.Added{Structure: number, Name: st.Name, Digest: st.Digest, Direction: st.Direction, Origin: origin, Draft: draft}); err != nil {
		return err
	}
	return l.offer(number)
}

// restore folds over the stored log.
func (l *Loop) restore(ctx context.Context) error {
	var err error
	if l.structures, err = l.cfg.Store.Structures(ctx, l.campaign.ID); err != nil {
		return err
	}
	if shipped := l.cfg.ShippedFunc; shipped != nil {
		for _, st := range append([]*harness.Structure{l.campaign.Baseline.Structure}, l.structures...) {
			st.Shipped = shipped(st.Digest)
		}
	}
	return l.replay(ctx)
}

// chunk is a run of consecutive events: decoded by one of several goroutines, applied in order by the loop's own.
type chunk struct {
	events []scheduler.Event
	data   []any
	err    error
	done   chan struct{} // closed when decoded
}

// Decoding JSON is most of what a resume costs (three quarters of 2.3 s of processor time for 100 000 records), so it is spread
// over all processors, a chunk at a time.
const (
	chunkEvents = 1024
	chunksAhead = 16 // read but not yet applied: 16 MB at most
)

// replay applies the stored log.
func (l *Loop) replay(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	order, work := make(chan *chunk, chunksAhead), make(chan *chunk, chunksAhead)
	group.Go(func() error {
		defer close(order)
		defer close(work)
		return l.readChunks(ctx, order, work)
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for c := range work {
				c.decode()
			}
			return nil
		})
	}
	group.Go(func() error {
		for c := range order {
			<-c.done
			if c.err != nil {
				return c.err
			}
			for i := range c.events {
				if err := l.absorb(ctx, &c.events[i], c.data[i], true); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}

// readChunks reads the log and hands every chunk to both channels.
func (l *Loop) readChunks(ctx context.Context, order, work chan<- *chunk) error {
	next := &chunk{done: make(chan struct{})}
	send := func() error {
		for _, to := range []chan<- *chunk{work, order} {
			select {
			case to <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		next = &chunk{done: make(chan struct{})}
		return nil
	}
	err := l.cfg.Store.Events(ctx, l.campaign.ID, 0, func(e *scheduler.Event) error {
		own := *e
		own.Data = append([]byte(nil), e.Data...)
		next.events = append(next.events, own)
		if len(next.events) < chunkEvents {
			return nil
		}
		return send()
	})
	if err != nil || len(next.events) == 0 {
		return err
	}
	return send()
}

func (c *chunk) decode() {
	defer close(c.done)
	c.data = make([]any, len(c.events))
	for i := range c.events {
		if c.data[i], c.err = decide.Decode(&c.events[i]); c.err != nil {
			return
		}
		c.events[i].Data = nil
	}
}

// submitted is a trial that was planned and has no outcome, with its newest attempt.
type submitted struct {
	trial   int64
	attempt int
	at      time.Time
}

// relaunch takes up the trials that were planned and have no outcome, in the order in which they had been submitted: an
// outcome that came while nobody ran the campaign is taken in, everything else is submitted under a new attempt.
func (l *Loop) relaunch(ctx context.Context) error {
	var open []submitted
	for _, n := range l.state.FlyingTrials() {
		if l.flights[n] != nil {
			continue
		}
		attempt, at, err := l.cfg.Store.Attempt(ctx, l.campaign.ID, n)
		if err != nil {
			return err
		}
		open = append(open, submitted{trial: n, attempt: attempt, at: at})
	}
	slices.SortStableFunc(open, func(a, b submitted) int { return a.at.Compare(b.at) })
	for _, o := range open {
		l.flights[o.trial] = &flight{attempt: o.attempt}
	}
	for _, o := range open {
		stored, err := l.cfg.Store.Outcomes(ctx, l.campaign.ID, o.trial)
		if err != nil {
			return err
		}
		if k := len(stored); k > 0 && stored[k-1].Final {
			err = l.settle(o.trial, &stored[k-1])
		} else {
			err = l.again(o.trial)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
