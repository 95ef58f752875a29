package scheduler

import (
	"encoding/json"
	"fmt"
	"time"

	"ridgepoint/harness"
)

// EventKind says what an Event tells.
type EventKind string

// The kinds of events. The state of a campaign is a fold over them in the order of their sequence numbers.
const (
	EventStructure EventKind = "structure" // Added: a structure joined the search
	EventPlanned   EventKind = "planned"   // Trial: an evaluation was planned
	EventStrike    EventKind = "strike"    // Struck: an attempt ended without being final
	EventOutcome   EventKind = "outcome"   // Summary: the first final outcome of a trial
	EventVerdict   EventKind = "verdict"   // Verdict: what a confirmation decided
	EventPhase     EventKind = "phase"     // Phase: the campaign went on to its next phase
	EventNote      EventKind = "note"      // Note: something a person may want to know; changes nothing
)

// Event is one entry of a campaign's log. Data is the JSON of the type that its kind names.
type Event struct {
	Campaign string          `json:"campaign"`
	Seq      int64           `json:"seq"` // from 1, without gaps
	Kind     EventKind       `json:"kind"`
	Trial    int64           `json:"trial,omitempty"`
	Time     time.Time       `json:"time"`
	Data     json.RawMessage `json:"data"`
}

// Point is a candidate as the log names it: a structure and a configuration of it.
type Point struct {
	Structure     int                   `json:"structure"` // 0: the baseline; from 1: in the order of the structure events
	Configuration harness.Configuration `json:"configuration,omitempty"`
	ID            string                `json:"id"` // the candidate's id
}

// Added says that a structure joined the search.
type Added struct {
	Structure int    `json:"structure"`
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	Direction string `json:"direction"`
	Origin    string `json:"origin"` // library, draft or injected
	Draft     int64  `json:"draft,omitempty"`
}

// Trial is one planned evaluation.
type Trial struct {
	Purpose Purpose      `json:"purpose"`
	Point   Point        `json:"point"`
	Rivals  []Opponent   `json:"rivals,omitempty"`
	Plan    harness.Plan `json:"plan"`
	// Asked says that the optimizer suggested the point; else it came from the default, an injection or the store.
	Asked bool `json:"asked,omitempty"`
	// Draft is the draft that named the point, where one did.
	Draft int64 `json:"draft,omitempty"`
	// Confirmation numbers the campaign's confirmations from 1; 0 elsewhere.
	Confirmation int `json:"confirmation,omitempty"`
	// Why holds the numbers behind the choice.
	Why map[string]float64 `json:"why,omitempty"`
}

// Opponent is a rival of a trial, by role.
type Opponent struct {
	Role  string `json:"role"` // baseline or incumbent
	Point Point  `json:"point"`
}

// Struck says that an attempt ended without a final outcome.
type Struck struct {
	Attempt int           `json:"attempt"`
	Fault   harness.Fault `json:"fault"`
	Device  string        `json:"device,omitempty"` // host/device that it crashed or hung on
	Reason  string        `json:"reason,omitempty"`
}

// Summary is what the state needs of a final outcome; the whole report is in the outcomes table.
type Summary struct {
	Attempt       int           `json:"attempt"`
	Fault         harness.Fault `json:"fault"`
	TimesUS       []float64     `json:"times_us,omitempty"`       // medians over scored sizes, in order
	Score         *float64      `json:"score,omitempty"`          // the reward without the direction's failures
	PriorityScore *float64      `json:"priority_score,omitempty"` // with them
	Objective     float64       `json:"objective,omitempty"`      // what the optimizer is told: positive, smaller is better
	Variance      float64       `json:"variance,omitempty"`       // of ln(Objective)
	Censored      bool          `json:"censored,omitempty"`       // Objective is a lower bound
	Quarantined   bool          `json:"quarantined,omitempty"`    // below the physical floor
	Cached        bool          `json:"cached,omitempty"`         // the candidate had been evaluated in this campaign before
	DeviceSeconds float64       `json:"device_seconds"`
	HeldSeconds   float64       `json:"held_seconds"`
	TookSeconds   float64       `json:"took_seconds"` // wall time of the evaluation
	Reason        string        `json:"reason,omitempty"`
	// Contest is what a paired run says: A/A, confirmation and replay.
	Contest *Paired `json:"contest,omitempty"`
}

// Paired is the evaluation of a contest: differences of the reward within rounds, relative to the rival's reward.
type Paired struct {
	Rounds          int        `json:"rounds"`
	Gain            float64    `json:"gain"`          // mean relative difference of the reward against the rival; positive is better
	SD              float64    `json:"sd"`            // of one round's difference
	StdErr          float64    `json:"stderr"`        // of Gain
	Interval        [2]float64 `json:"interval"`      // 95 % of Gain
	P               float64    `json:"p"`             // one-sided, that Gain is this large by chance
	Speedup         float64    `json:"speedup"`       // geometric mean over sizes against the baseline
	SpeedupRange    [2]float64 `json:"speedup_range"` // 95 %
	BaselineUS      []float64  `json:"baseline_us"`   // medians over rounds
	RivalUS         []float64  `json:"rival_us,omitempty"`
	RuntimeUS       []float64  `json:"runtime_us"`
	WorstSize       int        `json:"worst_size"`  // index of the size with the largest ratio to baseline or incumbent
	WorstRatio      float64    `json:"worst_ratio"` // that ratio
	SecondsPerRound float64    `json:"seconds_per_round"`
}

// Verdict is what a confirmation decided.
type Verdict struct {
	Confirmation int     `json:"confirmation"` // the k of the significance spent
	Point        Point   `json:"point"`
	Crowned      bool    `json:"crowned"`
	Dethroned    bool    `json:"dethroned,omitempty"` // it was the incumbent and failed its replay
	Objective    float64 `json:"objective,omitempty"` // of the medians over the contest's rounds
	Reason       string  `json:"reason"`
	Alpha        float64 `json:"alpha"`      // of this test
	P            float64 `json:"p"`          // one-sided
	Detectable   float64 `json:"detectable"` // smallest relative gain that this test finds with the asked power
	Paired       *Paired `json:"paired,omitempty"`
}

// Phase is a part of a campaign's life.
type Phase struct {
	Phase  PhaseName `json:"phase"`
	Reason string    `json:"reason"`
	// SpentSeconds is the wall time used when the phase began, over all processes that worked on the campaign.
	SpentSeconds float64 `json:"spent_seconds"`
}

// PhaseName names a phase.
type PhaseName string

// The phases, in order. Opened and Stopped may alternate any number of times within the others.
const (
	PhaseOpened  PhaseName = "opened"  // a process took the campaign up
	PhaseStopped PhaseName = "stopped" // a process laid it down cleanly
	PhaseEnding  PhaseName = "ending"  // no more search: last confirmation and replay
	PhaseDone    PhaseName = "done"
)

// Note tells something that changes nothing.
type Note struct {
	Text string `json:"text"`
}

// NewEvent encodes data as an event of kind. Sequence number and time are the loop's.
func NewEvent(campaign string, kind EventKind, trial int64, data any) (Event, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encode %s event of trial %d: %w", kind, trial, err)
	}
	return Event{Campaign: campaign, Kind: kind, Trial: trial, Data: b}, nil
}
