package workers

import "fmt"

// Reason says why a payload was refused; it is a label of the refusal counter.
type Reason string

// The reasons for refusal.
const (
	ReasonTooLarge  Reason = "too_large"
	ReasonMalformed Reason = "malformed"
	ReasonVersion   Reason = "version"
	ReasonUnsigned  Reason = "unsigned"
	ReasonSignature Reason = "signature"
	ReasonMisplaced Reason = "misplaced" // signed for another queue, kind or task id
	ReasonExpired   Reason = "expired"
	ReasonReplayed  Reason = "replayed"
	ReasonPanic     Reason = "panic"  // the handler panicked on it
	ReasonKiller    Reason = "killer" // its workers died while they had it
)

// Reasons lists every reason, for counters that start at zero.
var Reasons = []Reason{ReasonTooLarge, ReasonMalformed, ReasonVersion, ReasonUnsigned, ReasonSignature, ReasonMisplaced, ReasonExpired,
	ReasonReplayed, ReasonPanic, ReasonKiller}

// Refusal is the error of a payload that must not be acted on, now or later: it is parked with its reason, not retried.
type Refusal struct {
	Reason Reason
	Detail string
}

// Error returns the reason and the detail.
func (r *Refusal) Error() string { return fmt.Sprintf("payload refused (%s): %s", r.Reason, r.Detail) }

func refuse(r Reason, format string, args ...any) error {
	return &Refusal{Reason: r, Detail: fmt.Sprintf(format, args...)}
}
