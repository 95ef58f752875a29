package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/optimizer"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// ErrTask says that the task itself keeps the campaign from going on, such as a baseline that does not pass.
var ErrTask = errors.New("the task cannot be searched")

// fill plans until the state says to wait. It reports whether the campaign is done.
func (l *Loop) fill(ctx context.Context) (done bool, err error) {
	for {
		d := l.state.Next(decide.Inputs{Capacity: l.capacity, SpentSeconds: l.spentSeconds(), GainFunc: l.gain,
			MoreStructures: len(l.state.Drafts.Ready) > 0 || l.cfg.DraftingFunc != nil && l.cfg.DraftingFunc()})
		switch d.Kind {
		case decide.KindWait:
			return false, nil
		case decide.KindFinish:
			return true, l.emit(scheduler.EventPhase, 0, &scheduler.Phase{Phase: scheduler.PhaseDone, Reason: l.state.EndReason, SpentSeconds: l.spentSeconds()})
		case decide.KindFail:
			return false, fmt.Errorf("%w: %s", ErrTask, d.Reason)
		case decide.KindEnd:
			err = l.emit(scheduler.EventPhase, 0, &scheduler.Phase{Phase: scheduler.PhaseEnding, Reason: d.Reason, SpentSeconds: l.spentSeconds()})
		case decide.KindTune:
			err = l.tune(ctx, d)
		case decide.KindDefault:
			err = l.plan(l.searchTrial(d.Structure, l.structures[d.Structure-1].Default, d.Why))
		case decide.KindTry:
			err = l.try(&d.Draft)
		case decide.KindPoint:
			err = l.tryPoint(d)
		case decide.KindAA, decide.KindRemeasure, decide.KindConfirm, decide.KindReplay, decide.KindProfile:
			err = l.plan(l.contestTrial(d))
		default:
			panic(fmt.Sprintf("loop: decision %d is not known", d.Kind))
		}
		if err != nil {
			return false, err
		}
	}
}

// tune asks a structure's optimizer and plans what it says.
func (l *Loop) tune(ctx context.Context, d decide.Decision) error {
	c, err := l.searches[d.Structure-1].ask(ctx)
	if errors.Is(err, optimizer.ErrExhausted) {
		l.state.Structure(d.Structure).Exhausted = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask the optimizer of structure %s: %w", l.structures[d.Structure-1].Name, err)
	}
	t := l.searchTrial(d.Structure, c, d.Why)
	t.Asked = true
	return l.plan(t)
}

func (l *Loop) searchTrial(structure int, c optimizer.Configuration, why map[string]float64) *scheduler.Trial {
	t := &scheduler.Trial{Purpose: scheduler.PurposeSearch, Point: scheduler.Point{Structure: structure, Configuration: c}, Plan: harness.Plan{Stage: harness.StageSearch}, Why: why}
	if st := l.state.Structure(structure); !st.FirstDone && !st.FirstFlying {
		t.Plan.Stage = harness.StageFirst
	}
	if l.state.Settings.Racing {
		t.Plan.Race = l.race()
	}
	return t
}

// race is what a measurement may stop against: nil before anything is confirmed.
func (l *Loop) race() *harness.Race {
	inc := l.state.Incumbent()
	if inc == nil {
		return nil
	}
	return &harness.Race{BestUS: l.state.BestUS, IncumbentUS: inc.Verdict.Paired.RuntimeUS, BaselineUS: inc.Verdict.Paired.BaselineUS}
}

// contestTrial makes the trial of a decision that names its point.
func (l *Loop) contestTrial(d decide.Decision) *scheduler.Trial {
	baseline := scheduler.Opponent{Role: decide.RoleBaseline, Point: scheduler.Point{ID: l.state.BaselineID}}
	t := &scheduler.Trial{Point: d.Point, Why: d.Why}
	switch d.Kind {
	case decide.KindAA:
		t.Purpose, t.Point, t.Rivals = scheduler.PurposeAA, baseline.Point, []scheduler.Opponent{baseline}
		t.Plan = harness.Plan{Stage: harness.StageSearch, Rounds: l.state.Settings.Confirm.AARounds} // `check` is what verifies a baseline in depth
	case decide.KindRemeasure:
		t.Purpose, t.Plan = scheduler.PurposeRemeasure, harness.Plan{Stage: harness.StageSearch}
	case decide.KindProfile:
		t.Purpose, t.Plan = scheduler.PurposeProfile, harness.Plan{Stage: harness.StageSearch, Profile: true}
	case decide.KindConfirm:
		t.Purpose, t.Rivals = scheduler.PurposeConfirm, []scheduler.Opponent{baseline}
		t.Plan, t.Confirmation = harness.Plan{Stage: harness.StageConfirm, Rounds: d.Size.Rounds}, l.state.Confirmed+1
		if inc := l.state.Incumbent(); inc != nil {
			t.Rivals = append(t.Rivals, scheduler.Opponent{Role: decide.RoleIncumbent, Point: inc.Point})
		}
		t.Why["detectable"], t.Why["alpha"] = d.Size.Detectable, d.Size.Alpha
	default:
		t.Purpose, t.Rivals = scheduler.PurposeReplay, []scheduler.Opponent{baseline}
		t.Plan = harness.Plan{Stage: harness.StageReplay, Rounds: d.Size.Rounds, FreshCache: true}
	}
	return t
}

// plan writes a trial down and queues its job. A configuration that is no candidate of the task (its launch cannot be planned
// at some size) is settled at once.
func (l *Loop) plan(t *scheduler.Trial) error {
	n := l.state.NextTrial
	t.Plan.Seed = mix(l.campaign.Seed, uint64(n))
	candidate, refused := l.candidate(t.Point)
	if candidate != nil {
		t.Point.ID = candidate.ID()
		if t.Point.Structure > 0 {
			t.Point.Configuration = candidate.Configuration
		}
	}
	key := scheduler.TrialKey{Campaign: l.campaign.ID, Trial: n, Attempt: 1}
	now := l.cfg.Now()
	l.batch.Trials = append(l.batch.Trials, memory.TrialRow{Key: key, Purpose: t.Purpose, Structure: t.Point.Structure, Candidate: t.Point.ID, At: now})
	if err := l.emit(scheduler.EventPlanned, n, t); err != nil {
		return err
	}
	l.flights[n] = &flight{attempt: 1, deadline: now.Add(l.patience(t)), candidate: candidate, refused: refused}
	if refused != nil {
		return l.settle(n, &scheduler.Outcome{Key: key, Final: true, Worker: "scheduler", Report: harness.Report{Version: harness.ReportVersion, CandidateID: t.Point.ID,
			Task: l.campaign.Task.Name, TaskDigest: l.campaign.Task.Digest, Target: l.campaign.Target, Fault: harness.FaultLaunch, Stage: t.Plan.Stage,
			Reason: refused.Error(), Seed: t.Plan.Seed, Started: now, Finished: now}})
	}
	job, err := l.job(n, t, key)
	if err != nil {
		return err
	}
	l.jobs = append(l.jobs, job)
	return nil
}

// candidate builds the candidate of a point. When the task allows none, it returns the reason and, so that the trial has an
// id, the candidate without build options.
func (l *Loop) candidate(p scheduler.Point) (*harness.Candidate, error) {
	if p.Structure == 0 {
		return l.campaign.Baseline, nil
	}
	st := l.structures[p.Structure-1]
	c, err := task.NewCandidate(l.campaign.Task, st, p.Configuration)
	if err != nil {
		return &harness.Candidate{Structure: st, Configuration: p.Configuration, Target: st.Target}, err
	}
	return c, nil
}

// evaluated returns the candidate of a planned trial.
func (l *Loop) evaluated(n int64, t *scheduler.Trial) (*harness.Candidate, error) {
	f := l.flights[n]
	if f.candidate == nil {
		f.candidate, f.refused = l.candidate(t.Point)
	}
	return f.candidate, f.refused
}

// job makes the self-contained job of an attempt.
func (l *Loop) job(n int64, t *scheduler.Trial, key scheduler.TrialKey) (*scheduler.Job, error) {
	candidate, err := l.evaluated(n, t)
	if err != nil {
		return nil, fmt.Errorf("trial %d: %w", n, err)
	}
	req := harness.Request{Task: l.campaign.Task, Candidate: candidate, Plan: t.Plan}
	for _, o := range t.Rivals {
		rival, err := l.candidate(o.Point)
		if err != nil {
			return nil, fmt.Errorf("trial %d, %s: %w", n, o.Role, err)
		}
		req.Rivals = append(req.Rivals, harness.Rival{Role: o.Role, Candidate: rival})
	}
	planned := l.state.Flying[n]
	return &scheduler.Job{Key: key, Scheduler: l.cfg.Store.SchedulerID(), Purpose: t.Purpose, Request: req, Deadline: l.flights[n].deadline,
		Strikes: planned.Strikes, Avoid: planned.Avoid, Weight: l.cfg.Weight, Priority: l.cfg.Priority}, nil
}

// patience is how long an attempt may be away: ten times longer where paired rounds are measured.
func (l *Loop) patience(t *scheduler.Trial) time.Duration {
	s := l.state.Settings.OverdueSeconds
	if t.Plan.Rounds > 0 {
		s *= 10
	}
	return time.Duration(math.Min(s, 1e6) * float64(time.Second))
}

// again submits a planned trial under a new attempt number.
func (l *Loop) again(n int64) error {
	f, planned := l.flights[n], l.state.Flying[n]
	now := l.cfg.Now()
	f.attempt++
	f.deadline, f.missing = now.Add(l.patience(&planned.Trial)), false
	key := scheduler.TrialKey{Campaign: l.campaign.ID, Trial: n, Attempt: f.attempt}
	l.batch.Attempts = append(l.batch.Attempts, memory.AttemptRow{Key: key, At: now})
	job, err := l.job(n, &planned.Trial, key)
	if err != nil {
		return err
	}
	l.jobs = append(l.jobs, job)
	return nil
}

// mix derives the seed of sequence number n from the campaign's (splitmix64).
func mix(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
