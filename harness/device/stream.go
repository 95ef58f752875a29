package device

import (
	"time"
	"unsafe"
)

// Stream is a queue of work. The zero Stream is the device's default one.
type Stream uintptr

// Event marks a point in a stream.
type Event uintptr

// NewStream makes a stream that does not wait for the default one.
func (s *Session) NewStream() (Stream, error) {
	var p uintptr
	const nonBlocking = 1
	err := s.driver.call(fnStreamCreate, uintptr(unsafe.Pointer(&p)), nonBlocking)
	return Stream(p), err
}

// FreeStream destroys the stream once its work is done.
func (s *Session) FreeStream(st Stream) error { return s.driver.call(fnStreamDestroy, uintptr(st)) }

// Wait blocks until everything queued on the stream has run. Errors of kernels show here.
func (s *Session) Wait(st Stream) error { return s.driver.call(fnStreamSync, uintptr(st)) }

// NewEvent makes an event that records time.
func (s *Session) NewEvent() (Event, error) {
	var p uintptr
	err := s.driver.call(fnEventCreate, uintptr(unsafe.Pointer(&p)), 0)
	return Event(p), err
}

// FreeEvent destroys the event.
func (s *Session) FreeEvent(e Event) error { return s.driver.call(fnEventDestroy, uintptr(e)) }

// Record queues the event on the stream.
func (s *Session) Record(e Event, st Stream) error {
	return s.driver.call(fnEventRecord, uintptr(e), uintptr(st))
}

// WaitEvent blocks until the event has happened.
func (s *Session) WaitEvent(e Event) error { return s.driver.call(fnEventSync, uintptr(e)) }

// Elapsed returns the time from one recorded event to a later one, both having happened. The driver counts in about half
// microseconds.
func (s *Session) Elapsed(from, to Event) (time.Duration, error) {
	var ms float32
	if err := s.driver.call(fnEventElapsed, uintptr(unsafe.Pointer(&ms)), uintptr(from), uintptr(to)); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * 1e6), nil
}
