package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// ErrClosed says that the store was closed.
var ErrClosed = errors.New("the store is closed")

// The group commit. A transaction stays open for at most groupTime while batches keep arriving; it never waits for one.
const (
	groupTime   = 5 * time.Millisecond
	queueLength = 64 // batches that may wait: more than one transaction's worth at the rates measured (about 30 in 5 ms)
)

// Batch is a set of rows that become durable together, or not at all.
type Batch struct {
	Campaigns  []scheduler.Campaign
	States     []StateChange
	Structures []StructureRow
	Trials     []TrialRow
	Attempts   []AttemptRow
	Outcomes   []OutcomeRow
	Records    []harness.Record // the report is stored with the outcome: Record.Report is ignored
	Events     []scheduler.Event
}

// StateChange sets where a campaign stands.
type StateChange struct {
	Campaign string
	State    scheduler.State
	Note     string // what a person should know, such as why it failed
}

// StructureRow is a structure of a campaign, numbered from 1.
type StructureRow struct {
	Campaign  string
	Number    int
	Structure *harness.Structure
}

// TrialRow is the intent of a trial: what is planned, before it is dispatched. The plan itself is in the planned event.
type TrialRow struct {
	Key       scheduler.TrialKey
	Purpose   scheduler.Purpose
	Structure int
	Candidate string
	At        time.Time
}

// AttemptRow is a new attempt of a planned trial.
type AttemptRow struct {
	Key scheduler.TrialKey
	At  time.Time
}

// recordRow is a record as its row holds it: without the report, which its outcome's row has.
type recordRow struct {
	*harness.Record
	Report *harness.Report `json:"report,omitempty"` // hides the record's own
}

// OutcomeRow is an outcome with the time when it was received.
type OutcomeRow struct {
	Outcome  *scheduler.Outcome
	Received time.Time
}

// Commit is a submitted batch on its way to the disk.
type Commit struct {
	batch *Batch
	done  chan struct{}
	err   error
}

// Wait returns once the batch is durable, or says why it is not.
func (c *Commit) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Submit queues a batch. Batches are applied in the order of the calls.
func (s *Store) Submit(b *Batch) *Commit {
	c := &Commit{batch: b, done: make(chan struct{})}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed || s.queue == nil {
		c.err = ErrClosed
		close(c.done)
		return c
	}
	s.queue <- c
	return c
}

// Apply submits a batch and waits until it is durable.
func (s *Store) Apply(ctx context.Context, b *Batch) error { return s.Submit(b).Wait(ctx) }

// committer writes batches with statements that were prepared once.
type committer struct {
	db                                                                 *sql.DB
	campaign, state, structure, trial, attempt, outcome, record, event *sql.Stmt
}

func newCommitter(ctx context.Context, db *sql.DB) (*committer, error) {
	c := &committer{db: db}
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&c.campaign, "INSERT INTO campaigns (id, created, state, spec) VALUES (?, ?, ?, ?)"},
		{&c.state, "UPDATE campaigns SET state = ?, note = ? WHERE id = ?"},
		{&c.structure, "INSERT INTO structures (campaign, number, digest, structure) VALUES (?, ?, ?, ?)"},
		{&c.trial, "INSERT INTO trials (campaign, trial, purpose, structure, candidate, attempt, attempted) VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&c.attempt, "UPDATE trials SET attempt = ?, attempted = ? WHERE campaign = ? AND trial = ?"},
		{&c.outcome, "INSERT INTO outcomes (campaign, trial, attempt, final, fault, worker, held, received, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"},
		{&c.record, "INSERT INTO records (campaign, seq, trial, attempt, record) VALUES (?, ?, ?, ?, ?)"},
		{&c.event, "INSERT INTO events (campaign, seq, kind, trial, at, data) VALUES (?, ?, ?, ?, ?, ?)"},
	} {
		stmt, err := db.PrepareContext(ctx, s.text)
		if err != nil {
			return nil, fmt.Errorf("prepare the store's writes: %w", err)
		}
		*s.to = stmt
	}
	return c, nil
}

// run commits batches until queue is closed and empty.
func (c *committer) run(queue <-chan *Commit) {
	for first := range queue {
		group, err := c.group(first, queue)
		for _, member := range group {
			member.err = err
			member.batch = nil
			close(member.done)
		}
	}
}

// group writes first and what else is waiting in one transaction.
func (c *committer) group(first *Commit, queue <-chan *Commit) ([]*Commit, error) {
	group := []*Commit{first}
	tx, err := c.db.Begin()
	if err != nil {
		return group, fmt.Errorf("begin a transaction: %w", err)
	}
	opened := time.Now()
	for next := first; next != nil; {
		if err := c.write(tx, next.batch); err != nil {
			return group, errors.Join(err, tx.Rollback())
		}
		next = nil
		if time.Since(opened) < groupTime {
			select {
			case more, ok := <-queue:
				if ok {
					next = more
					group = append(group, more)
				}
			default:
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return group, fmt.Errorf("commit: %w", err)
	}
	return group, nil
}

// write puts one batch's rows into the transaction.
func (c *committer) write(tx *sql.Tx, b *Batch) error {
	put := func(what string, stmt *sql.Stmt, args ...any) error {
		if _, err := tx.Stmt(stmt).Exec(args...); err != nil {
			return fmt.Errorf("store %s: %w", what, err)
		}
		return nil
	}
	for i := range b.Campaigns {
		spec, err := json.Marshal(&b.Campaigns[i])
		if err != nil {
			return fmt.Errorf("encode campaign %s: %w", b.Campaigns[i].ID, err)
		}
		if err := put("campaign", c.campaign, b.Campaigns[i].ID, micros(b.Campaigns[i].Created), scheduler.StateRunning, string(spec)); err != nil {
			return err
		}
	}
	for _, s := range b.States {
		if err := put("state", c.state, s.State, s.Note, s.Campaign); err != nil {
			return err
		}
	}
	for _, s := range b.Structures {
		text, err := json.Marshal(s.Structure)
		if err != nil {
			return fmt.Errorf("encode structure %s: %w", s.Structure.Name, err)
		}
		if err := put("structure", c.structure, s.Campaign, s.Number, s.Structure.Digest, string(text)); err != nil {
			return err
		}
	}
	for _, t := range b.Trials {
		if err := put("trial", c.trial, t.Key.Campaign, t.Key.Trial, string(t.Purpose), t.Structure, t.Candidate, t.Key.Attempt, micros(t.At)); err != nil {
			return err
		}
	}
	for _, a := range b.Attempts {
		if err := put("attempt", c.attempt, a.Key.Attempt, micros(a.At), a.Key.Campaign, a.Key.Trial); err != nil {
			return err
		}
	}
	return c.writeResults(b, put)
}

// writeResults puts outcomes, records and events.
func (c *committer) writeResults(b *Batch, put func(string, *sql.Stmt, ...any) error) error {
	for _, o := range b.Outcomes {
		k := o.Outcome.Key
		report, err := json.Marshal(&o.Outcome.Report)
		if err != nil {
			return fmt.Errorf("encode the report of trial %d: %w", k.Trial, err)
		}
		if err := put("outcome", c.outcome, k.Campaign, k.Trial, k.Attempt, o.Outcome.Final, o.Outcome.Report.Fault.String(), o.Outcome.Worker, o.Outcome.WorkerHeld, micros(o.Received), string(report)); err != nil {
			return err
		}
	}
	for i := range b.Records {
		r := &b.Records[i]
		text, err := json.Marshal(recordRow{Record: r})
		if err != nil {
			return fmt.Errorf("encode record %d: %w", r.Seq, err)
		}
		if err := put("record", c.record, r.Campaign, r.Seq, r.Trial, r.Attempt, string(text)); err != nil {
			return err
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		if err := put("event", c.event, e.Campaign, e.Seq, string(e.Kind), e.Trial, micros(e.Time), string(e.Data)); err != nil {
			return err
		}
	}
	return nil
}
