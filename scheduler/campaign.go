package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ridgepoint/harness"
)

// Campaign is one search as it was started: a task on a target, its baseline, its seed and its settings. It never changes
// once stored; everything that happens later is in the event log.
type Campaign struct {
	Version  int                `json:"version"` // CampaignVersion
	ID       string             `json:"id"`      // "softmax_2d-cpu-1f0c9a3e"
	Name     string             `json:"name"`    // of the campaign file
	Task     *harness.Task      `json:"task"`
	Target   harness.Target     `json:"target"`
	Baseline *harness.Candidate `json:"baseline"`
	Seed     uint64             `json:"seed"`
	Reward   harness.Reward     `json:"reward"` // the task's, unless the campaign has its own
	Settings Settings           `json:"settings"`
	Created  time.Time          `json:"created"`
}

// CampaignVersion is the version of Campaign's JSON form.
const CampaignVersion = 1

// Sizes returns the scored sizes, in the task's order.
func (c *Campaign) Sizes() []harness.Size { return c.Task.ScoredSizes(c.Target) }

// State says where a stored campaign stands.
type State string

// The states of a campaign.
const (
	StateRunning State = "running" // a scheduler works on it, or died while it did
	StateStopped State = "stopped" // stopped cleanly; resume continues it
	StateDone    State = "done"    // its budget or target was reached and the end was written
	StateFailed  State = "failed"  // the infrastructure broke; resume continues it
)

// Settings are the choices of one campaign. The zero value of a budget means that it does not limit.
type Settings struct {
	Budget    Budget  `json:"budget"`
	Target    float64 `json:"target_speedup,omitempty"` // stop when a confirmed geometric-mean speedup reaches it
	Optimizer string  `json:"optimizer"`
	// Probes are the suggestions that a new structure gets after its default, before it must compete.
	Probes int `json:"probes"`
	// InFlight is how many planned trials are kept with the workers, as a multiple of their capacity.
	InFlight       int     `json:"in_flight"`
	Racing         bool    `json:"racing"`
	RemeasureShare float64 `json:"remeasure_share"` // of device time, at most
	// ProfileEvery is after how many evaluations a new incumbent is profiled; 0: never.
	ProfileEvery int64           `json:"profile_every,omitempty"`
	Confirm      ConfirmSettings `json:"confirm"`
	// OverdueSeconds is how long a search trial may be away before another attempt is submitted; confirmations and replays
	// get ten times that.
	OverdueSeconds float64 `json:"overdue_seconds"`
	// ReplayReserve is the share of the wall budget kept for the last confirmation and the replay when nothing has been
	// measured yet; later the reserve follows what confirmations cost.
	ReplayReserve float64 `json:"replay_reserve"`
	// Transfer is where earlier measurements of the same structures may come from; the zero value: nowhere.
	Transfer TransferSettings `json:"transfer,omitzero"`
	// LLM is who proposes structures while the campaign runs; nil: nobody.
	LLM *LLMSettings `json:"llm,omitempty"`
	// Limits bound the whole fleet while the campaign runs, by class (compile, gpu). A class that is not there is not touched.
	Limits map[string]Limit `json:"limits,omitempty"`
}

// Limit bounds a class of work across the fleet. A zero field does not limit.
type Limit struct {
	Permits int     `json:"permits,omitempty"` // at work at once
	Rate    float64 `json:"rate,omitempty"`    // begun a second, on average
	Burst   float64 `json:"burst,omitempty"`   // begun at once after a pause; at least 1 where there is a Rate
}

// Validate reports what is out of range.
func (l Limit) Validate() error {
	switch {
	case l.Permits < 0:
		return fmt.Errorf("permits is %d: want 0 (no limit) or more", l.Permits)
	case !(l.Rate >= 0) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("rate is %g: want 0 (no limit) or how many may begin a second", l.Rate)
	case l.Rate > 0 && !(l.Burst >= 1 && l.Burst < 1e9):
		return fmt.Errorf("burst is %g: want how many may begin at once after a pause, at least 1", l.Burst)
	default:
		return nil
	}
}

// Budget limits a campaign. A zero field does not limit.
type Budget struct {
	WallSeconds   float64 `json:"wall_seconds,omitempty"`
	Evaluations   int64   `json:"evaluations,omitempty"`
	DeviceSeconds float64 `json:"device_seconds,omitempty"`
}

// ConfirmSettings size confirmations: DESIGN.md, section 6.
type ConfirmSettings struct {
	Gain      float64 `json:"gain"`       // relative gain to be found with Power: 0.01
	Power     float64 `json:"power"`      // 0.90
	Alpha     float64 `json:"alpha"`      // spent over all confirmations of the campaign: 0.05
	AARounds  int     `json:"aa_rounds"`  // A/B/B/A rounds of the A/A run
	MinRounds int     `json:"min_rounds"` // at least
	MaxRounds int     `json:"max_rounds"` // the cap
	// Share is the part of the campaign's time that confirmations before the last may take.
	Share float64 `json:"share"`
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	c := s.Confirm
	checks := []struct {
		ok   bool
		text string
	}{
		{s.Budget.WallSeconds >= 0 && s.Budget.Evaluations >= 0 && s.Budget.DeviceSeconds >= 0, "budget: want no negative limit"},
		{s.Budget != Budget{} || s.Target > 0, "budget: want wall, evaluations, device_seconds or a target_speedup; without one the search never ends"},
		{s.Target == 0 || s.Target > 1, "target_speedup: want a ratio above 1, such as 1.5, or 0 for none"},
		{s.Optimizer != "", "optimizer: want a strategy's name, such as tpe"},
		{s.Probes >= 0, "probes: want 0 or more"},
		{s.InFlight >= 1, "in_flight: want 1 or more"},
		{s.ProfileEvery >= 0, "profile_every: want a number of evaluations, or 0 for never"},
		{s.RemeasureShare >= 0 && s.RemeasureShare <= 0.5, "remeasure_share: want 0 to 0.5"},
		{c.Gain > 0 && c.Gain < 1, "confirm.gain: want a relative gain above 0 and below 1, such as 0.01"},
		{c.Power > 0.5 && c.Power < 1, "confirm.power: want above 0.5 and below 1, such as 0.9"},
		{c.Alpha > 0 && c.Alpha < 0.5, "confirm.alpha: want above 0 and below 0.5, such as 0.05"},
		{c.AARounds >= 3, "confirm.aa_rounds: want 3 or more; fewer give no spread"},
		{c.MinRounds >= 3 && c.MaxRounds >= c.MinRounds, "confirm.min_rounds, max_rounds: want 3 <= min_rounds <= max_rounds"},
		{c.Share >= 0 && c.Share <= 1, "confirm.share: want 0 to 1"},
		{s.OverdueSeconds > 0, "overdue: want a positive duration"},
		{s.ReplayReserve >= 0 && s.ReplayReserve < 1, "replay_reserve: want 0 to below 1"},
	}
	for _, check := range checks {
		if !check.ok {
			return errors.New(check.text)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(s.Limits)) {
		if err := s.Limits[class].Validate(); err != nil {
			return fmt.Errorf("limits.%s: %w", class, err)
		}
	}
	if s.LLM != nil {
		return s.LLM.Validate()
	}
	return nil
}

// NewCampaignID makes an id from the task, the target and random bytes in hex.
func NewCampaignID(task string, target harness.Target, random string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, task)
	return fmt.Sprintf("%s-%s-%s", clean, target, random)
}
