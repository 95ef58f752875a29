package optimizer

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Status is what a history knows of one configuration.
type Status uint8

// The statuses. The zero Status is of a configuration not met.
const (
	StatusUnseen Status = iota
	StatusPending
	StatusDone     // measured, noisy or censored: Trial has the value
	StatusFailed   // infeasible
	StatusReturned // lost: may be asked again
)

// Trial is what is known of one configuration that was told, repeats merged.
type Trial struct {
	ID       int
	Failed   bool
	FailKind string
	Censored bool    // Log is a lower bound
	Log      float64 // ln of the objective: mean of the repeats weighted by their precision
	Variance float64 // of Log; 0 when unknown
	Repeats  int
	Cost     float64 // seconds, summed
	// FirstLog and FirstVariance are the value that it was first told with: what later repeats do not change.
	FirstLog, FirstVariance float64
}

// Success is a trial that has a value.
type Success struct {
	Trial int    // position in Trials
	At    uint64 // when it first had one: on the family's clock
}

// History is what was asked and told of one space, as strategies read it. Only its owner (the optimizer that wraps the
// strategies) changes it.
type History struct {
	Pool    *Pool
	Trials  []Trial // in the order in which they were first told
	Tells   int     // told observations, repeats and lost ones included
	Asks    int
	OK      int // trials with a value
	Repeats int // tells that changed a trial already told
	// Successes are the trials with a value, in the order in which they first had one.
	Successes []Success
	status    map[int]Status
	byID      map[int]int // id to position in Trials
	queue     []int       // pending ids in the order asked
	best      int         // position of the best measured trial; -1
	family    *Family
	member    int // its place in the family
}

// NewHistory returns an empty history over a new pool of the space.
func NewHistory(s *Space) *History {
	h := &History{Pool: s.NewPool(), status: map[int]Status{}, byID: map[int]int{}, best: -1}
	h.Join(&Family{})
	return h
}

// Status returns what is known of a configuration.
func (h *History) Status(id int) Status { return h.status[id] }

// Open reports whether a configuration may be asked: neither told nor pending.
func (h *History) Open(id int) bool {
	s := h.status[id]
	return s == StatusUnseen || s == StatusReturned
}

// Pending returns the ids that were asked and not told, oldest first. The caller must not change it.
func (h *History) Pending() []int { return h.queue }

// Best returns the measured trial with the smallest value; ok is false while there is none.
func (h *History) Best() (t Trial, ok bool) {
	if h.best < 0 {
		return Trial{}, false
	}
	return h.Trials[h.best], true
}

// Trial returns the trial of a told configuration.
func (h *History) Trial(id int) (t Trial, ok bool) {
	i, ok := h.byID[id]
	if !ok {
		return Trial{}, false
	}
	return h.Trials[i], true
}

// Remaining returns how many configurations are open.
func (h *History) Remaining() float64 {
	return h.Pool.space.size - float64(len(h.Trials)+len(h.queue))
}

// Ask marks a configuration as pending.
func (h *History) Ask(id int) {
	h.Asks++
	h.status[id] = StatusPending
	h.queue = append(h.queue, id)
}

// Tell adds an observation, merging repeats, and returns the id of its configuration. A configuration outside the space, an
// invalid outcome and a value that is not positive and finite are errors.
func (h *History) Tell(o Observation) (int, error) {
	row, err := h.Pool.space.Row(o.Configuration)
	if err != nil {
		return 0, err
	}
	id, ok := h.Pool.ID(row)
	if !ok {
		return 0, fmt.Errorf("configuration %s: %w", describe(o.Configuration), ErrInfeasible)
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	h.Tells++
	h.release(id)
	if o.Outcome == OutcomeLost {
		if _, told := h.byID[id]; !told {
			h.status[id] = StatusReturned
		}
		return id, nil
	}
	i, told := h.byID[id]
	if !told {
		i = len(h.Trials)
		h.byID[id] = i
		h.Trials = append(h.Trials, Trial{ID: id})
	}
	t := &h.Trials[i]
	had := told && !t.Failed
	if told {
		h.Repeats++
	}
	t.merge(o)
	if t.Failed {
		h.status[id] = StatusFailed
	} else {
		h.status[id] = StatusDone
	}
	if !t.Failed && !had {
		h.OK++
		t.FirstLog, t.FirstVariance = t.Log, t.Variance
		h.family.clock++
		h.Successes = append(h.Successes, Success{Trial: i, At: h.family.clock})
	}
	h.betterAt(i)
	return id, nil
}

func (o *Observation) check() error {
	switch o.Outcome {
	case OutcomeMeasured, OutcomeNoisy, OutcomeCensored:
		if !(o.Value > 0) || math.IsInf(o.Value, 0) {
			return fmt.Errorf("observation of %s: value %g; want a positive finite number", describe(o.Configuration), o.Value)
		}
		if !(o.Variance >= 0) || math.IsInf(o.Variance, 0) {
			return fmt.Errorf("observation of %s: variance %g; want 0 (unknown) or more", describe(o.Configuration), o.Variance)
		}
	case OutcomeFailed, OutcomeLost:
	default:
		return fmt.Errorf("observation of %s: outcome %d is none of measured, noisy, censored, failed, lost", describe(o.Configuration), o.Outcome)
	}
	return nil
}

// merge adds an observation to what is known of its configuration. A value replaces a failure (a flaky infrastructure fault
// told as a failure first), a measurement replaces a bound, measurements average.
func (t *Trial) merge(o Observation) {
	t.Cost += o.CostSeconds
	if o.Outcome == OutcomeFailed {
		if t.Repeats == 0 {
			t.Failed, t.FailKind = true, o.FailKind
		}
		return
	}
	x := math.Log(o.Value)
	switch censored := o.Outcome == OutcomeCensored; {
	case t.Repeats == 0 || (t.Censored && !censored):
		t.Failed, t.FailKind, t.Censored = false, "", censored
		t.Log, t.Variance, t.Repeats = x, o.Variance, 1
	case censored:
		if t.Censored {
			t.Log = math.Max(t.Log, x)
		}
	case t.Variance > 0 && o.Variance > 0:
		a, b := 1/t.Variance, 1/o.Variance
		t.Log, t.Variance, t.Repeats = (a*t.Log+b*x)/(a+b), 1/(a+b), t.Repeats+1
	default:
		n := float64(t.Repeats)
		t.Log, t.Repeats = (n*t.Log+x)/(n+1), t.Repeats+1
		t.Variance = math.Max(t.Variance, o.Variance) * n / (n + 1)
	}
}

func (h *History) release(id int) {
	for i, p := range h.queue {
		if p == id {
			h.queue = append(h.queue[:i], h.queue[i+1:]...)
			return
		}
	}
}

// betterAt keeps best when trial i has changed. All are looked at only where the best one itself has: a look at every tell made
// 100 000 of them take ten seconds.
func (h *History) betterAt(i int) {
	if i == h.best {
		h.best = -1
		for j := range h.Trials {
			h.betterAt(j)
		}
		return
	}
	t := &h.Trials[i]
	if t.Failed || t.Censored {
		return
	}
	if h.best >= 0 {
		b := &h.Trials[h.best]
		if t.Log > b.Log || t.Log == b.Log && i > h.best {
			return
		}
	}
	h.best = i
}

// DrawOpen returns a uniformly drawn open configuration; ok is false when none is left.
func (h *History) DrawOpen(rng *rand.Rand) (id int, ok bool) {
	if h.Remaining() <= 0 {
		return 0, false
	}
	for range 64 {
		if id := h.Pool.Draw(rng); h.Open(id) {
			return id, true
		}
	}
	if !h.Pool.space.Enumerated() {
		for { // over MaxEnumerated configurations, a few thousand of them met: a draw is open almost surely
			if id := h.Pool.Draw(rng); h.Open(id) {
				return id, true
			}
		}
	}
	open := make([]int, 0, int(h.Remaining()))
	for id := range h.Pool.Len() {
		if h.Open(id) {
			open = append(open, id)
		}
	}
	return open[rng.IntN(len(open))], true
}

// Sequence numbers the state of the history, for seeding draws: it grows with every ask and every tell.
func (h *History) Sequence() uint64 { return uint64(h.Asks)<<32 | uint64(h.Tells) }
