package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// ErrNotFound says that the store has no such campaign, trial or record.
var ErrNotFound = errors.New("not found")

// CampaignRow is a campaign with where it stands.
type CampaignRow struct {
	Campaign scheduler.Campaign
	State    scheduler.State
	Note     string
}

// Campaigns returns all campaigns, oldest first.
func (s *Store) Campaigns(ctx context.Context) ([]CampaignRow, error) {
	return s.campaigns(ctx, "SELECT spec, state, note FROM campaigns ORDER BY created, id")
}

// Campaign returns one campaign by id, by an unambiguous beginning of it, or the newest by "last".
func (s *Store) Campaign(ctx context.Context, id string) (*CampaignRow, error) {
	if id == "last" {
		rows, err := s.campaigns(ctx, "SELECT spec, state, note FROM campaigns ORDER BY created DESC, id DESC LIMIT 1")
		if err == nil && len(rows) == 0 {
			err = fmt.Errorf("campaign last: %w: the store holds none; start one with `ridgepoint run`", ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		return &rows[0], nil
	}
	rows, err := s.campaigns(ctx, "SELECT spec, state, note FROM campaigns WHERE id >= ? AND id < ? ORDER BY id LIMIT 3", id, id+"\U0010FFFF")
	if err != nil {
		return nil, err
	}
	switch {
	case len(rows) == 0:
		return nil, fmt.Errorf("campaign %q: %w: `ridgepoint ls` lists them", id, ErrNotFound)
	case len(rows) > 1 && rows[0].Campaign.ID != id:
		return nil, fmt.Errorf("campaign %q: more than one begins so (%s, %s): write more of the id", id, rows[0].Campaign.ID, rows[1].Campaign.ID)
	default:
		return &rows[0], nil
	}
}

func (s *Store) campaigns(ctx context.Context, query string, args ...any) ([]CampaignRow, error) {
	var out []CampaignRow
	err := s.each(ctx, "campaigns", query, args, func(rows *sql.Rows) error {
		var spec string
		var row CampaignRow
		if err := rows.Scan(&spec, &row.State, &row.Note); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(spec), &row.Campaign); err != nil {
			return err
		}
		if row.Campaign.Version != scheduler.CampaignVersion {
			return fmt.Errorf("campaign %s has version %d, this binary knows %d: use the ridgepoint that made it", row.Campaign.ID, row.Campaign.Version, scheduler.CampaignVersion)
		}
		out = append(out, row)
		return nil
	})
	return out, err
}

// Structures returns a campaign's structures in the order of their numbers, from 1.
func (s *Store) Structures(ctx context.Context, campaign string) ([]*harness.Structure, error) {
	var out []*harness.Structure
	err := s.each(ctx, "structures", "SELECT structure FROM structures WHERE campaign = ? ORDER BY number", []any{campaign}, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		st := &harness.Structure{}
		if err := json.Unmarshal([]byte(text), st); err != nil {
			return err
		}
		out = append(out, st)
		return nil
	})
	return out, err
}

// Events calls yield with each event of a campaign after sequence number after, in order, until it returns an error. The
// event's Data is only valid during the call.
func (s *Store) Events(ctx context.Context, campaign string, after int64, yield func(*scheduler.Event) error) error {
	e := scheduler.Event{Campaign: campaign}
	var kind, data sql.RawBytes
	var at int64
	return s.each(ctx, "events", "SELECT seq, kind, trial, at, data FROM events WHERE campaign = ? AND seq > ? ORDER BY seq", []any{campaign, after}, func(rows *sql.Rows) error {
		if err := rows.Scan(&e.Seq, &kind, &e.Trial, &at, &data); err != nil {
			return err
		}
		e.Kind, e.Time, e.Data = scheduler.EventKind(kind), fromMicros(at), json.RawMessage(data)
		return yield(&e)
	})
}

// Attempt returns the newest attempt of a trial and when it was submitted.
func (s *Store) Attempt(ctx context.Context, campaign string, trial int64) (attempt int, at time.Time, err error) {
	var n int64
	err = s.db.QueryRowContext(ctx, "SELECT attempt, attempted FROM trials WHERE campaign = ? AND trial = ?", campaign, trial).Scan(&attempt, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, fmt.Errorf("trial %d of %s: %w", trial, campaign, ErrNotFound)
	}
	return attempt, fromMicros(n), err
}

// Outcomes returns the stored outcomes of a trial, in the order of their attempts.
func (s *Store) Outcomes(ctx context.Context, campaign string, trial int64) ([]scheduler.Outcome, error) {
	var out []scheduler.Outcome
	err := s.each(ctx, "outcomes", "SELECT attempt, final, worker, held, report FROM outcomes WHERE campaign = ? AND trial = ? ORDER BY attempt", []any{campaign, trial}, func(rows *sql.Rows) error {
		o := scheduler.Outcome{Key: scheduler.TrialKey{Campaign: campaign, Trial: trial}}
		var report string
		if err := rows.Scan(&o.Key.Attempt, &o.Final, &o.Worker, &o.WorkerHeld, &report); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(report), &o.Report); err != nil {
			return err
		}
		out = append(out, o)
		return nil
	})
	return out, err
}

// SaveOutcome makes an outcome durable without anyone deciding on it: for a campaign that no loop works on now. Its loop
// finds it when it resumes. An outcome that is known already is no error.
func (s *Store) SaveOutcome(ctx context.Context, o *scheduler.Outcome) error {
	if _, _, err := s.Attempt(ctx, o.Key.Campaign, o.Key.Trial); err != nil {
		return err
	}
	return s.Apply(ctx, &Batch{Outcomes: []OutcomeRow{{Outcome: o, Received: time.Now()}}})
}

// Records calls yield with each record of a campaign after sequence number after, in order, until it returns an error.
func (s *Store) Records(ctx context.Context, campaign string, after int64, yield func(*harness.Record) error) error {
	return s.each(ctx, "records", `SELECT r.record, o.report FROM records r JOIN outcomes o
		ON o.campaign = r.campaign AND o.trial = r.trial AND o.attempt = r.attempt
		WHERE r.campaign = ? AND r.seq > ? ORDER BY r.seq`, []any{campaign, after}, func(rows *sql.Rows) error {
		r := &harness.Record{}
		if err := scanRecord(rows, r); err != nil {
			return err
		}
		return yield(r)
	})
}

// Record returns one record by "CAMPAIGN:SEQ" or by the beginning of a candidate id of at least six characters (the newest
// record of that candidate).
func (s *Store) Record(ctx context.Context, name string) (*harness.Record, error) {
	if id, seq, ok := strings.Cut(name, ":"); ok {
		row, err := s.Campaign(ctx, id)
		if err != nil {
			return nil, err
		}
		return s.record(ctx, name, "r.campaign = ? AND r.seq = CAST(? AS INTEGER)", row.Campaign.ID, seq)
	}
	if len(name) < 6 {
		return nil, fmt.Errorf("record %q: want CAMPAIGN:SEQ, such as last:12, or at least six characters of a candidate's id", name)
	}
	return s.record(ctx, name, "(r.campaign, r.trial) IN (SELECT campaign, trial FROM trials WHERE candidate >= ? AND candidate < ?)", name, name+"g")
}

func (s *Store) record(ctx context.Context, name, where string, args ...any) (*harness.Record, error) {
	var found *harness.Record
	err := s.each(ctx, "records", `SELECT r.record, o.report FROM records r JOIN outcomes o
		ON o.campaign = r.campaign AND o.trial = r.trial AND o.attempt = r.attempt
		WHERE `+where+` ORDER BY o.received DESC LIMIT 1`, args, func(rows *sql.Rows) error {
		found = &harness.Record{}
		return scanRecord(rows, found)
	})
	if err == nil && found == nil {
		err = fmt.Errorf("record %q: %w: records.jsonl of the campaign lists them", name, ErrNotFound)
	}
	return found, err
}

func scanRecord(rows *sql.Rows, r *harness.Record) error {
	var record, report sql.RawBytes
	if err := rows.Scan(&record, &report); err != nil {
		return err
	}
	row := recordRow{Record: r}
	if err := json.Unmarshal(record, &row); err != nil {
		return err
	}
	if r.Version != harness.RecordVersion {
		return fmt.Errorf("record %d has version %d, this binary knows %d: use the ridgepoint that made it", r.Seq, r.Version, harness.RecordVersion)
	}
	return json.Unmarshal(report, &r.Report)
}

// each runs a query and calls scan for every row.
func (s *Store) each(ctx context.Context, what, query string, args []any, scan func(*sql.Rows) error) (err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}
