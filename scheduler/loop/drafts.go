package loop

import (
	"context"
	"errors"
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

// ErrEnded says that the loop no longer runs, so that nothing more can be told to it.
var ErrEnded = errors.New("the campaign's loop has ended")

// post is an event from outside the loop.
type post struct {
	kind scheduler.EventKind
	data any
	ack  chan error
}

// visit is a look at the state from outside.
type visit struct {
	see  func(*decide.State, []*harness.Structure)
	done chan struct{}
}

// Post puts an event into the log: an exchange, a draft, a control or a note. It returns once the event is durable.
func (l *Loop) Post(ctx context.Context, kind scheduler.EventKind, data any) error {
	switch kind {
	case scheduler.EventExchange, scheduler.EventDraft, scheduler.EventControl, scheduler.EventNote:
	default:
		return fmt.Errorf("post %s: only exchanges, drafts, controls and notes come from outside the loop", kind)
	}
	p := post{kind: kind, data: data, ack: make(chan error, 1)} // one answer: the loop never waits for a poster that has gone
	select {
	case l.posts <- p:
	case <-l.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-p.ack:
		return err
	case <-l.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do calls see inside the loop, where the state stands still. It must be quick and keep nothing of what it sees.
func (l *Loop) Do(ctx context.Context, see func(*decide.State, []*harness.Structure)) error {
	v := visit{see: see, done: make(chan struct{})}
	select {
	case l.visits <- v:
	case <-l.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	<-v.done
	return nil
}

func (l *Loop) posted(p post) error {
	l.acks = append(l.acks, p.ack)
	return l.emit(p.kind, 0, p.data)
}

// try takes a draft's structure into the search. One that does not load any more, or is there already, ends here.
func (l *Loop) try(d *scheduler.Draft) error {
	st, err := task.ParseStructure(d.Name+extension(l.campaign.Target), d.Source, l.campaign.Task, l.campaign.Target)
	if err != nil {
		return l.end(d, scheduler.DraftDropped, err.Error())
	}
	if d.Direction != "" {
		st.Direction = d.Direction // its lineage, whatever its header calls it
	}
	for _, have := range l.structures {
		if have.Digest == st.Digest {
			return l.end(d, scheduler.DraftDuplicate, "the same file as "+have.Name)
		}
	}
	if len(st.Params) > 0 {
		if _, err := SpaceOf(l.campaign.Task, st); err != nil {
			return l.end(d, scheduler.DraftDropped, err.Error())
		}
	}
	return l.add(st, d.Origin, d.Number)
}

// tryPoint plans the configuration that a draft names.
func (l *Loop) tryPoint(d decide.Decision) error {
	if d.Structure < 1 || d.Structure > len(l.structures) {
		return l.end(&d.Draft, scheduler.DraftDropped, fmt.Sprintf("structure %d is not known", d.Structure))
	}
	r, ok := l.searches[d.Structure-1].optimizer.(resumer)
	if !ok {
		return l.end(&d.Draft, scheduler.DraftDropped, "the optimizer takes no suggestions")
	}
	candidate, err := task.NewCandidate(l.campaign.Task, l.structures[d.Structure-1], d.Draft.Point)
	if err != nil {
		return l.end(&d.Draft, scheduler.DraftDropped, err.Error())
	}
	if err := r.Resume(candidate.Configuration); err != nil { // tried before, or outside the space
		return l.end(&d.Draft, scheduler.DraftDuplicate, err.Error())
	}
	t := l.searchTrial(d.Structure, candidate.Configuration, d.Why)
	t.Asked, t.Draft = true, d.Draft.Number
	return l.plan(t)
}

// end writes down that a ready draft will not be tried.
func (l *Loop) end(d *scheduler.Draft, status scheduler.DraftStatus, reason string) error {
	ended := *d
	ended.Status, ended.Reason, ended.TookSeconds = status, reason, 0
	return l.emit(scheduler.EventDraft, 0, &ended)
}

func extension(t harness.Target) string {
	if t == harness.TargetCPU {
		return ".c"
	}
	return ".cu"
}
