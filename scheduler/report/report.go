// Package report tells a person what a campaign found, from the store alone: the winner and its proof, the table over
// sizes, the search over evaluations and time, structures, failures, the nearest losers and how to reproduce it. It renders
// to a terminal and to one self-contained HTML page. It decides nothing.
package report

import (
	"context"
	"fmt"
	"math"
	"sort"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
)

// Report is a campaign as a person wants to see it. Its JSON is what `report --json` prints.
type Report struct {
	Campaign     string              `json:"campaign"`
	Name         string              `json:"name"`
	State        scheduler.State     `json:"state"`
	Note         string              `json:"note,omitempty"`       // why it failed
	EndReason    string              `json:"end_reason,omitempty"` // why the search ended
	Seed         uint64              `json:"seed"`
	Optimizer    string              `json:"optimizer"`
	SpentSeconds float64             `json:"spent_seconds"`
	Result       *scheduler.Result   `json:"result"`
	Noise        *Noise              `json:"noise,omitempty"`
	Environment  harness.Environment `json:"environment"`
	Arch         string              `json:"arch"`
	Points       []Point             `json:"points"`
	Structures   []Structure         `json:"structures"`
	Priors       []Prior             `json:"priors,omitempty"` // earlier measurements that guided the search
	Failures     []Failure           `json:"failures"`
	Verdicts     []Verdict           `json:"verdicts"`
	Losers       []Loser             `json:"losers"`
	Confession   Confession          `json:"confession"`
}

// Noise is what the A/A run says of this machine and of what the campaign could find.
type Noise struct {
	Rounds     int     `json:"rounds"`
	SD         float64 `json:"sd"`         // of one paired round's difference, relative
	Detectable float64 `json:"detectable"` // smallest gain that the campaign's last or next confirmation finds with the asked power
	Power      float64 `json:"power"`
}

// Point is one evaluation on its way: what it reached and the best so far.
type Point struct {
	Trial      int64   `json:"trial"`
	Evaluation int64   `json:"evaluation"` // number of evaluations up to and with this one
	Seconds    float64 `json:"seconds"`    // of wall time used
	Structure  int     `json:"structure"`
	Speedup    float64 `json:"speedup"` // geometric mean against the A/A run's baseline, as searched
	Best       float64 `json:"best"`    // the highest so far
}

// Structure is one line of the table of structures.
type Structure struct {
	Number        int                   `json:"number"`
	Name          string                `json:"name"`
	Direction     string                `json:"direction"`
	Origin        string                `json:"origin"`
	Asked         int                   `json:"asked"`
	Evaluated     int64                 `json:"evaluated"`
	Failed        int                   `json:"failed"`
	Censored      int                   `json:"censored"`
	BestSpeedup   float64               `json:"best_speedup"` // as searched; 0: none
	Configuration harness.Configuration `json:"configuration,omitempty"`
	Status        string                `json:"status"` // searched, paused, dropped
}

// Failure is a fault with how often it came and its most frequent reason.
type Failure struct {
	Fault  string `json:"fault"`
	Count  int64  `json:"count"`
	Reason string `json:"reason,omitempty"`
}

// Verdict is one confirmation.
type Verdict struct {
	scheduler.Verdict
	Trial     int64  `json:"trial"`
	Structure string `json:"structure"`
}

// Loser is a candidate that came near.
type Loser struct {
	Candidate     string                `json:"candidate"`
	Structure     string                `json:"structure"`
	Configuration harness.Configuration `json:"configuration"`
	Speedup       float64               `json:"speedup"` // believed: shrunken, over the objective
	Measurements  int                   `json:"measurements"`
	Why           string                `json:"why"`
}

// maxLosers bounds the list of near losers.
const maxLosers = 6

// builder folds over the log.
type builder struct {
	campaign *scheduler.Campaign
	state    *decide.State
	out      *Report
	reasons  map[string]map[string]int64 // by fault
	aaTrial  int64
	replay   int64              // the last replay's trial; 0: none
	searched map[string]float64 // speed-up of each candidate when the search first measured it
}

// Build reads a campaign from the store.
func Build(ctx context.Context, store *memory.Store, id string) (*Report, error) {
	row, err := store.Campaign(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &row.Campaign
	b := &builder{campaign: c, state: decide.New(c), reasons: map[string]map[string]int64{}, searched: map[string]float64{}, out: &Report{Campaign: c.ID, Name: c.Name, State: row.State, Note: row.Note, Seed: c.Seed,
		Optimizer: c.Settings.Optimizer, Arch: c.Baseline.Options.Arch, Points: []Point{}, Structures: []Structure{}, Failures: []Failure{}, Verdicts: []Verdict{}, Losers: []Loser{}}}
	err = store.Events(ctx, c.ID, 0, func(e *scheduler.Event) error {
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		return b.event(e, data)
	})
	if err != nil {
		return nil, err
	}
	b.finish()
	if err := b.confess(ctx, store); err != nil {
		return nil, err
	}
	if b.aaTrial > 0 {
		outcomes, err := store.Outcomes(ctx, c.ID, b.aaTrial)
		if err != nil {
			return nil, err
		}
		if n := len(outcomes); n > 0 {
			b.out.Environment = outcomes[n-1].Report.Environment
		}
	}
	return b.out, nil
}

func (b *builder) event(e *scheduler.Event, data any) error {
	var flight *decide.Flight
	if f := b.state.Flying[e.Trial]; f != nil {
		flight = f
	}
	if err := b.state.Apply(e, data); err != nil {
		return err
	}
	switch d := data.(type) {
	case *scheduler.Added:
		b.out.Structures = append(b.out.Structures, Structure{Number: d.Structure, Name: d.Name, Direction: d.Direction, Origin: d.Origin, Status: "searched"})
	case *scheduler.Prior:
		b.prior(d)
	case *scheduler.Summary:
		b.count(&flight.Trial, d)
		switch flight.Trial.Purpose {
		case scheduler.PurposeSearch:
			b.search(e, &flight.Trial, d)
		case scheduler.PurposeAA:
			b.aaTrial = e.Trial
		case scheduler.PurposeReplay:
			b.replay = e.Trial
		default:
		}
	case *scheduler.Verdict:
		b.out.Verdicts = append(b.out.Verdicts, Verdict{Verdict: *d, Trial: e.Trial, Structure: b.name(d.Point.Structure)})
	default:
	}
	return nil
}

func (b *builder) name(structure int) string {
	if st := b.state.Structure(structure); st != nil {
		return st.Name
	}
	return "baseline"
}

// search takes in the outcome of a suggestion.
func (b *builder) search(e *scheduler.Event, t *scheduler.Trial, s *scheduler.Summary) {
	row := &b.out.Structures[t.Point.Structure-1]
	row.Asked++
	switch {
	case s.Cached:
	case s.Censored:
		row.Censored++
	case s.Fault.Measured() && !s.Quarantined:
		row.Evaluated++
		p := Point{Trial: e.Trial, Evaluation: b.state.Counts.Evaluated, Seconds: b.state.SpentSeconds(), Structure: t.Point.Structure, Speedup: crown.GeoMeanSpeedup(b.state.BaselineUS, s.TimesUS)}
		p.Best = p.Speedup
		if n := len(b.out.Points); n > 0 {
			p.Best = max(p.Best, b.out.Points[n-1].Best)
		}
		b.out.Points = append(b.out.Points, p)
		if p.Speedup > row.BestSpeedup {
			row.BestSpeedup, row.Configuration = p.Speedup, t.Point.Configuration
		}
	default:
		row.Failed++
		fault := s.Fault.String()
		if s.Quarantined {
			fault = "quarantined"
		}
		if b.reasons[fault] == nil {
			b.reasons[fault] = map[string]int64{}
		}
		b.reasons[fault][s.Reason]++
	}
}

// finish computes what needs the whole log.
func (b *builder) finish() {
	s, out := b.state, b.out
	out.EndReason, out.SpentSeconds = s.EndReason, s.SpentSeconds()
	out.Result = loop.ResultOf(b.campaign, s, b.name, out.SpentSeconds)
	for i := range out.Structures {
		st := s.Structure(i + 1)
		switch {
		case st.Dropped:
			out.Structures[i].Status = "dropped: its default and probes all failed"
		case s.Directions[st.Direction].Paused:
			out.Structures[i].Status = "paused: too many failed drafts of its direction"
		}
	}
	for fault, n := range s.Counts.Failed {
		out.Failures = append(out.Failures, Failure{Fault: fault, Count: n, Reason: mostFrequent(b.reasons[fault])})
	}
	sort.Slice(out.Failures, func(i, j int) bool {
		a, c := out.Failures[i], out.Failures[j]
		return a.Count > c.Count || a.Count == c.Count && a.Fault < c.Fault
	})
	if s.AA != nil {
		b.noise()
		b.losers()
	}
}

func (b *builder) noise() {
	set := b.campaign.Settings.Confirm
	n := &Noise{Rounds: b.state.AA.Rounds, SD: b.state.AA.SD, Power: set.Power}
	for _, v := range b.out.Verdicts {
		if v.Paired != nil {
			n.Detectable = v.Detectable
		}
	}
	if n.Detectable == 0 {
		n.Detectable = b.state.NextSize().Detectable
	}
	b.out.Noise = n
}

// losers lists the candidates that came nearest, with why each is not the winner.
func (b *builder) losers() {
	s := b.state
	inc := s.Incumbent()
	order := make([]int, 0, len(s.Contenders))
	for i := range s.Contenders {
		if inc == nil || s.Contenders[i].Point.ID != inc.Point.ID {
			order = append(order, i)
		}
	}
	mean := func(i int) float64 { return s.Belief(&s.Contenders[i]).Mean }
	sort.SliceStable(order, func(i, j int) bool { return mean(order[i]) < mean(order[j]) })
	beat := s.ToBeat()
	for _, i := range order[:min(maxLosers, len(order))] {
		c := &s.Contenders[i]
		belief := s.Belief(c)
		l := Loser{Candidate: c.Point.ID, Structure: b.name(c.Point.Structure), Configuration: c.Point.Configuration, Speedup: math.Exp(-belief.Mean), Measurements: c.N, Why: c.Rejected}
		if crowned(s, c.Point.ID) {
			l.Why = "it was the incumbent until a better one was confirmed"
		} else if l.Why == "" {
			l.Why = fmt.Sprintf("expected %+.1f ± %.1f %% against what is to be beaten, after %s", 100*(beat.Mean-belief.Mean), 100*math.Hypot(belief.SD, beat.SD), times(c.N))
		}
		b.out.Losers = append(b.out.Losers, l)
	}
}

func crowned(s *decide.State, id string) bool {
	for i := range s.Crowns {
		if s.Crowns[i].Point.ID == id {
			return true
		}
	}
	return false
}

func times(n int) string {
	if n == 1 {
		return "one measurement"
	}
	return fmt.Sprintf("%d measurements", n)
}

func mostFrequent(reasons map[string]int64) string {
	best, count := "", int64(0)
	for r, n := range reasons {
		if n > count || n == count && r < best {
			best, count = r, n
		}
	}
	return best
}
