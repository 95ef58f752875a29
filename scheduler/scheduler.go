// Package scheduler holds the nouns of a search: Campaign, Trial, Job, Outcome and Event, without I/O. The subpackages do
// the work: decide (pure choices), loop (the only owner of a campaign's state), memory (the store), reward, blend, board
// and dash.
package scheduler

import (
	"context"
	"time"

	"ridgepoint/harness"
)

// Purpose says why a trial is run.
type Purpose string

// The purposes of a trial.
const (
	PurposeBaseline  Purpose = "baseline" // the task's textbook kernel
	PurposeAA        Purpose = "aa"       // baseline against itself: sizes confirmations
	PurposeSearch    Purpose = "search"   // a suggested configuration
	PurposeRemeasure Purpose = "remeasure"
	PurposeConfirm   Purpose = "confirm"
	PurposeReplay    Purpose = "replay"
	PurposeProfile   Purpose = "profile" // the incumbent under a profiler
)

// TrialKey names one attempt of one planned evaluation.
type TrialKey struct {
	Campaign string `json:"campaign"`
	Trial    int64  `json:"trial"`
	Attempt  int    `json:"attempt"` // from 1
}

// Job is a planned evaluation on its way to workers. It is self-contained: a worker never asks the scheduler anything.
type Job struct {
	Key       TrialKey        `json:"key"`
	Scheduler string          `json:"scheduler"` // id of the store that planned it: where the outcome goes
	Purpose   Purpose         `json:"purpose"`
	Request   harness.Request `json:"request"`
	Deadline  time.Time       `json:"deadline"` // after it the scheduler plans another attempt
	Strikes   int             `json:"strikes"`  // crashes and timeouts of earlier attempts of this trial
	Weight    float64         `json:"weight"`   // fairness between campaigns
	Priority  int             `json:"priority"`
	// Avoid names devices ("host/device", as Outcome.Device) on which earlier attempts crashed or timed out: another device that
	// serves the same queue takes the job if there is one.
	Avoid []string `json:"avoid,omitempty"`
}

// Final reports whether an attempt that ended in fault settles its trial: a first crash or timeout does not, since the device
// may be to blame, and infrastructure faults never do.
func Final(fault harness.Fault, strikes int) bool {
	switch fault {
	case harness.FaultInfra:
		return false
	case harness.FaultCrash, harness.FaultTimeout:
		return strikes > 0
	default:
		return true
	}
}

// Outcome is what came of one attempt. The first Final outcome of a trial wins.
type Outcome struct {
	Key    TrialKey       `json:"key"`
	Final  bool           `json:"final"`
	Report harness.Report `json:"report"`
	Worker string         `json:"worker"`           // host/pid/device that did it
	Device string         `json:"device,omitempty"` // host/device, for Job.Avoid
	// WorkerHeld is how long a worker held the device for it, in seconds.
	WorkerHeld float64 `json:"worker_held"`
}

// Dispatcher takes planned jobs to whoever evaluates them. Outcomes come back through a Deliver. scheduler/loop uses it;
// workers/queue and the in-process dispatcher implement it.
type Dispatcher interface {
	// Dispatch hands over a job that is already written to memory. It returns once the job is accepted, not when it is done;
	// an error means that it was not accepted and may be dispatched again under the same key.
	Dispatch(ctx context.Context, j *Job) error
	// Capacity returns how many jobs the workers can evaluate at once now, at least 1.
	Capacity(ctx context.Context) (int, error)
}

// Tracker is what a Dispatcher offers that can lose jobs: Missing returns those of the given attempts that it no longer carries.
// An attempt on its way from one hop to the next may be reported once though it is there; twice in a row means lost.
type Tracker interface {
	Missing(ctx context.Context, attempts []TrialKey) ([]TrialKey, error)
}

// Deliver receives outcomes. It returns nil once the outcome is durable or was already known; then the sender may forget it.
type Deliver func(ctx context.Context, o *Outcome) error
