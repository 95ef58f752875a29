// Package verifytest is a device in memory for tests of verification and timing: kernels are Go functions over the buffers,
// laps are what a script says, and every duty of a verify.Bench can be switched off, to show that a test notices.
package verifytest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Call is one launch as a kernel sees it. State lives as long as the loaded module.
type Call struct {
	Size     harness.Size
	Buffers  [][]byte // per tensor of the task, with zone bytes more behind the end than they should have
	Elements []int64  // per tensor
	Count    int      // of launches of this module so far, from 1
	State    map[string]any
}

// Get reads element i of a float32 tensor.
func (c *Call) Get(tensor int, i int64) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(c.Buffers[tensor][4*i:]))
}

// Set writes element i of a float32 tensor.
func (c *Call) Set(tensor int, i int64, v float32) {
	binary.LittleEndian.PutUint32(c.Buffers[tensor][4*i:], math.Float32bits(v))
}

// Duties that can be switched off by name.
const (
	DutyWrite   = "rewrite inputs in place"
	DutyPoison  = "poison outputs"
	DutyZones   = "red zones"
	DutyInputs  = "input contents"
	DutyLate    = "late writes"
	DutyReload  = "reload the module"
	DutyProtect = "write-protect inputs"
	DutyWhole   = "compare every launch"
	DutyFinite  = "NaN is never within tolerance"
	DutyProject = "projections are bounded"
)

// Engine is the device. The zero values of its fields but Kernel are complete.
type Engine struct {
	Kernel func(c *Call)
	// LateFunc runs after the launch has returned and before it is judged: a thread that was left behind.
	LateFunc func(c *Call)
	// LapFunc is the time of a launch; nil: 100 us each. launch counts from 1 within a module.
	LapFunc func(c *Call, shot verify.Shot) verify.Lap
	Off     map[string]bool
	T       verify.Traits

	// Log holds the name of every operation in order; Opened every module that was opened.
	Log    []string
	Opened []verify.Module

	state *state
}

type state struct {
	count int
	vars  map[string]any
}

var _ verify.Engine = (*Engine)(nil)

// zone is the red zone on each side, in bytes.
const zone = 256

// Traits returns T, for the cpu where T names no target.
func (e *Engine) Traits() verify.Traits {
	t := e.T
	if t.Target == harness.TargetInvalid {
		t.Target = harness.TargetCPU
	}
	if t.WholeCompareBytes == 0 {
		t.WholeCompareBytes = 16 << 20
	}
	if t.MemoryBytes == 0 {
		t.MemoryBytes = 1 << 30
	}
	t.HidesInputs = true
	return t
}

// Open loads a module: its state is fresh, unless that duty is off.
func (e *Engine) Open(_ context.Context, m verify.Module) (verify.Program, error) {
	e.Log, e.Opened = append(e.Log, "open"), append(e.Opened, m)
	if e.state == nil || !e.Off[DutyReload] {
		e.state = &state{vars: map[string]any{}}
	}
	return &program{engine: e, state: e.state, buffers: map[int64][][]byte{}}, nil
}

// Close does nothing.
func (e *Engine) Close() error { return nil }

type program struct {
	engine  *Engine
	state   *state
	buffers map[int64][][]byte
}

// Bind makes the buffers, or finds those of the last binding of the same sizes.
func (p *program) Bind(_ context.Context, l *verify.Layout) (verify.Bench, error) {
	b := &bench{program: p, layout: l}
	for _, e := range l.Plan.Tensors {
		b.memory = append(b.memory, make([]byte, zone+e.Bytes()+zone))
	}
	for i, m := range b.memory {
		verify.Poison(m[:zone], harness.Float32, uint64(2*i))
		verify.Poison(m[len(m)-zone:], harness.Float32, uint64(2*i+1))
	}
	return b, nil
}

// Close does nothing.
func (p *program) Close() error { return nil }

type bench struct {
	program *program
	layout  *verify.Layout
	memory  [][]byte
	written *verify.Set
}

func (b *bench) log(name string)      { b.program.engine.Log = append(b.program.engine.Log, name) }
func (b *bench) off(duty string) bool { return b.program.engine.Off[duty] }
func (b *bench) body(i int) []byte    { return b.memory[i][zone : len(b.memory[i])-zone] }

// Write copies the inputs; with its duty off only once.
func (b *bench) Write(_ context.Context, s *verify.Set) error {
	b.log("write")
	if b.written != nil && b.off(DutyWrite) {
		return nil
	}
	b.written = s
	for i, raw := range s.Inputs {
		if raw != nil {
			copy(b.body(i), raw)
		}
	}
	return nil
}

// Poison fills the outputs.
func (b *bench) Poison(_ context.Context, seed uint64) error {
	b.log("poison")
	if b.off(DutyPoison) {
		return nil
	}
	for i, e := range b.layout.Plan.Tensors {
		if e.Role == harness.RoleOut {
			verify.Poison(b.body(i), e.DType, seed)
		}
	}
	return nil
}

// Flush is only noted.
func (b *bench) Flush(context.Context) error {
	b.log("flush")
	return nil
}

// Launch calls the kernel. A protected launch that changes an input dies of SIGSEGV.
func (b *bench) Launch(_ context.Context, shot verify.Shot) (verify.Lap, error) {
	b.log("launch")
	e := b.program.engine
	c := &Call{Size: b.layout.Size, State: b.program.state.vars}
	for i, x := range b.layout.Plan.Tensors {
		c.Buffers, c.Elements = append(c.Buffers, b.memory[i][zone:]), append(c.Elements, x.Elements)
	}
	for range max(1, shot.Repeats) {
		b.program.state.count++
		c.Count = b.program.state.count
		if e.Kernel(c); shot.Protect && !b.off(DutyProtect) && c.State["touched"] != nil {
			return verify.Lap{}, &verify.Stop{Fault: harness.FaultCrash, Reason: "died of SIGSEGV", Evidence: harness.Evidence{Kind: verify.KindCrash, Signal: "SIGSEGV"}}
		}
	}
	lap := verify.Lap{Kernels: time.Duration(max(1, shot.Repeats)) * 100 * time.Microsecond}
	if e.LapFunc != nil {
		lap = e.LapFunc(c, shot)
	}
	if e.LateFunc != nil {
		before := append([]byte(nil), b.body(len(b.memory)-1)...)
		e.LateFunc(c)
		if string(before) != string(b.body(len(b.memory)-1)) && !b.off(DutyLate) {
			lap.Late = &verify.Late{Tensor: len(b.memory) - 1}
		}
	}
	return lap, nil
}

// Breach looks at red zones and inputs.
func (b *bench) Breach(_ context.Context, s *verify.Set) (*verify.Breach, error) {
	b.log("breach")
	for i, m := range b.memory {
		name := b.layout.Plan.Tensors[i].Name
		if b.off(DutyZones) {
			break
		}
		if at := verify.FirstChange(m[:zone], harness.Float32, uint64(2*i)); at >= 0 {
			return &verify.Breach{Kind: verify.KindRedZone, Tensor: name, Offset: at - zone}, nil
		}
		if at := verify.FirstChange(m[len(m)-zone:], harness.Float32, uint64(2*i+1)); at >= 0 {
			return &verify.Breach{Kind: verify.KindRedZone, Tensor: name, Offset: at}, nil
		}
	}
	for i, raw := range s.Inputs {
		if raw != nil && b.layout.Plan.Tensors[i].Role == harness.RoleIn && string(raw) != string(b.body(i)) && !b.off(DutyInputs) && !b.off(DutyWrite) {
			return &verify.Breach{Kind: verify.KindInputsChanged, Tensor: b.layout.Plan.Tensors[i].Name}, nil
		}
	}
	return nil, nil
}

// Compare compares on the host, by projections past WholeCompareBytes.
func (b *bench) Compare(_ context.Context, s *verify.Set, seed uint64, whole bool) ([]verify.Comparison, error) {
	b.log(fmt.Sprintf("compare whole=%t", whole))
	var out []verify.Comparison
	if b.off(DutyWrite) {
		s = b.written
	}
	for _, i := range b.layout.Outputs() {
		e := b.layout.Plan.Tensors[i]
		if b.off(DutyFinite) {
			b.forgive(i, e, s.Expected[i])
		}
		switch {
		case b.off(DutyProject) && !whole:
			out = append(out, verify.Comparison{Tensor: i, Elements: e.Elements, First: -1})
		case b.off(DutyWhole) && b.program.state.count > 2:
			out = append(out, verify.Comparison{Tensor: i, Elements: e.Elements, First: -1})
		case !whole && e.Bytes() > b.program.engine.Traits().WholeCompareBytes:
			out = append(out, verify.ProjectHost(i, e, b.body(i), s.Expected[i], s.Tolerances[i], seed))
		default:
			out = append(out, verify.CompareHost(i, e, b.body(i), s.Expected[i], s.Tolerances[i], seed))
		}
	}
	return out, nil
}

// forgive puts the expected value wherever the output is NaN: what a comparison by d > tol does.
func (b *bench) forgive(i int, e task.Extent, want []float64) {
	got := make([]float64, e.Elements)
	verify.Decode(got, b.body(i), e, 0)
	for k := range got {
		if math.IsNaN(got[k]) {
			got[k] = want[k]
		}
	}
	verify.Encode(b.body(i), got, e)
}

// Digest sums up the outputs' bits.
func (b *bench) Digest(context.Context) (uint64, error) {
	h := fnv.New64a()
	for _, i := range b.layout.Outputs() {
		_, _ = h.Write(b.body(i)) // a hash never fails to write
	}
	return h.Sum64(), nil
}

// Close does nothing.
func (b *bench) Close() error { return nil }
