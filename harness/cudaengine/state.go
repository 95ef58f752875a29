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

// read asks the monitor while the device works, so that it costs the device no time. It returns the clock and whether the
// card is throttled; without a monitor both are zero.
func (e *Engine) read() (clockMHz int, throttled bool) {
	if e.monitor == nil {
		return 0, false
	}
	r, err := e.monitor.Read()
	if err != nil {
		return 0, false // a reading is evidence, not a condition: a card whose monitor fails is still measured
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

// Peaks returns the ceilings that New measured.
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
