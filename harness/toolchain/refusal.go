package toolchain

import "ridgepoint/harness"

// Refusal is a compiler's no to a candidate: a result, not an error.
type Refusal struct {
	Reason      string // one line: the first error with its place, or the limit that was passed
	Diagnostics []harness.Diagnostic
	Limit       bool // the compiler ran past its wall time, memory or output
}
