package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	return l.emit(scheduler.EventStructure, 0, &scheduler.Added{Structure: number, Name: st.Name, Digest: st.Digest, Direction: st.Direction, Origin: origin, Draft: draft})
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
	return l.cfg.Store.Events(ctx, l.campaign.ID, 0, func(e *scheduler.Event) error {
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		return l.absorb(ctx, e, data, true)
	})
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
