package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/replay"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/reward"
)

// ErrStopped says that the campaign was laid down before its end: resume continues it.
var ErrStopped = errors.New("the campaign was stopped before its end")

// ErrBroken says that the infrastructure failed too often in a row. The campaign can be resumed once it is repaired.
var ErrBroken = errors.New("the infrastructure failed")

// Limits of patience with broken infrastructure.
const (
	maxTroubles    = 3 // infrastructure faults of one trial before it is given up
	troublesInARow = 6 // and of any trials, with no outcome between, before the campaign stops
)

// Config is what a Loop needs.
type Config struct {
	Campaign   *scheduler.Campaign
	Structures []*harness.Structure // of a new campaign; a resumed one reads its own from the store
	Store      *memory.Store
	Dispatcher scheduler.Dispatcher
	// OptimizerFunc makes the optimizer of one structure's space. The same arguments must give the same proposals.
	OptimizerFunc func(space *optimizer.Space, seed uint64) (optimizer.Optimizer, error)
	// Records are the recordings that the campaign's transfer setting names, for the structures with the same parameters.
	Records []*replay.Record
	// ShippedFunc reports whether a source with this digest comes with Ridgepoint, which the store does not say; nil: none does.
	ShippedFunc func(digest string) bool
	// Weight and Priority go into every job: fairness between campaigns.
	Weight   float64
	Priority int
	Now      func() time.Time // nil: time.Now
	Log      zerolog.Logger
	// DraftingFunc says whether structures may still come by Post, so that a searched-out space does not end the campaign. nil: none come.
	DraftingFunc func() bool
	// EventFunc is called with every new event after the state has taken it in, and ProgressFunc at most ten times a second
	// while things change. Both are called by the loop itself: they must be quick. Either may be nil.
	EventFunc    func(e *scheduler.Event, data any)
	ProgressFunc func(Progress)
}

// Loop runs one campaign.
type Loop struct {
	cfg        Config
	campaign   *scheduler.Campaign
	structures []*harness.Structure
	state      *decide.State
	reward     *reward.Reward
	searches   []*search // by structure number - 1
	family     *optimizer.Family
	flights    map[int64]*flight
	inbox      chan delivery
	posts      chan post
	visits     chan visit
	ended      chan struct{} // closed when Run has returned: Deliver then stores by itself
	sender     *sender
	opened     time.Time
	spent      float64 // wall seconds of earlier sessions
	capacity   int
	troubles   int // infrastructure faults in a row
	batch      *memory.Batch
	jobs       []*scheduler.Job // to dispatch after the batch
	acks       []chan<- error   // to answer after the batch
	pending    *memory.Commit   // the newest batch submitted
	shown      time.Time
	reconciled time.Time
}

// flight is the newest attempt of a planned trial.
type flight struct {
	attempt  int
	deadline time.Time
	missing  bool // the carrier did not know it when last asked
	// candidate is what is evaluated, made once: planning its launches costs more than all else in the loop.
	candidate *harness.Candidate
	refused   error // why the task allows no such candidate
}

type delivery struct {
	outcome *scheduler.Outcome
	ack     chan error
}

// New prepares a campaign for running. A campaign that the store does not hold is stored by Run.
func New(cfg Config) (*Loop, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Weight == 0 {
		cfg.Weight = 1
	}
	if err := cfg.Campaign.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("campaign %s: %w", cfg.Campaign.ID, err)
	}
	r, err := reward.New(cfg.Campaign.Reward)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", cfg.Campaign.Task.Name, err)
	}
	cfg.Log = cfg.Log.With().Str("campaign", cfg.Campaign.ID).Logger()
	return &Loop{cfg: cfg, campaign: cfg.Campaign, structures: cfg.Structures, state: decide.New(cfg.Campaign), reward: r, flights: map[int64]*flight{}, family: &optimizer.Family{},
		inbox: make(chan delivery), posts: make(chan post), visits: make(chan visit), ended: make(chan struct{}), capacity: 1, batch: &memory.Batch{}}, nil
}

// tickEvery is how often time itself is looked at: budgets, overdue trials, the journal.
const tickEvery = 250 * time.Millisecond

// Run works on the campaign until it is done, ctx is cancelled (ErrStopped: nothing is lost and resume continues) or the
// infrastructure fails (ErrBroken). The result is as far as the campaign came, also beside an error.
func (l *Loop) Run(ctx context.Context) (*scheduler.Result, error) {
	defer close(l.ended)
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	if l.state.Phase == scheduler.PhaseDone {
		return l.over(ctx)
	}
	l.sender = newSender(l.cfg.Dispatcher, l.cfg.Log)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // answers are still given while a stop is written down
	sent := make(chan struct{})
	go func() { // waited for below
		defer close(sent)
		l.sender.run(life, ctx)
	}()
	written := make(chan struct{})
	go func() { // waited for below
		defer close(written)
		l.journal(ctx, life)
	}()
	err := l.work(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ErrStopped // whatever was being waited for
	}
	err = errors.Join(err, l.close(context.WithoutCancel(ctx), err))
	cancel()
	<-sent
	<-written
	_, jerr := l.cfg.Store.SyncJournal(context.WithoutCancel(ctx), l.campaign.ID)
	return l.result(), errors.Join(err, jerr)
}

// journalEvery is how often records.jsonl is brought up to the store.
const journalEvery = time.Second

// journal keeps records.jsonl up to the store beside the loop: a long one that was deleted takes seconds to write again. It is
// derived, so that a failure is told and tried again, not fatal.
func (l *Loop) journal(ctx, life context.Context) {
	tick := time.NewTicker(journalEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := l.cfg.Store.SyncJournal(ctx, l.campaign.ID); err != nil && ctx.Err() == nil {
				l.cfg.Log.Warn().Err(err).Msg("records.jsonl not written, will be tried again")
			}
		case <-ctx.Done():
			return
		case <-life.Done():
			return
		}
	}
}

// over is the run of a campaign that is done already.
func (l *Loop) over(ctx context.Context) (*scheduler.Result, error) {
	err := l.cfg.Store.Apply(ctx, &memory.Batch{States: []memory.StateChange{{Campaign: l.campaign.ID, State: scheduler.StateDone}}})
	_, jerr := l.cfg.Store.SyncJournal(ctx, l.campaign.ID)
	l.opened = l.cfg.Now()
	return l.result(), errors.Join(err, jerr)
}

// work is the loop itself.
func (l *Loop) work(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	l.refreshCapacity(ctx)
	if err := l.relaunch(ctx); err != nil {
		return err
	}
	l.flush() // the workers have these while the first ask fits a model to everything that was told
	for {
		done, err := l.fill(ctx)
		if err != nil || done {
			return err
		}
		l.flush()
		select {
		case d := <-l.inbox:
			if err := l.handle(ctx, d); err != nil {
				return err
			}
		case p := <-l.posts:
			if err := l.posted(p); err != nil {
				return err
			}
		case v := <-l.visits:
			v.see(l.state, l.structures)
			close(v.done)
		case <-tick.C:
			if err := l.tick(ctx); err != nil {
				return err
			}
		case err := <-l.sender.failed:
			return err
		case <-ctx.Done():
			return ErrStopped
		}
		l.progress(false)
	}
}

// Deliver takes an outcome in: a scheduler.Deliver. It returns once the outcome is durable, or known already.
func (l *Loop) Deliver(ctx context.Context, o *scheduler.Outcome) error {
	d := delivery{outcome: o, ack: make(chan error, 1)} // one answer: the loop never waits for a sender that has gone
	select {
	case l.inbox <- d:
	case <-l.ended:
		return l.cfg.Store.SaveOutcome(ctx, o)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-d.ack:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tick looks at what time brings: overdue trials, refused jobs, the workers' capacity, the journal.
func (l *Loop) tick(ctx context.Context) error {
	l.refreshCapacity(ctx)
	l.sender.retry()
	now := l.cfg.Now()
	for _, n := range l.state.FlyingTrials() {
		if f := l.flights[n]; f != nil && now.After(f.deadline) {
			l.cfg.Log.Warn().Int64("trial", n).Int("attempt", f.attempt).Msg("overdue, submitted again")
			if err := l.again(n); err != nil {
				return err
			}
		}
	}
	if err := l.reconcile(ctx, now); err != nil {
		return err
	}
	l.progress(true)
	return nil
}

func (l *Loop) refreshCapacity(ctx context.Context) {
	n, err := l.cfg.Dispatcher.Capacity(ctx)
	if err != nil {
		l.cfg.Log.Debug().Err(err).Msg("capacity unknown, kept as it was")
		return
	}
	l.capacity = max(1, n)
}

// spentSeconds is the wall time used by all sessions.
func (l *Loop) spentSeconds() float64 {
	return l.spent + max(0, l.cfg.Now().Sub(l.opened).Seconds())
}

// close writes down how the session ended and waits until everything is durable.
func (l *Loop) close(ctx context.Context, cause error) error {
	state, note := scheduler.StateDone, ""
	switch {
	case errors.Is(cause, ErrStopped):
		state = scheduler.StateStopped
	case cause != nil:
		state, note = scheduler.StateFailed, cause.Error()
	}
	if state != scheduler.StateDone {
		l.jobs = nil // planned, but not to be started any more: resume submits them
		if err := l.emit(scheduler.EventPhase, 0, &scheduler.Phase{Phase: scheduler.PhaseStopped, Reason: string(state), SpentSeconds: l.spentSeconds()}); err != nil {
			return err
		}
	}
	l.batch.States = append(l.batch.States, memory.StateChange{Campaign: l.campaign.ID, State: state, Note: note})
	l.flush()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := l.pending.Wait(ctx)
	l.sender.finish(ctx)
	l.progress(true)
	return err
}
