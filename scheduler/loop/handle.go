package loop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// handle takes one delivered outcome in. Its deliverer is answered once everything that follows from it is durable.
func (l *Loop) handle(_ context.Context, d delivery) error {
	o := d.outcome
	n := o.Key.Trial
	if o.Key.Campaign != l.campaign.ID || n < 1 || n >= l.state.NextTrial {
		d.ack <- fmt.Errorf("outcome of trial %d of %s: %w: campaign %s has planned trials 1 to %d", n, o.Key.Campaign, memory.ErrNotFound, l.campaign.ID, l.state.NextTrial-1)
		return nil
	}
	l.acks = append(l.acks, d.ack)
	planned := l.state.Flying[n]
	if planned == nil {
		return nil // the first final outcome has won
	}
	if scheduler.Final(o.Report.Fault, planned.Strikes) {
		return l.settle(n, o)
	}
	if o.Key.Attempt != l.flights[n].attempt {
		return nil // an older attempt, told before or overdue
	}
	return l.strike(n, o)
}

// strike takes in an attempt that settles nothing and plans the next one, or gives the trial up.
func (l *Loop) strike(n int64, o *scheduler.Outcome) error {
	o.Final = false
	if o.Report.Fault == harness.FaultInfra {
		l.troubles++
		l.cfg.Log.Warn().Int64("trial", n).Str("worker", o.Worker).Str("reason", o.Report.Reason).Msg("infrastructure fault")
		if l.troubles >= troublesInARow {
			return fmt.Errorf("%w %d times in a row, last on %s: %s", ErrBroken, l.troubles, o.Worker, o.Report.Reason)
		}
		if l.state.Flying[n].Troubles+1 >= maxTroubles {
			return l.settle(n, o)
		}
	}
	l.batch.Outcomes = append(l.batch.Outcomes, memory.OutcomeRow{Outcome: o, Received: l.cfg.Now()})
	err := l.emit(scheduler.EventStrike, n, &scheduler.Struck{Attempt: o.Key.Attempt, Fault: o.Report.Fault, Device: o.Device, Reason: o.Report.Reason})
	if err != nil {
		return err
	}
	return l.again(n)
}

// settle takes in the final outcome of a trial: outcome, record, events, and what follows from them.
func (l *Loop) settle(n int64, o *scheduler.Outcome) error {
	t := l.state.Flying[n].Trial
	summary, err := l.state.Summarize(l.reward, &t, o)
	if err != nil {
		// The harness contradicts itself. Nothing can be learned of the kernel, and another attempt would say the same.
		l.troubles++
		l.cfg.Log.Error().Err(err).Int64("trial", n).Str("worker", o.Worker).Msg("report refused")
		if l.troubles >= troublesInARow {
			return fmt.Errorf("%w: %d reports in a row were refused, last from %s: %w", ErrBroken, l.troubles, o.Worker, err)
		}
		o.Report.Fault, o.Report.Reason = harness.FaultInfra, err.Error()
		summary = &scheduler.Summary{Attempt: o.Key.Attempt, Fault: harness.FaultInfra, Reason: err.Error()}
	}
	if summary.Fault != harness.FaultInfra {
		l.troubles = 0
	}
	o.Final = true
	now := l.cfg.Now()
	l.batch.Outcomes = append(l.batch.Outcomes, memory.OutcomeRow{Outcome: o, Received: now})
	l.batch.Records = append(l.batch.Records, l.record(n, &t, o, summary, now))
	if err := l.emit(scheduler.EventOutcome, n, summary); err != nil {
		return err
	}
	delete(l.flights, n)
	return l.follow(n, &t, summary)
}

// follow writes what an outcome decides: the verdict of a confirmation, or of a replay that failed.
func (l *Loop) follow(n int64, t *scheduler.Trial, summary *scheduler.Summary) error {
	switch t.Purpose {
	case scheduler.PurposeConfirm:
		v := l.state.Judge(t, summary, summary.Objective)
		return l.emit(scheduler.EventVerdict, n, &v)
	case scheduler.PurposeReplay:
		if summary.Fault == harness.FaultInfra {
			return fmt.Errorf("%w: the replay could not be run: %s", ErrBroken, summary.Reason)
		}
		if !decide.ReplayHolds(summary) {
			v := decide.Dethrone(t, summary)
			return l.emit(scheduler.EventVerdict, n, &v)
		}
		return nil
	case scheduler.PurposeAA:
		if summary.Fault == harness.FaultInfra {
			return fmt.Errorf("%w: the baseline could not be measured: %s", ErrBroken, summary.Reason)
		}
		return nil
	default:
		return nil
	}
}

// record makes the row of an evaluation.
func (l *Loop) record(n int64, t *scheduler.Trial, o *scheduler.Outcome, s *scheduler.Summary, now time.Time) harness.Record {
	candidate, _ := l.evaluated(n, t) // a point that was planned has a candidate, if only for its id
	st := candidate.Structure
	r := harness.Record{Version: harness.RecordVersion, Seq: l.state.NextRecord, Campaign: l.campaign.ID, Trial: n, Attempt: o.Key.Attempt, Purpose: string(t.Purpose),
		CandidateID: t.Point.ID, Structure: st.Name, StructureSHA: st.Digest, Direction: st.Direction, KernelSHA: kernelSHA(candidate),
		Options: candidate.Options, Config: candidate.Configuration, Score: s.Score, PriorityScore: s.PriorityScore, RewardKind: l.reward.Kind(), Stored: now.UTC()}
	if s.Score != nil {
		r.ScoreStderr = math.Abs(*s.Score) * math.Sqrt(s.Variance)
	}
	return r
}

// kernelSHA is the SHA-256 of a candidate's source with its parameters' macros, as the compiler sees it.
func kernelSHA(c *harness.Candidate) string {
	sum := sha256.Sum256([]byte(strings.Join(task.Macros(c.Structure, c.Configuration), "\n") + "\n" + c.Structure.Source))
	return hex.EncodeToString(sum[:])
}

// emit puts an event into the batch and the state.
func (l *Loop) emit(kind scheduler.EventKind, trial int64, data any) error {
	e, err := scheduler.NewEvent(l.campaign.ID, kind, trial, data)
	if err != nil {
		return err
	}
	e.Seq, e.Time = l.state.NextSeq, l.cfg.Now().UTC()
	l.batch.Events = append(l.batch.Events, e)
	if err := l.absorb(context.Background(), &e, data, false); err != nil {
		return err
	}
	if l.cfg.EventFunc != nil {
		l.cfg.EventFunc(&e, data)
	}
	return nil
}

// absorb takes an event into the state and the optimizers: a new one, or one read back from the store. Both take the same
// way, so that a rebuilt campaign is the campaign it was.
func (l *Loop) absorb(ctx context.Context, e *scheduler.Event, data any, replayed bool) error {
	switch d := data.(type) {
	case *scheduler.Added:
		s, err := l.newSearch(d.Structure)
		if err != nil {
			return err
		}
		l.searches = append(l.searches, s)
	case *scheduler.Prior:
		if replayed {
			if err := l.inform(d); err != nil {
				return err
			}
		}
	case *scheduler.Trial:
		if d.Purpose == scheduler.PurposeSearch && (replayed || !d.Asked) {
			if err := l.searches[d.Point.Structure-1].resume(ctx, d); err != nil {
				return fmt.Errorf("trial %d: %w", e.Trial, err)
			}
		}
	case *scheduler.Summary:
		if f := l.state.Flying[e.Trial]; f != nil && (f.Trial.Purpose == scheduler.PurposeSearch || f.Trial.Purpose == scheduler.PurposeRemeasure) {
			if err := l.searches[f.Trial.Point.Structure-1].tell(ctx, &f.Trial, d); err != nil {
				return fmt.Errorf("trial %d: %w", e.Trial, err)
			}
		}
	}
	return l.state.Apply(e, data)
}

// flush submits the batch; its answers and jobs follow once it is durable.
func (l *Loop) flush() {
	b := l.batch
	if len(b.Campaigns)+len(b.States)+len(b.Structures)+len(b.Trials)+len(b.Attempts)+len(b.Outcomes)+len(b.Records)+len(b.Events) > 0 {
		l.pending = l.cfg.Store.Submit(b)
		l.batch = &memory.Batch{}
	} else if len(l.acks)+len(l.jobs) == 0 {
		return
	}
	if l.sender != nil {
		l.sender.push(parcel{commit: l.pending, acks: l.acks, jobs: l.jobs})
		l.acks, l.jobs = nil, nil
	}
}
