package optimizer

import "errors"

// ErrExhausted says that every feasible configuration of the space has been asked or told.
var ErrExhausted = errors.New("every feasible configuration has been tried")

// ErrInfeasible says that a configuration breaks a constraint of its space.
var ErrInfeasible = errors.New("breaks a constraint of the space")

// ErrNoRecords says that a strategy has no model that reads what was measured elsewhere.
var ErrNoRecords = errors.New("reads no records of elsewhere")
