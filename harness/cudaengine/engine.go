package cudaengine

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// HelperSource is the CUDA source of the engine's own kernels; Config.Helpers is its compiled image.
//
//go:embed helpers.cu
var HelperSource string

// HelperKernels are the kernels of HelperSource.
var HelperKernels = []string{
	"rp_prepare", "rp_zones_fill", "rp_diff", "rp_turn", "rp_compare", "rp_expect", "rp_exchange", "rp_scribble", "rp_fill", "rp_read", "rp_copy", "rp_fma", "rp_empty",
}

// Config says which device an Engine takes.
type Config struct {
	Driver  *device.Driver
	Device  int
	Helpers []byte // HelperSource compiled for the device's arch
	// MasterBytes bounds what copies of inputs and expected values may take of the device's memory; 0: half of it.
	MasterBytes int64
	Monitor     *device.Monitor // NVML's, or nil
}

// Engine is one CUDA device. It is used by one goroutine at a time.
type Engine struct {
	ctx     *device.Context
	info    *device.Info
	helpers *helpers
	stream  device.Stream
	arena   arena
	zoned   *Bench // whose red zones were written last
	masters masters
	tables  tables
	mixing  arena // of inputs that nobody has seen
	slots   slots
	stage   stage
	poison  map[harness.DType]poisonBlock
	flush   device.Ptr
	flushN  int64
	sink    device.Ptr // a word that rp_scribble might write to
	signKey uint64
	proven  uint64 // keys of proofs drawn so far
	maskKey uint64
	maskPad uint64
	begins  []device.Event  // before launches
	ends    []device.Event  // after them
	span    [2]device.Event // round everything of a burst or a launch
	begun   bool            // the span's first event is recorded
	heat    [2]device.Event // round the warm-ups of a burst
	fences  []device.Event  // the same, of each launch of a burst
	monitor *device.Monitor // nil: none
	state   State
	peaks   Peaks
	busy    time.Time     // when the device last had work
	worked  time.Duration // since DeviceBusy was last called
	flushed time.Duration // since DeviceFlush was last called
	lost    atomic.Bool
}

// wholeCompareBytes is DESIGN.md's limit of outputs that every timed launch compares whole.
const wholeCompareBytes = 16 << 20

// setupLimit bounds what takes no candidate's code: allocating, copying, loading helpers.
const setupLimit = 60 * time.Second

// New opens the device and prepares its helpers, its stream and its flush buffer.
func New(_ context.Context, config Config) (*Engine, error) {
	ctx, err := config.Driver.Open(config.Device)
	if err != nil {
		return nil, err
	}
	e := &Engine{ctx: ctx, info: ctx.Info(), poison: map[harness.DType]poisonBlock{}, monitor: config.Monitor}
	var seed [24]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("draw the engine's keys: %w", err)
	}
	e.signKey, e.maskKey, e.maskPad = binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:]), binary.LittleEndian.Uint64(seed[16:])
	err = ctx.DoWithin(setupLimit, func(s *device.Session) error { return e.prepare(s, config) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", e.info.Name, err), ctx.Close())
	}
	return e, nil
}

func (e *Engine) prepare(s *device.Session, config Config) error {
	var err error
	if e.stream, err = s.NewStream(); err != nil {
		return err
	}
	if e.helpers, err = loadHelpers(s, config.Helpers); err != nil {
		return err
	}
	_, total, err := s.Memory()
	if err != nil {
		return err
	}
	e.masters.limit = config.MasterBytes
	if e.masters.limit == 0 {
		e.masters.limit = total / 2
	}
	e.flushN = FlushBytes(e.info.L2Bytes)
	if e.flush, err = s.Alloc(e.flushN); err != nil {
		return err
	}
	if e.sink, err = s.Alloc(256); err != nil {
		return err
	}
	e.masters.init()
	if err := e.tables.init(s); err != nil {
		return err
	}
	for i := range e.span {
		if e.span[i], err = s.NewEvent(); err != nil {
			return err
		}
		if e.heat[i], err = s.NewEvent(); err != nil {
			return err
		}
	}
	return nil
}

// Info describes the device.
func (e *Engine) Info() *device.Info { return e.info }

// Lost reports whether a hang or a sticky error has spoilt the context: the process must be replaced.
func (e *Engine) Lost() bool { return e.lost.Load() }

// Emulated reports whether the device is the emulator, on which no time means anything.
func (e *Engine) Emulated() bool { return e.info.Arch == device.Emulated }

// Traits says how this device is measured.
func (e *Engine) Traits() verify.Traits {
	return verify.Traits{
		Target: harness.TargetCUDA, FlushPerLaunch: true, WholeCompareBytes: wholeCompareBytes, MemoryBytes: e.info.MemoryByte / 4,
		Untimed: e.Emulated(), BytesPerSecond: e.peaks.BytesPerSecond, FLOPsPerSecond: e.peaks.FLOPsPerSecond,
	}
}

// Open loads a built module afresh.
func (e *Engine) Open(_ context.Context, m verify.Module) (verify.Program, error) {
	image, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, fmt.Errorf("read the build: %w", err)
	}
	p := &Program{engine: e, functions: map[string]device.Function{}, build: m.Build, image: image}
	err = e.do(max(m.Limit, time.Second), func(s *device.Session) (err error) {
		p.module, err = s.Load(image)
		return err
	})
	if err != nil {
		return nil, e.stop("load the module", err)
	}
	return p, nil
}

// Close gives the device back. A lost context cannot be given back: only the end of the process does that.
func (e *Engine) Close() error {
	if e.Lost() {
		return nil
	}
	return e.ctx.Close()
}

func (e *Engine) do(limit time.Duration, fn func(*device.Session) error) error {
	return e.ctx.DoWithin(limit, fn)
}

// stop turns a driver's error into a candidate's fault, or leaves it an error where the candidate is not to blame.
func (e *Engine) stop(doing string, err error) error {
	if errors.Is(err, device.ErrHung) {
		e.lost.Store(true)
		return &verify.Stop{Fault: harness.FaultTimeout, Reason: doing + ": the kernel did not end within its limit", Evidence: harness.Evidence{Kind: verify.KindTimeout}}
	}
	var s *verify.Stop
	if errors.As(err, &s) {
		return err
	}
	d := device.AsError(err)
	switch {
	case d == nil:
		return fmt.Errorf("%s: %w", doing, err)
	case d.Sticky():
		e.lost.Store(true)
		return &verify.Stop{Fault: harness.FaultCrash, Reason: fmt.Sprintf("%s: %v", doing, err), Evidence: harness.Evidence{Kind: verify.KindCrash, Signal: d.Name}}
	case d.Refused():
		return &verify.Stop{Fault: harness.FaultLaunch, Reason: fmt.Sprintf("%s: %v", doing, err), Evidence: harness.Evidence{Kind: verify.KindLaunch}}
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// fencesOf returns n events for what lies before flushes, made once and kept.
func (e *Engine) fencesOf(s *device.Session, n int) ([]device.Event, error) {
	for len(e.fences) < n {
		ev, err := s.NewEvent()
		if err != nil {
			return nil, err
		}
		e.fences = append(e.fences, ev)
	}
	return e.fences[:n], nil
}

// eventPairs returns n events for beginnings and n for ends, made once and kept. Both kinds lie apart: the driver keeps the
// time stamps of events made one after another side by side, and a pair's place in its cache line shows in its difference.
func (e *Engine) eventPairs(s *device.Session, n int) (begin, end []device.Event, err error) {
	for len(e.begins) < n || len(e.ends) < n {
		grow := max(n, 128) - len(e.begins)
		for _, to := range []*[]device.Event{&e.begins, &e.ends} {
			for range grow {
				ev, err := s.NewEvent()
				if err != nil {
					return nil, nil, err
				}
				*to = append(*to, ev)
			}
		}
	}
	return e.begins[:n], e.ends[:n], nil
}
