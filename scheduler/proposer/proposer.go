// Package proposer brings structures to a running campaign: it asks models (or a recording, or a library of files) for drafts, checks
// them before anything is compiled, and posts what became of each to the loop. It runs beside the loop and never holds it up: drafts are
// fetched ahead, to a depth that follows how fast they are used.
//
//	wanted ──> situation ──> model ──> exchange posted ──> parse ──> complaint, twice at most ──┐
//	                          ^                              │                                   │
//	                          └──────────────────────────────┼───────────────────────────────────┘
//	                                                         └──> duplicate? ──> draft posted
//
// An exchange is durable before it is looked at, so that a killed process pays for no reply twice: drafts under way are taken up from the
// log where they stood.
package proposer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/library"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/blend"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
)

// Host is the loop that a proposer works for.
type Host interface {
	Post(ctx context.Context, kind scheduler.EventKind, data any) error
	Do(ctx context.Context, see func(*decide.State, []*harness.Structure)) error
}

// Models answers requests; llm/pool's Pool and a recording do.
type Models interface {
	llm.Client
	Has(role string) bool
	SetBudget(b llm.Budget) error
}

// Config is what a proposer needs. Exactly one of Models and Library is set.
type Config struct {
	Campaign *scheduler.Campaign
	Store    *memory.Store
	Models   Models
	Library  *library.Library
	Now      func() time.Time // nil: time.Now
	Log      zerolog.Logger
}

// Proposer is the proposer of one campaign.
type Proposer struct {
	cfg      Config
	known    propose.Known
	finished atomic.Bool
	tried    tried

	mu     sync.Mutex // guards what follows
	last   int64      // number given to the newest draft
	flying int        // drafts being made
	calls  map[string]call
	budget *llm.Budget
	said   map[string]bool // what was said and still holds

	spentOut atomic.Bool  // the budget is spent
	silent   atomic.Int64 // since when calls are out and none was answered, in Unix nanoseconds; 0 when all is well

	looking  sync.Mutex // guards findings; held while the loop is visited, so the loop must never wait for it
	findings findings
}

// call is a request under way: what its reply belongs to.
type call struct {
	draft   int64
	round   int
	ask     scheduler.Ask
	request *llm.Request
	posted  bool
}

// complaintRounds is how often a broken reply goes back to the model.
const complaintRounds = 2

// workers is how many drafts are made at once at most.
const workers = 3

// slowAfter is how long models may leave a call unanswered before people are told, and silentAfter how long before nothing more is
// expected of them.
const (
	slowAfter   = 45 * time.Second
	silentAfter = 5 * time.Minute
)

// lookEvery is how often the proposer looks whether drafts are wanted.
const lookEvery = 250 * time.Millisecond

// New returns a proposer.
func New(cfg Config) *Proposer {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Proposer{cfg: cfg, known: Known(cfg.Campaign.Task, cfg.Campaign.Target), calls: map[string]call{}, said: map[string]bool{}}
}

// Drafting says whether drafts may still come: for the loop's DraftingFunc. Models that have not answered for long count as silent, so
// that a searched-out campaign ends.
func (p *Proposer) Drafting() bool {
	if p.finished.Load() || p.spentOut.Load() {
		return false
	}
	since := p.silent.Load()
	return since == 0 || p.cfg.Now().Sub(time.Unix(0, since)) < silentAfter
}

// Run proposes until ctx ends, the loop does, or there is nothing more to propose. A model that fails never ends it.
func (p *Proposer) Run(ctx context.Context, host Host) error {
	defer p.finished.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	open, err := p.takeUp(ctx, host)
	if err != nil {
		return p.ended(err)
	}
	failed := make(chan error, workers+len(open)) // each draft reports once; nobody waits for the reading
	start := func(f func() error) {
		p.mu.Lock()
		p.flying++
		p.mu.Unlock()
		group.Go(func() {
			err := f()
			p.mu.Lock()
			p.flying--
			p.mu.Unlock()
			failed <- err
		})
	}
	for _, o := range open {
		start(func() error { return p.resume(ctx, host, o) })
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	wait := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			until, err := p.setback(ctx, host, err)
			if err != nil {
				return p.ended(err)
			}
			wait = until
		case <-tick.C:
			if err := p.slow(ctx, host); err != nil {
				return p.ended(err)
			}
		}
		if p.cfg.Now().Before(wait) {
			continue
		}
		more, err := p.wanted(ctx, host)
		if err != nil {
			return p.ended(err)
		}
		for range more {
			start(func() error { return p.draft(ctx, host) })
		}
	}
}

// ended turns the ways in which a proposer ends cleanly into nil.
func (p *Proposer) ended(err error) error {
	if errors.Is(err, llm.ErrNoMore) || errors.Is(err, loop.ErrEnded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// takeUp reads what the log says of drafts under way.
func (p *Proposer) takeUp(ctx context.Context, host Host) ([][]*scheduler.Exchange, error) {
	var open [][]*scheduler.Exchange
	err := host.Do(ctx, func(s *decide.State, structures []*harness.Structure) {
		p.last = s.Drafts.Last
		for _, exchanges := range s.Drafts.Open {
			open = append(open, append([]*scheduler.Exchange{}, exchanges...))
		}
		for _, st := range structures {
			p.tried.add(st.Name, st.Source)
		}
		for _, d := range s.Drafts.Ready {
			p.tried.add(d.Name, d.Source)
		}
		if p.cfg.Library != nil {
			p.cfg.Library.Skip(int(s.Drafts.Last))
		}
	})
	return open, err
}

// wanted says how many more drafts to begin: the prefetch less what is ready or on its way, within the limit of drafts.
func (p *Proposer) wanted(ctx context.Context, host Host) (int, error) {
	var more int
	var budget *llm.Budget
	err := host.Do(ctx, func(s *decide.State, _ []*harness.Structure) {
		budget = s.Drafts.Budget
		if s.Held || s.Stopped != "" || s.Phase != scheduler.PhaseOpened || s.AA == nil {
			return
		}
		ready := 0
		for _, d := range s.Drafts.Ready {
			if dir := s.Directions[d.Direction]; dir == nil || !dir.Paused {
				ready++
			}
		}
		more = blend.Depth(s.Drafts.UsesPerSecond(p.cfg.Now()), s.Drafts.Reply) - ready
	})
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if budget != nil && p.cfg.Models != nil && (p.budget == nil || *p.budget != *budget) {
		p.budget = budget
		if err := p.cfg.Models.SetBudget(*budget); err != nil {
			p.cfg.Log.Warn().Err(err).Msg("budget refused")
		}
		delete(p.said, "budget")
	}
	more = min(more, workers) - p.flying
	if most := p.cfg.Campaign.Settings.LLM.MaxDrafts; most > 0 {
		if left := most - p.last; left < int64(more) {
			more = int(left)
			if left <= 0 && p.flying == 0 {
				return 0, fmt.Errorf("the %d drafts of max_drafts are made: %w", most, llm.ErrNoMore)
			}
		}
	}
	return max(0, more), nil
}

// setback settles what follows from how a draft's making ended: nothing, or how long to wait before the next.
func (p *Proposer) setback(ctx context.Context, host Host, err error) (time.Time, error) {
	var failed *llm.Error
	switch {
	case err == nil:
		return time.Time{}, p.unsay(ctx, host, "unavailable", "the model answers again")
	case errors.Is(err, llm.ErrBudget):
		return p.cfg.Now().Add(time.Minute), p.say(ctx, host, "budget", "no more drafts: "+err.Error()+"; the search goes on with what it has")
	case errors.As(err, &failed):
		wait := max(failed.RetryAfter, time.Second)
		return p.cfg.Now().Add(wait), p.say(ctx, host, "unavailable", "no drafts for now: "+failed.Error()+"; the search goes on with what it has")
	default:
		return time.Time{}, err
	}
}

// slow tells people when calls have been out for long.
func (p *Proposer) slow(ctx context.Context, host Host) error {
	out := time.Duration(0)
	if since := p.silent.Load(); since != 0 {
		out = p.cfg.Now().Sub(time.Unix(0, since))
	}
	if out < slowAfter {
		return nil
	}
	return p.say(ctx, host, "unavailable", fmt.Sprintf("no drafts for now: no reply for %s; the search goes on with what it has", out.Round(time.Second)))
}

// say tells people something once, until unsay.
func (p *Proposer) say(ctx context.Context, host Host, key, text string) error {
	p.mu.Lock()
	before := p.said[key]
	p.said[key] = true
	p.mu.Unlock()
	if before {
		return nil
	}
	p.cfg.Log.Warn().Str("reason", text).Msg("models unavailable")
	return host.Post(ctx, scheduler.EventNote, &scheduler.Note{Text: text})
}

func (p *Proposer) unsay(ctx context.Context, host Host, key, text string) error {
	p.mu.Lock()
	before := p.said[key]
	delete(p.said, key)
	p.mu.Unlock()
	if !before {
		return nil
	}
	p.cfg.Log.Info().Msg("models available again")
	return host.Post(ctx, scheduler.EventNote, &scheduler.Note{Text: text})
}

// Arrived posts a reply as soon as it is whole: the pool's ArrivedFunc. It returns once the reply is durable.
func (p *Proposer) Arrived(ctx context.Context, host Host, id string, reply *llm.Reply) error {
	p.mu.Lock()
	c, ok := p.calls[id]
	c.posted = true
	p.calls[id] = c
	p.mu.Unlock()
	if !ok {
		return fmt.Errorf("reply %s belongs to no draft", id)
	}
	return host.Post(ctx, scheduler.EventExchange, scheduler.NewExchange(c.draft, c.round, c.ask, c.request, reply, nil, p.cfg.Now()))
}

// ask sends one request and sees to it that what comes of it is in the log.
func (p *Proposer) ask(ctx context.Context, host Host, c call) (*llm.Reply, error) {
	p.mu.Lock()
	p.calls[c.request.ID] = c
	p.mu.Unlock()
	p.silent.CompareAndSwap(0, p.cfg.Now().UnixNano())
	reply, err := p.cfg.Models.Complete(ctx, c.request)
	p.spentOut.Store(errors.Is(err, llm.ErrBudget))
	if err == nil || errors.Is(err, llm.ErrBudget) {
		p.silent.Store(0)
	}
	p.mu.Lock()
	posted := p.calls[c.request.ID].posted
	delete(p.calls, c.request.ID)
	p.mu.Unlock()
	if err == nil && !posted { // a recording tells nobody that it arrived
		err = host.Post(ctx, scheduler.EventExchange, scheduler.NewExchange(c.draft, c.round, c.ask, c.request, reply, nil, p.cfg.Now()))
	}
	var failed *llm.Error
	if errors.As(err, &failed) && failed.Wasted.Total() > 0 { // what it cost all the same
		bare := *c.request
		bare.Messages = nil
		if perr := host.Post(ctx, scheduler.EventExchange, scheduler.NewExchange(c.draft, c.round, c.ask, &bare, nil, failed, p.cfg.Now())); perr != nil {
			return nil, perr
		}
	}
	return reply, err
}
