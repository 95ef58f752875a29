package cudaengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"ridgepoint/harness/device"
)

// Peaks are ceilings measured on the device with the engine's own kernels; zero where they mean nothing.
type Peaks struct {
	BytesPerSecond float64       `json:"bytes_per_second"` // of a large copy, bytes read plus bytes written
	FLOPsPerSecond float64       `json:"flops_per_second"` // of plain float32 fused multiply-adds
	EmptyLaunch    time.Duration `json:"empty_launch_ns"`  // between events round an empty kernel, behind a flush
}

// fmaRounds is the length of rp_fma's chains: about 4 ms on an H200.
const fmaRounds = 4096

// MeasurePeaks measures the device's ceilings once, under a load that whoever measures on the device at that time would see. Without it
// they are zero, as on the emulated device.
func (e *Engine) MeasurePeaks(context.Context) error {
	if e.Emulated() || e.peaks != (Peaks{}) {
		return nil
	}
	return e.do(setupLimit, func(s *device.Session) error {
		err := e.warm(s)
		if err == nil {
			e.peaks, err = e.measurePeaks(s)
		}
		e.busy = time.Now()
		return err
	})
}

// measurePeaks takes the best of a few runs of each; about 20 ms on an H200.
func (e *Engine) measurePeaks(s *device.Session) (Peaks, error) {
	const copyBytes = 1 << 30
	size := min(int64(copyBytes), e.info.MemoryByte/16)
	from, err := s.Alloc(size)
	if err != nil {
		return Peaks{}, err
	}
	to, err := s.Alloc(size)
	if err != nil {
		return Peaks{}, errors.Join(err, s.Free(from))
	}
	blocks := 16 * e.info.Limits.SMs
	fill := new(device.Args).Ptr(from).Uint64(uint64(size / 4)).Uint64(1)
	if err := e.helpers.launch(s, e.stream, "rp_fill", blocks, fill); err != nil {
		return Peaks{}, err
	}
	var p Peaks
	copying, err := e.best(s, 5, "rp_copy", blocks, new(device.Args).Ptr(to).Ptr(from).Uint64(uint64(size/16)), false)
	if err != nil {
		return p, err
	}
	fma, err := e.best(s, 3, "rp_fma", blocks, new(device.Args).Ptr(to).Int32(fmaRounds), false)
	if err != nil {
		return p, err
	}
	if p.EmptyLaunch, err = e.best(s, 21, "rp_empty", 1, new(device.Args), true); err != nil {
		return p, err
	}
	p.BytesPerSecond = 2 * float64(size) / copying.Seconds()
	p.FLOPsPerSecond = 16 * fmaRounds * helperThreads * float64(blocks) / fma.Seconds()
	return p, errors.Join(s.Free(from), s.Free(to))
}

// best returns the least of n timings of a helper, or with flush the median of n behind a flush.
func (e *Engine) best(s *device.Session, n int, name string, blocks int, args *device.Args, flush bool) (time.Duration, error) {
	begins, ends, err := e.eventPairs(s, n)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if flush {
			if err := s.Memset(e.stream, e.flush, 0, e.flushN); err != nil {
				return 0, err
			}
		}
		err := errors.Join(s.Record(begins[i], e.stream), e.helpers.launch(s, e.stream, name, blocks, args), s.Record(ends[i], e.stream))
		if err != nil {
			return 0, err
		}
	}
	if err := s.Wait(e.stream); err != nil {
		return 0, err
	}
	all := make([]time.Duration, n)
	for i := range n {
		if all[i], err = s.Elapsed(begins[i], ends[i]); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	if flush {
		return all[n/2], nil
	}
	return all[0], nil
}

// Idle clocks are a fifth of busy ones; idleAfter is how long the device may have stood still before warmFor of load.
const (
	idleAfter = 200 * time.Millisecond
	warmFor   = 20 * time.Millisecond
)

// warm brings the clocks up with a fixed load when the device has stood still.
func (e *Engine) warm(s *device.Session) error {
	if e.Emulated() || time.Since(e.busy) < idleAfter {
		return nil
	}
	args := new(device.Args).Ptr(e.flush).Int32(fmaRounds)
	blocks := int(min(16*int64(e.info.Limits.SMs), e.flushN/(4*helperThreads)))
	for start := time.Now(); time.Since(start) < warmFor; {
		if err := errors.Join(e.helpers.launch(s, e.stream, "rp_fma", blocks, args), s.Wait(e.stream)); err != nil {
			return err
		}
	}
	return nil
}
