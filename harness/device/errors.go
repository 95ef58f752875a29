package device

import (
	"errors"
	"fmt"
)

// ErrNoDriver is returned when the driver's library cannot be opened, or finds no device: there is no card, or its driver is
// not installed.
var ErrNoDriver = errors.New("no accelerator driver")

// Error is a driver call that returned something other than success.
type Error struct {
	Call string // the C function
	Code int    // as returned
	Name string // CUDA_ERROR_..., hipError...; "" when the driver has no name for it
}

// Error returns the call, the code's name and the code.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
}

// Codes that this package and its users tell apart; CUDA and HIP share their numbers.
const (
	codeInvalidValue        = 1
	codeOutOfMemory         = 2
	codeNoDevice            = 100
	codeInvalidDevice       = 101
	codeNotReady            = 600
	codeLaunchOutOfResource = 701
	codeCooperativeTooLarge = 720
	codeInvalidClusterSize  = 912
	codeNotSupported        = 801
)

// Sticky reports whether the context is lost: every later call on it returns the same error, so that only a new process
// helps (CUDA driver API, CUresult: errors that "leave the process in an inconsistent state").
func (e *Error) Sticky() bool {
	switch e.Code {
	case 214, 220, 221, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999:
		return true
	default:
		return false
	}
}

// Refused reports whether the driver declined a launch without running it: a result about the candidate, not a fault of
// the device.
func (e *Error) Refused() bool {
	switch e.Code {
	case codeInvalidValue, codeLaunchOutOfResource, codeCooperativeTooLarge, codeInvalidClusterSize, codeNotSupported, 98, 222, 300, 301, 500:
		return true
	default:
		return false
	}
}

// OutOfMemory reports whether the device had no memory left.
func (e *Error) OutOfMemory() bool { return e.Code == codeOutOfMemory }

// AsError returns the driver error in err's chain, or nil.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
