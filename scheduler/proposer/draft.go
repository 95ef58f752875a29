package proposer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

// tried is the set of sources that a draft may not repeat, safe for concurrent use.
type tried struct {
	mu  sync.Mutex
	set propose.Tried
}

func (t *tried) add(name, source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set.Add(name, source)
}

// claim adds a source unless it repeats one that is there, in one step: of two drafts alike that come at once one is the first.
func (t *tried) claim(name, source string, except []string) propose.Match {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.set.Nearest(source, except...)
	if !m.Duplicate() {
		t.set.Add(name, source)
	}
	return m
}

// making is a draft on its way.
type making struct {
	number  int64
	ask     scheduler.Ask
	known   propose.Known
	except  []string
	request *llm.Request
	round   int
	spent   llm.Spent
	took    time.Duration
	hash    string
	model   string
}

func (m *making) name() string { return fmt.Sprintf("draft-%d", m.number) }

// look writes the situation of the next draft.
func (p *Proposer) look(ctx context.Context, host Host) (*plan, error) {
	p.looking.Lock()
	defer p.looking.Unlock()
	if err := p.findings.read(ctx, p.cfg.Store, p.cfg.Campaign.ID); err != nil {
		return nil, err
	}
	var next *plan
	var perr error
	err := host.Do(ctx, func(s *decide.State, structures []*harness.Structure) {
		next, perr = p.findings.next(View{p.cfg.Campaign, s, structures})
	})
	return next, errors.Join(err, perr)
}

// number gives the next draft its number; the limit is held here too, since several drafts are begun at once.
func (p *Proposer) number() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most := p.cfg.Campaign.Settings.LLM.MaxDrafts; most > 0 && p.last >= most {
		return 0, false
	}
	p.last++
	return p.last, true
}

// Number gives a number to a draft that comes from elsewhere: an injected file.
func (p *Proposer) Number() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return p.last
}

// draft makes one draft from nothing.
func (p *Proposer) draft(ctx context.Context, host Host) error {
	if p.cfg.Library != nil {
		return p.fromLibrary(ctx, host)
	}
	next, err := p.look(ctx, host)
	if err != nil {
		return err
	}
	n, ok := p.number()
	if !ok {
		return nil
	}
	if err := p.diagnose(ctx, host, n, next); err != nil {
		p.giveBack(n)
		return err
	}
	request, dropped, err := next.situation.Author()
	if err != nil {
		return fmt.Errorf("prompt of draft %d: %w", n, err)
	}
	if len(dropped) > 0 {
		p.cfg.Log.Debug().Int64("draft", n).Strs("dropped", dropped).Msg("prompt shortened")
	}
	m := &making{number: n, ask: next.ask, except: next.excepted, request: request, known: p.known}
	m.known.Step, m.known.Parents = propose.Step(next.ask.Step), next.parents
	if err := p.converse(ctx, host, m, nil); err != nil {
		if m.round <= 1 {
			p.giveBack(n)
		}
		return err
	}
	return nil
}

// giveBack frees a number whose draft came to nothing before its first reply, if no later one was given.
func (p *Proposer) giveBack(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == n {
		p.last--
	}
}

// diagnose asks the analyst, where there is one and it is time.
func (p *Proposer) diagnose(ctx context.Context, host Host, n int64, next *plan) error {
	if !p.cfg.Models.Has(llm.Analyst) || next.situation.Exploring || next.situation.Incumbent == nil {
		return nil
	}
	var last int64
	if err := host.Do(ctx, func(s *decide.State, _ []*harness.Structure) { last = s.Drafts.Diagnosed }); err != nil {
		return err
	}
	if last > 0 && n < last+p.cfg.Campaign.Settings.LLM.AnalystEvery {
		return nil
	}
	request, _, err := next.situation.Analyst()
	if err != nil {
		return fmt.Errorf("prompt for the analyst: %w", err)
	}
	request.ID = fmt.Sprintf("draft-%d/analyst", n)
	reply, err := p.ask(ctx, host, call{draft: n, round: 0, ask: next.ask, request: request})
	var failed *llm.Error
	switch {
	case err == nil:
		next.situation.Diagnosis = strings.TrimSpace(reply.Text)
		return nil
	case errors.As(err, &failed): // the author does without
		p.cfg.Log.Debug().Err(err).Msg("no diagnosis")
		return nil
	default:
		return err
	}
}

// resume takes up a draft whose last reply is in the log and was not dealt with, or not to the end.
func (p *Proposer) resume(ctx context.Context, host Host, exchanges []*scheduler.Exchange) error {
	last := exchanges[len(exchanges)-1]
	m := &making{number: last.Draft, ask: last.Ask, request: last.Request, round: last.Round, known: p.known}
	for _, e := range exchanges {
		m.add(e.Reply)
	}
	m.hash = exchanges[0].Hash
	m.known.Step = propose.Step(last.Ask.Step)
	err := host.Do(ctx, func(s *decide.State, structures []*harness.Structure) {
		for _, n := range last.Ask.Parents {
			if n >= 1 && n <= len(structures) {
				m.known.Parents = append(m.known.Parents, propose.Parent{Name: structures[n-1].Name, Source: structures[n-1].Source})
			}
		}
		for _, st := range structures {
			if len(last.Ask.Parents) == 0 || structures[last.Ask.Parents[0]-1] != st {
				m.known.Parents = append(m.known.Parents, propose.Parent{Name: st.Name, Source: st.Source})
			}
		}
	})
	if err != nil {
		return err
	}
	if m.known.Step == propose.StepRepair && len(m.known.Parents) > 0 {
		m.except = []string{m.known.Parents[0].Name}
	}
	p.cfg.Log.Info().Int64("draft", m.number).Msg("draft taken up from the log")
	return p.converse(ctx, host, m, last.Reply)
}

func (m *making) add(r *llm.Reply) {
	total := r.Usage.Add(r.Wasted)
	m.spent = m.spent.Add(llm.Spent{Calls: int64(r.Calls), Tokens: int64(total.Total()), MicroUSD: r.CostMicroUSD})
	m.took += r.Took
	m.model = r.Model
}

// converse asks, and again with complaints, until a draft is whole or given up. reply is the last one that came before, if any.
func (p *Proposer) converse(ctx context.Context, host Host, m *making, reply *llm.Reply) error {
	for {
		if reply == nil {
			m.round++
			m.request.ID = fmt.Sprintf("draft-%d/%d", m.number, m.round)
			if m.hash == "" {
				m.hash = m.request.Hash()
			}
			var err error
			if reply, err = p.ask(ctx, host, call{draft: m.number, round: m.round, ask: m.ask, request: m.request}); err != nil {
				if m.round > 1 { // it was begun: it must end
					return errors.Join(err, p.give(ctx, host, m, &propose.Draft{}, scheduler.DraftDropped, nil, "the model gave no further reply: "+err.Error()))
				}
				return err
			}
			m.add(reply)
		}
		draft, complaints := propose.Parse(reply.Text, reply.Truncated(), m.known)
		complaints = append(complaints, p.paused(ctx, host, m, draft, complaints)...)
		if len(complaints) == 0 {
			return p.accept(ctx, host, m, draft)
		}
		if m.round > complaintRounds {
			status := scheduler.DraftDropped
			if complaints[0].Code == "rules" {
				status = scheduler.DraftRefused
			}
			if draft.Kind == propose.KindStructure {
				p.tried.add(m.name(), draft.Source)
			}
			return p.give(ctx, host, m, draft, status, complaints, complaints[0].String())
		}
		m.request = propose.Again(m.request, reply.Text, complaints)
		reply = nil
	}
}

// paused complains of a draft in a direction that was paused.
func (p *Proposer) paused(ctx context.Context, host Host, m *making, d *propose.Draft, complaints []propose.Complaint) []propose.Complaint {
	if len(complaints) > 0 || d.Direction == "" || d.Kind != propose.KindStructure {
		return nil
	}
	fails, held := 0, false
	err := host.Do(ctx, func(s *decide.State, _ []*harness.Structure) {
		if dir := s.Directions[m.direction(d)]; dir != nil {
			fails, held = dir.Consecutive, dir.Paused
		}
	})
	if err != nil || !held {
		return nil
	}
	return []propose.Complaint{{Code: "paused", Text: fmt.Sprintf("direction %s is paused after %d failures in a row: propose another", m.direction(d), fails)}}
}

// direction is the lineage that a draft belongs to: that of its parent where one structure was to be bettered, else what it says.
func (m *making) direction(d *propose.Draft) string {
	if m.ask.Direction != "" && (m.known.Step == propose.StepRefine || m.known.Step == propose.StepRepair) {
		return m.ask.Direction
	}
	if d.Direction != "" {
		return d.Direction
	}
	return m.name()
}

// accept posts a whole draft, unless it repeats what was tried.
func (p *Proposer) accept(ctx context.Context, host Host, m *making, d *propose.Draft) error {
	if d.Kind == propose.KindPoint {
		return p.acceptPoint(ctx, host, m, d)
	}
	if match := p.tried.claim(m.name(), d.Source, m.except); match.Duplicate() {
		return p.give(ctx, host, m, d, scheduler.DraftDuplicate, nil, match.String(), match)
	} else {
		return p.give(ctx, host, m, d, scheduler.DraftReady, nil, "", match)
	}
}

func (p *Proposer) acceptPoint(ctx context.Context, host Host, m *making, d *propose.Draft) error {
	var st *harness.Structure
	number := 0
	err := host.Do(ctx, func(_ *decide.State, structures []*harness.Structure) {
		for i, s := range structures {
			if s.Name == d.Of {
				st, number = s, i+1
			}
		}
	})
	if err != nil {
		return err
	}
	if st == nil {
		return p.give(ctx, host, m, d, scheduler.DraftDropped, nil, "structure "+d.Of+" is not in the search")
	}
	c, err := point(st, d.Point)
	if err != nil {
		return p.give(ctx, host, m, d, scheduler.DraftDropped, nil, err.Error())
	}
	out := p.end(m, d, scheduler.DraftPoint, nil, "")
	out.Structure, out.Point = number, c
	return host.Post(ctx, scheduler.EventDraft, out)
}

// give posts how a draft ended.
func (p *Proposer) give(ctx context.Context, host Host, m *making, d *propose.Draft, status scheduler.DraftStatus, complaints []propose.Complaint, reason string, match ...propose.Match) error {
	out := p.end(m, d, status, complaints, reason)
	for _, x := range match {
		out.Like, out.Similarity = x.Name, x.Similarity
	}
	p.cfg.Log.Info().Int64("draft", m.number).Str("status", string(status)).Str("step", m.ask.Step).Str("direction", out.Direction).Strs("repairs", out.Repairs).Int("rounds", m.round).Msg("draft")
	return host.Post(context.WithoutCancel(ctx), scheduler.EventDraft, out)
}

func (p *Proposer) end(m *making, d *propose.Draft, status scheduler.DraftStatus, complaints []propose.Complaint, reason string) *scheduler.Draft {
	out := &scheduler.Draft{Number: m.number, Name: m.name(), Ask: m.ask, Origin: "draft", Status: status, Direction: m.direction(d), Source: d.Source, Model: m.model, PromptHash: m.hash,
		Rounds: m.round, Spent: m.spent, Repairs: d.Repairs, Reason: reason, Change: d.Expectation.Change, Why: d.Expectation.Why, Expected: d.Expectation.Ratio, TookSeconds: m.took.Seconds()}
	for _, c := range complaints {
		out.Complaints = append(out.Complaints, c.String())
	}
	return out
}

// fromLibrary offers the next structure file.
func (p *Proposer) fromLibrary(ctx context.Context, host Host) error {
	file, err := p.cfg.Library.Next()
	if err != nil {
		return err
	}
	n, ok := p.number()
	if !ok {
		return nil
	}
	out := &scheduler.Draft{Number: n, Name: file.Name, Ask: scheduler.Ask{Step: string(propose.StepNew)}, Origin: "library", Status: scheduler.DraftReady, Source: file.Text}
	if complaints := p.known.CheckFunc(file.Text); len(complaints) > 0 {
		out.Status, out.Reason = scheduler.DraftDropped, complaints[0].String()
	} else if match := p.tried.claim(file.Name, file.Text, nil); match.Exact {
		out.Status, out.Reason = scheduler.DraftDuplicate, match.String()
	}
	return host.Post(ctx, scheduler.EventDraft, out)
}
