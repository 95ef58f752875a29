package scheduler

import (
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/pool"
)

// The kinds of events by which structures come from outside, and by which people steer.
const (
	EventExchange EventKind = "exchange" // Exchange: a model answered, or a call failed
	EventDraft    EventKind = "draft"    // Draft: what became of a proposal
	EventControl  EventKind = "control"  // Control: a person's word
)

// Exchange is one call of a model with what came of it. It is stored as soon as the reply has arrived and before anything else is done
// with it, so that no reply is paid for twice. Texts are scrubbed of keys.
type Exchange struct {
	Draft     int64        `json:"draft"` // number of the draft it works for, from 1; of an analyst's diagnosis, the draft that gets it
	Round     int          `json:"round"` // from 1; the second and third mend the first
	Ask       Ask          `json:"ask"`
	Hash      string       `json:"hash"` // of the prompt
	Prompt    string       `json:"prompt_version"`
	Request   *llm.Request `json:"request"`
	Reply     *llm.Reply   `json:"reply,omitempty"`
	Error     string       `json:"error,omitempty"`
	ErrorKind string       `json:"error_kind,omitempty"`
	Spent     llm.Spent    `json:"spent"`
	Day       string       `json:"day"` // that the spending counts for
}

// Ask says what a draft was asked to be.
type Ask struct {
	Step      string             `json:"step"` // new_direction, refine, cross, repair or suggest
	Direction string             `json:"direction,omitempty"`
	Exploring bool               `json:"exploring,omitempty"`
	Parents   []int              `json:"parents,omitempty"` // structures that were given to work on
	Why       map[string]float64 `json:"why,omitempty"`     // the numbers behind the choice
}

// DraftStatus says what became of a draft.
type DraftStatus string

// What becomes of drafts.
const (
	DraftReady     DraftStatus = "ready"     // a structure that waits to be tried
	DraftPoint     DraftStatus = "point"     // a configuration of a known structure that waits to be tried
	DraftDropped   DraftStatus = "dropped"   // broken beyond two complaints
	DraftDuplicate DraftStatus = "duplicate" // tried already, or nearly
	DraftRefused   DraftStatus = "refused"   // it breaks a rule of the task and did not mend
)

// Draft is a proposal with its lineage.
type Draft struct {
	Number      int64                 `json:"number"`
	Name        string                `json:"name"` // "draft-7"; of an injected or library file its own
	Ask         Ask                   `json:"ask"`
	Origin      string                `json:"origin"` // draft, library or injected
	Status      DraftStatus           `json:"status"`
	Direction   string                `json:"direction,omitempty"`
	Source      string                `json:"source,omitempty"`    // of a structure
	Structure   int                   `json:"structure,omitempty"` // that a point is of
	Point       harness.Configuration `json:"point,omitempty"`
	Model       string                `json:"model,omitempty"`
	PromptHash  string                `json:"prompt_hash,omitempty"`
	Rounds      int                   `json:"rounds"`
	Spent       llm.Spent             `json:"spent"`
	Repairs     []string              `json:"repairs,omitempty"`
	Complaints  []string              `json:"complaints,omitempty"` // of the last round
	Reason      string                `json:"reason,omitempty"`
	Change      string                `json:"change,omitempty"`         // what the model says it changed
	Why         string                `json:"why,omitempty"`            // and why
	Expected    float64               `json:"expected_ratio,omitempty"` // run time over the incumbent's, as the model expects; 0: not said
	Like        string                `json:"like,omitempty"`           // the most similar source tried
	Similarity  float64               `json:"similarity,omitempty"`
	TookSeconds float64               `json:"took_seconds"` // wall time of its replies
}

// Control is a person's word to a running campaign.
type Control struct {
	ID     string        `json:"id"` // a word that comes twice counts once
	Action ControlAction `json:"action"`
	Name   string        `json:"name,omitempty"`   // of a structure, a direction or a file
	Source string        `json:"source,omitempty"` // of an injected file
	Budget *llm.Budget   `json:"budget,omitempty"` // the models' new budget
	// Wall and Evaluations replace the campaign's budget where they are set.
	WallSeconds float64 `json:"wall_seconds,omitempty"`
	Evaluations int64   `json:"evaluations,omitempty"`
	By          string  `json:"by,omitempty"`
}

// ControlAction is what a person may say.
type ControlAction string

// The words of ctl.
const (
	ControlPause  ControlAction = "pause"
	ControlGo     ControlAction = "go"
	ControlStop   ControlAction = "stop"
	ControlInject ControlAction = "inject"
	ControlPin    ControlAction = "pin"
	ControlDrop   ControlAction = "drop"
	ControlRevive ControlAction = "revive"
	ControlBudget ControlAction = "budget"
)

// LLMSettings are a campaign's choices on models and on the sharing of the device between tuning and new structures.
type LLMSettings struct {
	Pool         pool.Config `json:"pool"`
	Replay       string      `json:"replay,omitempty"`  // a recording in the models' place
	Library      []string    `json:"library,omitempty"` // structure files offered one by one instead of a model
	Blend        string      `json:"blend"`             // auto, off or fixed: SHARE
	PromptTokens int         `json:"prompt_tokens"`
	MaxDrafts    int64       `json:"max_drafts"` // 0: no limit
	Schema       string      `json:"feedback_schema"`
	AnalystEvery int64       `json:"analyst_every"` // drafts between two diagnoses, when an analyst is configured
}

// Active says whether anything proposes structures while the campaign runs.
func (s *LLMSettings) Active() bool {
	return s != nil && (len(s.Pool.Models) > 0 || s.Replay != "" || len(s.Library) > 0)
}

// Validate reports the first setting that is out of its range.
func (s *LLMSettings) Validate() error {
	switch {
	case s.Schema != "structured_v1" && s.Schema != "plain":
		return fmt.Errorf("llm.feedback_schema: %q; want structured_v1 or plain", s.Schema)
	case s.PromptTokens < 1000:
		return fmt.Errorf("llm.prompt_tokens: %d; a prompt needs 1000 at least", s.PromptTokens)
	case s.MaxDrafts < 0 || s.AnalystEvery < 1:
		return fmt.Errorf("llm: max_drafts is 0 (no limit) or more, analyst_every 1 or more")
	case s.Replay != "" && len(s.Pool.Models) > 0:
		return fmt.Errorf("llm: models or a replay, not both")
	}
	return s.Pool.Validate()
}

// NewExchange makes the exchange of a finished call.
func NewExchange(draft int64, round int, ask Ask, r *llm.Request, reply *llm.Reply, failed *llm.Error, now time.Time) *Exchange {
	e := &Exchange{Draft: draft, Round: round, Ask: ask, Hash: r.Hash(), Request: r, Reply: reply, Day: llm.Day(now)}
	if reply != nil {
		total := reply.Usage.Add(reply.Wasted)
		e.Spent = llm.Spent{Calls: int64(reply.Calls), Tokens: int64(total.Total()), MicroUSD: reply.CostMicroUSD}
	}
	if failed != nil {
		e.Error, e.ErrorKind = failed.Error(), failed.Kind.String()
		e.Spent = llm.Spent{Calls: int64(failed.Calls), Tokens: int64(failed.Wasted.Total()), MicroUSD: failed.CostMicroUSD}
	}
	return e
}
