package optimizer

import "errors"

// ErrExhausted says that every feasible configuration of the space has been asked or told.
var ErrExhausted = errors.New("every feasible configuration has been tried")
