package llm

import (
	"errors"
	"fmt"
	"time"
)

// ErrBudget says that a budget in tokens or money does not allow the call. Nothing was sent.
var ErrBudget = errors.New("the model budget is spent")

// ErrNoMore says that a finite source of replies (a recording, a library) has no more to offer.
var ErrNoMore = errors.New("no more replies to offer")

// ErrorKind says what went wrong with a call, and thereby whether another attempt makes sense.
type ErrorKind uint8

// The kinds of errors. The zero ErrorKind is invalid.
const (
	KindInvalid   ErrorKind = iota
	KindRateLimit           // 429
	KindServer              // 5xx, or an error inside a stream
	KindNetwork             // refused, reset, name not found
	KindCut                 // the stream ended before the reply did
	KindStall               // nothing came for the stall timeout
	KindTimeout             // the whole call took too long
	KindGarbage             // the answer is not a chat completion
	KindTooLarge            // the answer is over the size limit
	KindAuth                // 401, 403: the key is missing or wrong
	KindQuota               // the account has no credit left
	KindRefused             // any other 4xx: the request itself is at fault
	KindProgram             // an external program failed
)

var kindNames = [...]string{"invalid", "rate_limit", "server", "network", "cut", "stall", "timeout", "garbage", "too_large",
	"auth", "quota", "refused", "program"}

// String returns the kind's name as events spell it.
func (k ErrorKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("ErrorKind(%d)", uint8(k))
}

// Retryable reports whether the same call may succeed later without a person doing anything.
func (k ErrorKind) Retryable() bool {
	switch k {
	case KindRateLimit, KindServer, KindNetwork, KindCut, KindStall, KindTimeout, KindGarbage, KindProgram:
		return true
	default:
		return false
	}
}

// Error is a call that brought no reply. Its text is free of secrets.
type Error struct {
	Kind       ErrorKind
	Model      string        // name in the configuration
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // what the endpoint asked for, 0 when it did not
	Calls      int           // requests sent before giving up
	Wasted     Usage         // estimate of what cut and stalled attempts used all the same
	// CostMicroUSD is what Wasted costs.
	CostMicroUSD int64
	Reason       string // what happened and what to do
	Cause        error
}

// Error returns the model, the kind and the reason.
func (e *Error) Error() string {
	s := fmt.Sprintf("model %s: %s: %s", e.Model, e.Kind, e.Reason)
	if e.Calls > 1 {
		s += fmt.Sprintf(" (after %d calls)", e.Calls)
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
