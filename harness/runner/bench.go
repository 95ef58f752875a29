//go:build linux

package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// bench is a program bound to the buffers of one size.
type bench struct {
	engine  *Engine
	program *program
	layout  *verify.Layout
	regions []region
	mem     []byte // the arena, as long as this size needs it
	outputs []extent
	buf     []byte
	passed  map[outcome]passing

	last goAnswer
}

var _ verify.Digester = (*bench)(nil)

// Bind lays the buffers out in the arena and tells the child.
func (p *program) Bind(ctx context.Context, l *verify.Layout) (verify.Bench, error) {
	e := p.engine
	extents := append(slices.Clone(l.Plan.Tensors), l.Plan.Workspace...)
	regions, guards, length := place(extents, len(l.Plan.Tensors))
	if err := e.arena.grow(length); err != nil {
		return nil, err
	}
	b := &bench{engine: e, program: p, layout: l, regions: regions, mem: e.arena.mem[:length], buf: make([]byte, maxPacket), passed: map[outcome]passing{}}
	order := bindOrder{Length: int64(len(e.arena.mem)), Guards: guards}
	for _, r := range regions {
		where := extent{r.Offset, r.Length}
		switch {
		case r.scratch && r.Init == "zero":
			order.Clears = append(order.Clears, where)
		case r.scratch:
		case r.Role == harness.RoleIn:
			// Whole pages, the buffer's own red zones with it; guards lie between buffers.
			order.ReadOnly = append(order.ReadOnly, extent{r.Low, r.High - r.Low})
		default:
			order.Outputs = append(order.Outputs, where)
		}
	}
	b.outputs = order.Outputs
	for _, launch := range l.Plan.Launches {
		c := call{Kernel: slices.IndexFunc(l.Source.Launches, func(x harness.Launch) bool { return x.Kernel == launch.Kernel })}
		for _, a := range launch.Args {
			arg, err := b.argument(a)
			if err != nil {
				return nil, err
			}
			c.Args = append(c.Args, arg)
		}
		order.Launches = append(order.Launches, c)
	}
	packet, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	if len(packet) >= maxPacket {
		return nil, fmt.Errorf("the launch plan of %s takes %d bytes, over %d: use fewer launches", l.Source.Name, len(packet), maxPacket)
	}
	e.activate(p)
	if _, err := p.process.ask(ctx, append([]byte{opBind}, packet...), startTimeout, b.buf); err != nil {
		return nil, err
	}
	fillZones(b.mem, regions)
	return b, nil
}

func (b *bench) argument(a task.Arg) (argument, error) {
	switch a.Kind {
	case task.ArgTensor:
		return argument{Pointer: true, Offset: b.regions[a.Index].Offset}, nil
	case task.ArgWorkspace:
		return argument{Pointer: true, Offset: b.regions[len(b.layout.Plan.Tensors)+a.Index].Offset}, nil
	case task.ArgInt:
		return argument{DType: a.DType, Int: a.Int}, nil
	case task.ArgScalar:
		if a.DType.IsFloat() && a.DType.SizeBytes() < 4 {
			return argument{}, &verify.Stop{Fault: harness.FaultLaunch, Reason: fmt.Sprintf("scalar %s is %s, which C passes in no register: make it float32", a.Name, a.DType), Evidence: harness.Evidence{Kind: verify.KindLaunch}}
		}
		return argument{DType: a.DType, Float: a.Scalar, Int: int64(a.Scalar)}, nil
	default:
		return argument{}, &verify.Stop{Fault: harness.FaultLaunch, Reason: fmt.Sprintf("argument %s is a tensor map, which the cpu target does not have", a.Name), Evidence: harness.Evidence{Kind: verify.KindLaunch}}
	}
}

func (b *bench) bytes(i int) []byte {
	r := &b.regions[i]
	return b.mem[r.Offset : r.Offset+r.Length]
}

// Write copies the set's inputs into the buffers.
func (b *bench) Write(_ context.Context, s *verify.Set) error {
	for i, raw := range s.Inputs {
		if raw != nil {
			copy(b.bytes(i), raw)
		}
	}
	return nil
}

// Poison fills outputs and unset scratch.
func (b *bench) Poison(_ context.Context, seed uint64) error {
	for i := range b.regions {
		if r := &b.regions[i]; r.Role == harness.RoleOut || r.scratch {
			verify.Poison(b.bytes(i), r.DType, seed)
		}
	}
	return nil
}

// sweepLimit bounds the sweep: a cloud's last-level cache is shared, and its owner's whole size is not ours to fill.
const sweepLimit = 64 << 20

// Flush reads and writes memory of 1.1 times the last-level cache, 64 MiB at most.
func (b *bench) Flush(context.Context) error {
	e := b.engine
	if e.sweep == nil {
		n := e.host.LLCBytes + e.host.LLCBytes/10
		if n <= 0 || n > sweepLimit {
			n = sweepLimit
		}
		e.sweep = make([]byte, n)
	}
	for i := 0; i < len(e.sweep); i += 64 {
		e.sweep[i]++
	}
	return nil
}

// Launch runs the kernels once or Repeats times.
func (b *bench) Launch(ctx context.Context, shot verify.Shot) (verify.Lap, error) {
	b.engine.activate(b.program)
	_, told := b.program.process.queues.waited()
	steal, used := stealTicks(b.engine.cores), b.program.process.processorTime()
	begin := time.Now()
	answer, err := b.program.process.ask(ctx, encodeGo(shot.Protect, max(1, shot.Repeats), shot.Seed), shot.Limit, b.buf)
	wall := time.Since(begin)
	used = b.program.process.processorTime() - used
	if err != nil {
		return verify.Lap{Wall: wall}, err
	}
	if err := b.last.decode(answer); err != nil {
		return verify.Lap{Wall: wall}, &verify.Stop{Fault: harness.FaultCrash, Reason: "broke the connection to the harness: " + err.Error(), Evidence: harness.Evidence{Kind: verify.KindExit}}
	}
	if b.last.nanoseconds < 0 {
		return verify.Lap{Wall: wall}, &verify.Stop{Fault: harness.FaultIncorrect, Reason: "the clock was tampered with: it ran backwards", Evidence: harness.Evidence{Kind: verify.KindClock}}
	}
	waited := verify.Unknown
	if grown, ok := b.program.process.queues.waited(); ok && told {
		waited = grown
	}
	return verify.Lap{Kernels: time.Duration(b.last.nanoseconds), Wall: wall, Busy: used / time.Duration(b.program.cores), Switches: b.last.switches, Waited: waited,
		Steal: stealTicks(b.engine.cores) != steal, Late: b.late(shot.Seed)}, nil
}

// late compares what the child read right after its kernels had returned with what is there now.
func (b *bench) late(seed uint64) *verify.Late {
	var out *verify.Late
	outputs := b.layout.Outputs()
	probePlaces(b.outputs, seed, func(i, output int, offset int64) {
		if now := binary.LittleEndian.Uint64(b.mem[offset:]); now != b.last.probes[i] && out == nil {
			out = &verify.Late{Tensor: outputs[output], Offset: offset - b.outputs[output].Offset}
		}
	})
	return out
}

// Breach looks at all red zones and at every input.
func (b *bench) Breach(_ context.Context, s *verify.Set) (*verify.Breach, error) {
	if d := damagedZone(b.mem, b.regions); d != nil {
		return d, nil
	}
	for i, raw := range s.Inputs {
		r := &b.regions[i]
		if raw == nil || r.Role != harness.RoleIn {
			continue
		}
		if now := b.bytes(i); !bytes.Equal(now, raw) {
			at := 0
			for now[at] == raw[at] {
				at++
			}
			return &verify.Breach{Kind: verify.KindInputsChanged, Tensor: r.Name, Index: int64(at / r.DType.SizeBytes())}, nil
		}
	}
	return nil, nil
}

// passing is a whole comparison that found nothing, and the bits of the output it looked at.
type passing struct {
	bits       uint64
	comparison verify.Comparison
}

// outcome names what a passing comparison was of.
type outcome struct {
	set    *verify.Set
	tensor int
}

// Compare compares every output whole, or by projections where it is larger than Traits.WholeCompareBytes. An output with the
// very bits of one that a whole comparison with the same set has passed passes as that did, which takes a tenth of the time.
func (b *bench) Compare(_ context.Context, s *verify.Set, seed uint64, whole bool) ([]verify.Comparison, error) {
	var out []verify.Comparison
	for _, i := range b.layout.Outputs() {
		r := &b.regions[i]
		key, bits := outcome{s, i}, verify.Bits(b.bytes(i))
		if known, ok := b.passed[key]; ok && known.bits == bits {
			out = append(out, known.comparison)
			continue
		}
		if !whole && r.Length > b.engine.Traits().WholeCompareBytes {
			out = append(out, verify.ProjectHost(i, r.Extent, b.bytes(i), s.Expected[i], s.Tolerances[i], seed))
			continue
		}
		c := verify.CompareHost(i, r.Extent, b.bytes(i), s.Expected[i], s.Tolerances[i], seed)
		if c.Mismatches == 0 {
			b.passed[key] = passing{bits, c}
		}
		out = append(out, c)
	}
	return out, nil
}

// Digest sums up the outputs' bits.
func (b *bench) Digest(context.Context) (uint64, error) {
	var sum uint64
	for _, i := range b.layout.Outputs() {
		sum = verify.Mix(sum, verify.Bits(b.bytes(i)))
	}
	return sum, nil
}

// Close leaves the buffers for the next size.
func (b *bench) Close() error { return nil }
