package decide

import (
	"math"
	"slices"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/reward"
)

// poolSize bounds the contenders that are remembered by name. Everything else of a candidate is in the store.
const poolSize = 128

// State is what a campaign knows. Only Apply changes it.
type State struct {
	Settings   scheduler.Settings
	Rules      harness.Rules
	FailWeight float64     // of the reward: orders directions
	Sizes      int         // scored
	Structures []Structure // by number - 1
	Directions map[string]*Direction
	Flying     map[int64]*Flight // planned trials without a final outcome
	NextTrial  int64
	NextSeq    int64
	NextRecord int64
	Phase      scheduler.PhaseName // opened (searching), ending or done
	EndReason  string
	BaselineUS []float64 // medians of the A/A run; nil before it
	AA         *scheduler.Paired
	BaselineID string
	Contenders []Contender
	Crowns     []Crown   // confirmed and not dethroned, oldest first; the last is the incumbent
	BestUS     []float64 // per size the best confirmed
	Confirmed  int       // confirmations planned
	FinalTried bool      // the last confirmation of the ending was planned
	Replayed   *scheduler.Summary
	Fatal      string // why the campaign cannot go on
	Counts     scheduler.Counts
	Time       Times
	Drafts     Drafts          // what comes from models, libraries and people while the campaign runs
	Profiled   string          // id of the incumbent that was profiled last
	ProfiledAt int64           // evaluations when it was planned
	Held       bool            // a person said pause
	Stopped    string          // a person said stop: why
	Words      map[string]bool // ids of the controls taken in
	noise      crown.Moments   // unused N; M2 pools squared deviations of re-measurements
	noiseDF    float64
	clock      sessionClock
	sized      crown.Size // NextSize for sizedFor: a t quantile is costly
	sizedFor   [2]int
}

// Times adds up where time went, in seconds.
type Times struct {
	Device, Held      float64 // all candidate stages
	Remeasure         float64 // device time of re-measurements
	Confirm           float64 // wall time of confirmations
	LastConfirm       float64
	AATook, AAMeasure float64
}

// Structure is what is known of one structure.
type Structure struct {
	Number          int
	Name, Digest    string
	Direction       string
	Origin          string
	DefaultPlanned  bool
	FirstFlying     bool // its first candidate is being verified
	FirstDone       bool // one candidate passed the first-candidate verification
	Asked, Told     int
	Measured        int64
	Exhausted       bool          // the optimizer has nothing left; set by the loop
	Dropped         bool          // its default and probes all failed
	Logs            crown.Moments // ln(objective) of whole measurements
	Best            float64       // lowest objective; 0: none
	Cost            crown.Moments // seconds a worker was held
	Draft           int64         // number of the draft that it came from; 0: shipped
	Pinned          bool          // a person wants it tuned before all others
	ConsecutiveFail int
}

// Direction is what is known of a lineage of structures.
type Direction struct {
	Fails       int // candidates that ended in rules, compile or crash
	Consecutive int // drafts in a row that did
	Paused      bool
}

// Flight is a planned trial that has no final outcome.
type Flight struct {
	Trial    scheduler.Trial
	Strikes  int      // crashes and timeouts
	Avoid    []string // devices that they happened on
	Troubles int      // infrastructure faults
}

// Contender is a measured candidate that may win.
type Contender struct {
	Point    scheduler.Point
	Trial    int64
	N        int     // measurements
	Mean     float64 // of ln(objective)
	M2       float64
	TimesUS  []float64 // of the first measurement
	Flying   bool      // being re-measured or confirmed
	Rejected string    // why it cannot be nominated
}

// Crown is a confirmed candidate.
type Crown struct {
	Point   scheduler.Point
	Trial   int64 // of the confirmation
	Verdict scheduler.Verdict
	Belief  crown.Belief // of ln(objective), from the confirmation's own rounds
}

// New returns the state of a campaign before its first event.
func New(c *scheduler.Campaign) *State {
	return &State{Settings: c.Settings, Rules: c.Task.Rules, FailWeight: failWeight(c.Reward), Sizes: len(c.Sizes()), Directions: map[string]*Direction{},
		Flying: map[int64]*Flight{}, NextTrial: 1, NextSeq: 1, NextRecord: 1, BaselineID: c.Baseline.ID(),
		Counts: scheduler.Counts{Failed: map[string]int64{}}, Drafts: newDrafts(c.Settings.LLM), Words: map[string]bool{}}
}

func failWeight(r harness.Reward) float64 {
	if r.Kind == reward.MeanStdFail {
		return r.FailWeight
	}
	return 0 // the other kinds count failures themselves
}

// Incumbent returns the best confirmed candidate, or nil.
func (s *State) Incumbent() *Crown {
	if len(s.Crowns) == 0 {
		return nil
	}
	return &s.Crowns[len(s.Crowns)-1]
}

// Structure returns a structure by number, or nil for the baseline and unknown ones.
func (s *State) Structure(number int) *Structure {
	if number < 1 || number > len(s.Structures) {
		return nil
	}
	return &s.Structures[number-1]
}

// aaWeight is how many degrees of freedom the A/A run's spread is worth against those of re-measured candidates.
const aaWeight = 8

// Noise returns the variance of ln(objective) of one measurement: from the A/A run, whose rounds differ by two
// measurements, and from candidates that were measured again.
func (s *State) Noise() float64 {
	if s.AA == nil {
		return 0
	}
	return (aaWeight*s.AA.SD*s.AA.SD/2 + s.noise.M2) / (aaWeight + s.noiseDF)
}

// Belief returns what is believed of a contender.
func (s *State) Belief(c *Contender) crown.Belief {
	st := s.Structure(c.Point.Structure)
	if st == nil {
		return crown.Belief{Mean: c.Mean}
	}
	return crown.Shrink(st.Logs, c.N, c.Mean, s.Noise())
}

// ToBeat returns what is believed of the incumbent: of the baseline before there is one.
func (s *State) ToBeat() crown.Belief {
	if inc := s.Incumbent(); inc != nil {
		return inc.Belief
	}
	// The baseline's ratio to itself is 1; what a confirmation of it would say has the A/A run's error.
	b := crown.Belief{}
	if s.AA != nil {
		b.SD = s.AA.StdErr
	}
	return b
}

// Best returns the lowest objective measured so far and its contender; nil before any.
func (s *State) Best() *Contender {
	var best *Contender
	mean := math.Inf(1)
	for i := range s.Contenders {
		c := &s.Contenders[i]
		if b := s.Belief(c).Mean; b < mean && c.Rejected == "" {
			best, mean = c, b
		}
	}
	return best
}

// FlyingSearches returns how many planned trials are suggestions.
func (s *State) FlyingSearches() int {
	n := 0
	for _, f := range s.Flying {
		if f.Trial.Purpose == scheduler.PurposeSearch {
			n++
		}
	}
	return n
}

// FlyingTrials returns the numbers of the planned trials in order.
func (s *State) FlyingTrials() []int64 {
	out := make([]int64, 0, len(s.Flying))
	for n := range s.Flying {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (s *State) flying(p scheduler.Purpose) bool {
	for _, f := range s.Flying {
		if f.Trial.Purpose == p {
			return true
		}
	}
	return false
}

func (s *State) direction(name string) *Direction {
	d := s.Directions[name]
	if d == nil {
		d = &Direction{}
		s.Directions[name] = d
	}
	return d
}
