// Package optimizer holds the nouns of parameter search: Space, Configuration, Observation and Optimizer. It does no I/O
// and reads no clock; subpackages are the strategies (package strategy makes them by name). It knows nothing of kernels: a
// configuration is names and values.
package optimizer

import (
	"context"

	"ridgepoint/configs/expr"
)

// Configuration is one assignment of a space's parameters, by name.
type Configuration = map[string]expr.Value

// Observation is what became of one asked (or injected) configuration.
type Observation struct {
	Configuration Configuration
	Outcome       Outcome
	Value         float64 // objective, smaller is better, positive (a time or a ratio of times); used for Measured, Noisy, Censored (lower bound)
	Variance      float64 // of ln(Value); 0 when unknown
	FailKind      string  // for Failed: rules, compile, launch, crash, timeout, incorrect
	CostSeconds   float64 // device time the evaluation took; 0 when unknown
}

// Outcome says how an observation ended.
type Outcome uint8

// The outcomes. The zero Outcome is invalid.
const (
	OutcomeInvalid  Outcome = iota
	OutcomeMeasured         // Value is the objective
	OutcomeNoisy            // Value with a large Variance
	OutcomeCensored         // Value is a lower bound: racing stopped it
	OutcomeFailed           // infeasible
	OutcomeLost             // infrastructure failed: it is no longer pending and nothing was learned
)

// Optimizer suggests configurations of one space. It is not safe for concurrent use. Asked configurations stay pending, and
// are accounted for, until they are told. The same seed and the same sequence of calls give the same answers.
type Optimizer interface {
	// Ask returns the next configuration to try: feasible and not told or pending before. It returns ErrExhausted when none
	// is left.
	Ask(ctx context.Context) (Configuration, error)
	// Tell reports the outcome of a configuration, asked or not. Telling a configuration again adds a repeated measurement.
	Tell(ctx context.Context, o Observation) error
}

// Strategy proposes open configurations of a history by id. It keeps no pending set of its own: the history has it. What it
// proposes is a function of the seed it was made with and the history.
type Strategy interface {
	// Propose returns the id of an open configuration, or ErrExhausted.
	Propose(ctx context.Context, h *History) (int, error)
}
