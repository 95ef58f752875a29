package cudaengine

import (
	"slices"
	"time"

	"ridgepoint/harness/device"
)

// slowing are the throttle reasons that spoil a sample. A power cap by software is how a heavy kernel runs on some cards, and
// is only reported.
var slowing = []string{"hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal"}

// State is what the card's monitor said since the last call of TakeState.
type State struct {
	SMClockMHz     [2]int // lowest and highest
	MemoryClockMHz [2]int
	TemperatureC   int
	PowerWatts     float64
	Throttle       []string
	Readings       int
}

// reading is what the monitor is asked for while the device works: answer has one Reading, or is closed without one. nil: there
// is no monitor.
type reading struct{ answer chan device.Reading }

// ask asks the monitor in a goroutine of its own: an answer takes a millisecond, as long as twenty small launches.
func (e *Engine) ask() *reading {
	if e.monitor == nil {
		return nil
	}
	q := &reading{answer: make(chan device.Reading, 1)}
	go func() {
		defer close(q.answer)
		if r, err := e.monitor.Read(); err == nil { // a reading is evidence, not a condition: a card whose monitor fails is still measured
			q.answer <- r
		}
	}()
	return q
}

// read waits for the answer and returns the clock and whether the card is throttled; without one both are zero.
func (e *Engine) read(q *reading) (clockMHz int, throttled bool) {
	if q == nil {
		return 0, false
	}
	r, ok := <-q.answer
	if !ok {
		return 0, false
	}
	span := func(to *[2]int, v int) {
		if to[0] == 0 || v < to[0] {
			to[0] = v
		}
		to[1] = max(to[1], v)
	}
	span(&e.state.SMClockMHz, r.SMClockMHz)
	span(&e.state.MemoryClockMHz, r.MemoryClockMHz)
	e.state.TemperatureC, e.state.PowerWatts = r.TemperatureC, r.PowerWatts
	e.state.Readings++
	for _, reason := range r.Throttle {
		throttled = throttled || slices.Contains(slowing, reason)
		if !slices.Contains(e.state.Throttle, reason) {
			e.state.Throttle = append(e.state.Throttle, reason)
		}
	}
	return r.SMClockMHz, throttled
}

// TakeState returns what was read since it was last called.
func (e *Engine) TakeState() State {
	s := e.state
	e.state = State{}
	slices.Sort(s.Throttle)
	return s
}

// Peaks returns the ceilings that MeasurePeaks measured.
func (e *Engine) Peaks() Peaks { return e.peaks }

// Monitor returns the card's monitor, or nil.
func (e *Engine) Monitor() *device.Monitor { return e.monitor }

// DeviceFlush returns the part of DeviceBusy in which caches were flushed before the launches of bursts, with the wait for it.
func (e *Engine) DeviceFlush() time.Duration {
	d := e.flushed
	e.flushed = 0
	return d
}

// DeviceBusy returns the time that the device spent on candidates' stages since it was last called: from the first thing
// queued of each burst or launch to its last, by events.
func (e *Engine) DeviceBusy() time.Duration {
	d := e.worked
	e.worked = 0
	return d
}
