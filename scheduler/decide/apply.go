package decide

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
)

// pauseAfter is how many drafts of one direction in a row may end in rules, compile or crash: one more pauses it.
const pauseAfter = 3

// sessionClock adds up the wall time of the processes that worked on the campaign; one that was killed counts until its
// last event.
type sessionClock struct {
	before       float64 // seconds of the sessions before the present one
	opened, last time.Time
}

// SpentSeconds returns the wall time used until the last event.
func (s *State) SpentSeconds() float64 {
	if s.clock.opened.IsZero() {
		return s.clock.before
	}
	return s.clock.before + max(0, s.clock.last.Sub(s.clock.opened).Seconds())
}

// Decode returns an event's data: a pointer to the type that its kind names.
func Decode(e *scheduler.Event) (any, error) {
	var data any
	switch e.Kind {
	case scheduler.EventStructure:
		data = &scheduler.Added{}
	case scheduler.EventPlanned:
		data = &scheduler.Trial{}
	case scheduler.EventStrike:
		data = &scheduler.Struck{}
	case scheduler.EventOutcome:
		data = &scheduler.Summary{}
	case scheduler.EventVerdict:
		data = &scheduler.Verdict{}
	case scheduler.EventPhase:
		data = &scheduler.Phase{}
	case scheduler.EventNote:
		data = &scheduler.Note{}
	case scheduler.EventExchange:
		data = &scheduler.Exchange{}
	case scheduler.EventDraft:
		data = &scheduler.Draft{}
	case scheduler.EventControl:
		data = &scheduler.Control{}
	case scheduler.EventPrior:
		data = &scheduler.Prior{}
	default:
		return nil, fmt.Errorf("event %d has kind %q, which this binary does not know: use the ridgepoint that wrote it", e.Seq, e.Kind)
	}
	if err := json.Unmarshal(e.Data, data); err != nil {
		return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return data, nil
}

// Apply takes in one event whose data has been decoded (or was never encoded: the loop applies what it is about to store).
func (s *State) Apply(e *scheduler.Event, data any) error {
	if e.Seq != s.NextSeq {
		return fmt.Errorf("event %d of %s follows event %d: the log has a gap; restore a copy of the store", e.Seq, e.Campaign, s.NextSeq-1)
	}
	s.NextSeq++
	s.clock.last = e.Time
	switch d := data.(type) {
	case *scheduler.Added:
		s.Structures = append(s.Structures, Structure{Number: d.Structure, Name: d.Name, Digest: d.Digest, Direction: d.Direction, Origin: d.Origin, Draft: d.Draft})
		s.direction(d.Direction)
		s.Drafts.taken(d, s.bestObjective(), e.Time)
	case *scheduler.Trial:
		s.planned(e.Trial, d)
	case *scheduler.Struck:
		return s.struck(e.Trial, d)
	case *scheduler.Summary:
		return s.finished(e.Trial, d)
	case *scheduler.Verdict:
		s.judged(e.Trial, d)
	case *scheduler.Phase:
		s.phase(e.Time, d)
	case *scheduler.Exchange:
		s.Drafts.exchanged(d)
	case *scheduler.Draft:
		s.Drafts.drafted(d)
	case *scheduler.Control:
		s.control(d)
	case *scheduler.Note, *scheduler.Prior: // the loop hands a prior to the optimizer
	default:
		return fmt.Errorf("event %d of %s holds a %T, which the state does not know", e.Seq, e.Campaign, data)
	}
	return nil
}

func (s *State) phase(at time.Time, p *scheduler.Phase) {
	switch p.Phase {
	case scheduler.PhaseOpened:
		s.clock = sessionClock{before: p.SpentSeconds, opened: at, last: at}
		s.Fatal = ""
		if s.Phase == "" {
			s.Phase = scheduler.PhaseOpened
		}
	case scheduler.PhaseEnding, scheduler.PhaseDone:
		s.Phase, s.EndReason = p.Phase, p.Reason
	default: // stopped: the clock has the time already
	}
}

func (s *State) planned(n int64, t *scheduler.Trial) {
	s.Flying[n] = &Flight{Trial: *t}
	s.NextTrial = n + 1
	st := s.Structure(t.Point.Structure)
	switch t.Purpose {
	case scheduler.PurposeSearch:
		if st == nil {
			return
		}
		st.Asked++
		if !t.Asked {
			st.DefaultPlanned = true
		}
		if t.Draft > 0 {
			s.Drafts.remove(t.Draft)
		}
		if t.Plan.Stage == harness.StageFirst {
			st.FirstFlying = true
		}
	case scheduler.PurposeConfirm:
		s.Confirmed = t.Confirmation
		if s.Phase == scheduler.PhaseEnding {
			s.FinalTried = true
		}
		s.mark(t.Point.ID, true)
	case scheduler.PurposeRemeasure:
		s.mark(t.Point.ID, true)
	case scheduler.PurposeProfile:
		s.Profiled, s.ProfiledAt = t.Point.ID, s.Counts.Evaluated
	default:
	}
}

func (s *State) mark(id string, flying bool) {
	for i := range s.Contenders {
		if s.Contenders[i].Point.ID == id {
			s.Contenders[i].Flying = flying
		}
	}
}

func (s *State) struck(n int64, d *scheduler.Struck) error {
	f := s.Flying[n]
	if f == nil {
		return fmt.Errorf("trial %d was struck without being planned: the log is damaged; restore a copy of the store", n)
	}
	if d.Fault == harness.FaultInfra {
		f.Troubles++
	} else {
		f.Strikes++
		if d.Device != "" {
			f.Avoid = append(f.Avoid, d.Device)
		}
	}
	return nil
}

// finished takes in the final outcome of a trial.
func (s *State) finished(n int64, o *scheduler.Summary) error {
	f := s.Flying[n]
	if f == nil {
		return fmt.Errorf("trial %d ended without being planned: the log is damaged; restore a copy of the store", n)
	}
	delete(s.Flying, n)
	s.NextRecord++
	s.Time.Device += o.DeviceSeconds
	s.Time.Held += o.HeldSeconds
	switch f.Trial.Purpose {
	case scheduler.PurposeAA, scheduler.PurposeBaseline:
		s.baselineDone(o)
	case scheduler.PurposeSearch:
		s.searchDone(n, f, o)
	case scheduler.PurposeRemeasure:
		s.Time.Remeasure += o.DeviceSeconds
		s.remeasured(f.Trial.Point.ID, o)
	case scheduler.PurposeConfirm:
		s.Time.Confirm += o.TookSeconds
		s.Time.LastConfirm = o.TookSeconds
		s.mark(f.Trial.Point.ID, false)
	case scheduler.PurposeReplay:
		if o.Contest != nil && o.Fault.Measured() {
			s.Replayed = o
		}
	case scheduler.PurposeProfile: // its digest is in the record; its time is no measurement of a contest
	default:
		return fmt.Errorf("trial %d has purpose %q, which this binary does not know: use the ridgepoint that planned it", n, f.Trial.Purpose)
	}
	return nil
}

func (s *State) baselineDone(o *scheduler.Summary) {
	if o.Contest == nil {
		s.Fatal = fmt.Sprintf("the baseline ended in %s: %s. Run `ridgepoint check` on the task, or `ridgepoint eval` on its baseline", o.Fault, o.Reason)
		return
	}
	s.AA = o.Contest
	s.BaselineUS = o.Contest.BaselineUS
	s.Time.AATook, s.Time.AAMeasure = o.TookSeconds, o.Contest.SecondsPerRound*float64(o.Contest.Rounds)
}

// searchDone takes in what became of a suggestion.
func (s *State) searchDone(n int64, f *Flight, o *scheduler.Summary) {
	st := s.Structure(f.Trial.Point.Structure)
	if st == nil {
		return
	}
	st.Told++
	before := s.bestObjective()
	defer func() { s.credit(st, f, o, before) }()
	if f.Trial.Plan.Stage == harness.StageFirst {
		st.FirstFlying = false
	}
	s.countFault(st, !f.Trial.Asked, o)
	switch {
	case o.Cached:
		s.Counts.Cached++
	case o.Quarantined:
		s.Counts.Failed["quarantined"]++
	case o.Censored:
		s.Counts.Censored++
		st.FirstDone = true
		st.Cost.Add(o.HeldSeconds)
	case o.Fault.Measured():
		s.Counts.Evaluated++
		st.FirstDone = true
		st.Measured++
		st.Cost.Add(o.HeldSeconds)
		st.Logs.Add(math.Log(o.Objective))
		if st.Best == 0 || o.Objective < st.Best {
			st.Best = o.Objective
		}
		s.contend(Contender{Point: f.Trial.Point, Trial: n, N: 1, Mean: math.Log(o.Objective), TimesUS: o.TimesUS})
	default:
		s.Counts.Failed[o.Fault.String()]++
	}
	if st.Told > s.Settings.Probes && st.Measured == 0 && !st.FirstDone {
		st.Dropped = true
	}
}

// countFault counts failures of the structure's direction and pauses it when too many drafts failed in a row.
func (s *State) countFault(st *Structure, draft bool, o *scheduler.Summary) {
	d := s.direction(st.Direction)
	failed := o.Fault == harness.FaultRules || o.Fault == harness.FaultCompile || o.Fault == harness.FaultCrash
	if failed {
		d.Fails++
	}
	if !draft {
		return
	}
	if !failed {
		d.Consecutive = 0
		return
	}
	if d.Consecutive++; d.Consecutive > pauseAfter {
		d.Paused = true
	}
}

// contend adds a contender, dropping the worst when the pool is full.
func (s *State) contend(c Contender) {
	if len(s.Contenders) < poolSize {
		s.Contenders = append(s.Contenders, c)
		return
	}
	worst := -1
	for i := range s.Contenders {
		if !s.Contenders[i].Flying && (worst < 0 || s.Contenders[i].Mean > s.Contenders[worst].Mean) {
			worst = i
		}
	}
	if worst >= 0 && s.Contenders[worst].Mean > c.Mean {
		s.Contenders[worst] = c
	}
}

// remeasured takes another measurement of a contender into its mean.
func (s *State) remeasured(id string, o *scheduler.Summary) {
	for i := range s.Contenders {
		c := &s.Contenders[i]
		if c.Point.ID != id {
			continue
		}
		c.Flying = false
		if !o.Fault.Measured() || o.Quarantined {
			c.Rejected = fmt.Sprintf("measured again it ended in %s", o.Fault)
			return
		}
		if o.Censored {
			c.Rejected = "measured again it was slower than the incumbent at 99 %"
			return
		}
		m := crown.Moments{N: int64(c.N), Mean: c.Mean, M2: c.M2}
		m.Add(math.Log(o.Objective))
		s.noise.M2 += m.M2 - c.M2
		s.noiseDF++
		c.N, c.Mean, c.M2 = int(m.N), m.Mean, m.M2
		return
	}
}

// judged takes in a verdict: a crown, a rejection, or a failed replay.
func (s *State) judged(n int64, v *scheduler.Verdict) {
	if v.Dethroned {
		if k := len(s.Crowns); k > 0 && s.Crowns[k-1].Point.ID == v.Point.ID {
			s.Crowns = s.Crowns[:k-1]
		}
		s.Replayed = nil
		s.bests()
		s.reject(v.Point.ID, v.Reason)
		return
	}
	s.reject(v.Point.ID, v.Reason) // neither a crowned nor a refused candidate is nominated again
	if !v.Crowned || v.Paired == nil {
		return
	}
	objective := v.Objective
	s.Crowns = append(s.Crowns, Crown{Point: v.Point, Trial: n, Verdict: *v, Belief: crown.Belief{Mean: math.Log(objective), SD: v.Paired.StdErr}})
	s.bests()
}

func (s *State) reject(id, reason string) {
	for i := range s.Contenders {
		if s.Contenders[i].Point.ID == id {
			s.Contenders[i].Rejected, s.Contenders[i].Flying = reason, false
		}
	}
}

// bests recomputes the per-size best confirmed times.
func (s *State) bests() {
	s.BestUS = nil
	for _, c := range s.Crowns {
		for i, t := range c.Verdict.Paired.RuntimeUS {
			if len(s.BestUS) <= i {
				s.BestUS = append(s.BestUS, t)
			}
			s.BestUS[i] = min(s.BestUS[i], t)
		}
	}
}
