package decide

import (
	"fmt"
	"math"
	"time"

	"ridgepoint/llm"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/blend"
)

// Drafts is what is known of proposals from models, libraries and people. It is part of the state: a fold over the log.
type Drafts struct {
	Enabled bool // somebody proposes while the campaign runs
	Blend   blend.Config
	Ready   []scheduler.Draft // in the order in which they came, waiting to be tried
	Last    int64             // the highest number given
	Counts  map[scheduler.DraftStatus]int64
	Open    map[int64][]*scheduler.Exchange // drafts that were begun and have not ended
	Ended   []scheduler.Draft               // the last ones that ended, without their sources
	Taken   []Taken                         // structures that came from drafts, oldest first
	Repairs int64                           // drafts that were ready only after mending
	Spent   llm.Spent
	Days    map[string]llm.Spent
	Budget  *llm.Budget // a person's word; nil: as configured
	// Reply is a running mean of how long a draft takes to come, in seconds.
	Reply     float64
	Diagnosis string // the analyst's latest
	Diagnosed int64  // the draft that it was made for
	// Predicted and Realised are relative improvements by tuning; TuneSeconds and DraftSeconds the workers' time of each half; SinceGain the
	// workers' time since the best improved.
	Predicted, Realised, TuneSeconds, DraftSeconds, SinceGain float64
}

// Taken is a draft that became a structure of the search.
type Taken struct {
	Draft       scheduler.Draft
	Structure   int
	Before      float64 // the best objective when it was taken; 0: none yet
	First       float64 // its best after default and probes; 0: none
	CostSeconds float64 // of default and probes
	At          time.Time
}

// keptEnded is how many ended drafts are remembered for prompts: more than a prompt shows.
const keptEnded = 40

func newDrafts(s *scheduler.LLMSettings) Drafts {
	d := Drafts{Counts: map[scheduler.DraftStatus]int64{}, Open: map[int64][]*scheduler.Exchange{}, Days: map[string]llm.Spent{}, Blend: blend.Config{Mode: blend.Auto}}
	if s == nil {
		return d
	}
	d.Enabled = s.Active()
	if c, err := blend.Parse(s.Blend); err == nil { // Settings.Validate has refused others
		d.Blend = c
	}
	return d
}

// exchanged takes in a call: what it cost, and, with a reply, that its draft is under way.
func (d *Drafts) exchanged(e *scheduler.Exchange) {
	d.Spent = d.Spent.Add(e.Spent)
	d.Days[e.Day] = d.Days[e.Day].Add(e.Spent)
	if e.Reply == nil {
		return
	}
	if e.Request != nil && e.Request.For == llm.Analyst {
		d.Diagnosis, d.Diagnosed = e.Reply.Text, e.Draft
		return
	}
	d.Last = max(d.Last, e.Draft)
	d.Open[e.Draft] = append(d.Open[e.Draft], e)
}

// drafted takes in how a draft ended.
func (d *Drafts) drafted(n *scheduler.Draft) {
	d.Last = max(d.Last, n.Number)
	delete(d.Open, n.Number)
	if _, again := d.remove(n.Number); again { // it was ready, and did not load when it was to be tried
		d.Counts[scheduler.DraftReady]--
	}
	d.Counts[n.Status]++
	if n.TookSeconds > 0 {
		if d.Reply == 0 {
			d.Reply = n.TookSeconds
		}
		d.Reply += 0.3 * (n.TookSeconds - d.Reply)
	}
	switch n.Status {
	case scheduler.DraftReady, scheduler.DraftPoint:
		if len(n.Repairs) > 0 || n.Rounds > 1 {
			d.Repairs++
		}
		if n.Origin == "injected" { // a person's come first
			d.Ready = append([]scheduler.Draft{*n}, d.Ready...)
		} else {
			d.Ready = append(d.Ready, *n)
		}
	default:
		ended := *n
		ended.Source = ""
		d.Ended = append(d.Ended, ended)
		if len(d.Ended) > keptEnded {
			d.Ended = append([]scheduler.Draft{}, d.Ended[len(d.Ended)-keptEnded:]...)
		}
	}
}

func (d *Drafts) remove(number int64) (scheduler.Draft, bool) {
	for i := range d.Ready {
		if d.Ready[i].Number == number {
			out := d.Ready[i]
			d.Ready = append(append([]scheduler.Draft{}, d.Ready[:i]...), d.Ready[i+1:]...)
			return out, true
		}
	}
	return scheduler.Draft{}, false
}

// taken notes that a structure joined; one that came from a draft leaves the queue.
func (d *Drafts) taken(a *scheduler.Added, best float64, at time.Time) {
	if a.Draft == 0 {
		return
	}
	draft, ok := d.remove(a.Draft)
	if !ok {
		return
	}
	draft.Source = ""
	d.Taken = append(d.Taken, Taken{Draft: draft, Structure: a.Structure, Before: best, At: at})
}

// UsesPerSecond is how fast drafts are taken, over the last few.
func (d *Drafts) UsesPerSecond(now time.Time) float64 {
	const window = 4
	n := len(d.Taken)
	if n < 2 {
		return 0
	}
	from := d.Taken[max(0, n-window)].At
	span := now.Sub(from).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(min(n, window)) / span
}

// credit books the time and the improvement of a search trial to the half that it belongs to. before is the best objective before it.
func (s *State) credit(st *Structure, f *Flight, o *scheduler.Summary, before float64) {
	d := &s.Drafts
	d.SinceGain += o.HeldSeconds
	first := st.Draft > 0 && st.Told <= 1+s.Settings.Probes
	gain := 0.0
	if after := s.bestObjective(); before > 0 && after > 0 && after < before {
		gain = 1 - after/before
		d.SinceGain = 0
	}
	if !first {
		d.TuneSeconds += o.HeldSeconds
		d.Predicted += f.Trial.Why["predicted_gain"]
		d.Realised += gain
		return
	}
	d.DraftSeconds += o.HeldSeconds
	for i := range d.Taken {
		if t := &d.Taken[i]; t.Structure == st.Number {
			t.CostSeconds += o.HeldSeconds
			t.First = st.Best
		}
	}
}

// Gain is the relative improvement that a taken draft brought: what its default and probes showed, and half of what tuning it added.
func (s *State) Gain(t *Taken) float64 {
	st := s.Structure(t.Structure)
	if st == nil || st.Best == 0 || t.First == 0 || t.Before == 0 {
		return 0
	}
	return max(0, 1-math.Sqrt(t.First*st.Best)/t.Before)
}

// BlendInputs are the numbers that the blend goes by, without the arms.
func (s *State) BlendInputs() blend.Inputs {
	d := &s.Drafts
	in := blend.Inputs{Config: d.Blend, TuneSeconds: d.TuneSeconds, DraftSeconds: d.DraftSeconds, SinceGainSeconds: d.SinceGain}
	cost, n := 0.0, 0
	for i := range s.Structures {
		if c := s.Structures[i].Cost; c.N > 0 {
			cost += c.Mean
			n++
		}
	}
	if n > 0 {
		in.TryCostSeconds = cost / float64(n) * float64(1+s.Settings.Probes)
	}
	for i := range d.Taken {
		if t := &d.Taken[i]; t.CostSeconds > 0 {
			in.Past = append(in.Past, blend.Past{Gain: s.Gain(t), CostSeconds: t.CostSeconds})
		}
	}
	return in
}

// arms are the structures that may be tuned, and the next draft.
func (s *State) arms(in Inputs) []blend.Arm {
	best := s.bestObjective()
	var arms []blend.Arm
	for i := range s.Structures {
		st := &s.Structures[i]
		if s.closed(st) || st.Exhausted || !st.DefaultPlanned {
			continue
		}
		gain := s.gain(st, in)
		if best > 0 {
			gain /= best
		}
		arms = append(arms, blend.Arm{Kind: blend.KindTune, Structure: st.Number, Gain: gain, CostSeconds: s.cost(st), Asked: st.Asked, Pinned: st.Pinned})
	}
	if d := s.nextDraft(); d != nil {
		arms = append(arms, blend.Arm{Kind: blend.KindTry, Draft: int(d.Number), Pinned: d.Origin == "injected"})
	}
	return arms
}

// nextDraft is the first ready draft whose direction is not paused.
func (s *State) nextDraft() *scheduler.Draft {
	for i := range s.Drafts.Ready {
		if d := &s.Drafts.Ready[i]; d.Origin == "injected" || !s.direction(d.Direction).Paused {
			return d
		}
	}
	return nil
}

// Queue is the order of what could be done next, with the numbers, as blended decides: for `why` and for people.
func (s *State) Queue(in Inputs) []blend.Choice {
	b := s.BlendInputs()
	b.Arms = s.arms(in)
	if len(b.Arms) == 0 {
		return nil
	}
	return blend.Queue(b)
}

// blended chooses between tuning a structure and trying a draft.
func (s *State) blended(in Inputs) (Decision, bool) {
	queue := s.Queue(in)
	if len(queue) == 0 {
		return Decision{}, false
	}
	c := queue[0]
	if len(queue) > 1 {
		c.Why["next_best_per_second"] = queue[1].Rate
	}
	switch c.Kind {
	case blend.KindTune:
		return Decision{Kind: KindTune, Structure: c.Structure, Why: c.Why}, true
	case blend.KindTry:
		d := s.nextDraft()
		if d.Status == scheduler.DraftPoint {
			return Decision{Kind: KindPoint, Draft: *d, Structure: d.Structure, Why: c.Why}, true
		}
		return Decision{Kind: KindTry, Draft: *d, Why: c.Why}, true
	default:
		panic(fmt.Sprintf("decide: the blend chose %s", c.Kind))
	}
}

// control takes in a person's word. What it names and does not exist changes nothing: ctl has looked before it spoke.
func (s *State) control(c *scheduler.Control) {
	if c.ID != "" {
		if s.Words[c.ID] {
			return
		}
		s.Words[c.ID] = true
	}
	switch c.Action {
	case scheduler.ControlPause:
		s.Held = true
	case scheduler.ControlGo:
		s.Held = false
	case scheduler.ControlStop:
		s.Held, s.Stopped = false, "a person said stop"
	case scheduler.ControlPin, scheduler.ControlDrop:
		for i := range s.Structures {
			if st := &s.Structures[i]; st.Name == c.Name {
				st.Pinned = c.Action == scheduler.ControlPin
				st.Dropped = c.Action == scheduler.ControlDrop
			} else if c.Action == scheduler.ControlPin {
				st.Pinned = false
			}
		}
	case scheduler.ControlRevive:
		d := s.direction(c.Name)
		d.Paused, d.Consecutive = false, 0
		for i := range s.Structures {
			if st := &s.Structures[i]; st.Direction == c.Name {
				st.Dropped = false
			}
		}
	case scheduler.ControlBudget:
		if c.Budget != nil {
			s.Drafts.Budget = c.Budget
		}
		if c.WallSeconds > 0 {
			s.Settings.Budget.WallSeconds = c.WallSeconds
		}
		if c.Evaluations > 0 {
			s.Settings.Budget.Evaluations = c.Evaluations
		}
	case scheduler.ControlInject: // its draft follows as an event of its own
	default:
	}
}
