package cudaengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Bench is a program bound to the buffers of one size.
type Bench struct {
	program  *Program
	engine   *Engine
	layout   *verify.Layout
	extents  []task.Extent // tensors, then workspaces
	buffers  []placed
	all      []ready
	zones    device.Ptr
	zoneN    int
	before   []int64 // length of the red zone before each buffer
	outputs  []int
	prepared map[string]*prepared

	current   *prepared // what Write or WriteMixed wrote last
	mixed     *prepared // of WriteMixed; nil until it is called
	start     uint64    // where the poison of the last Poison starts
	stale     bool      // current is not yet queued
	sweepNext bool      // Flush was asked for
	reads     bool      // a launch reads much of the L2 cache's size and hardly writes
	inputs    int64     // bytes of all inputs
	rewrites  bool      // a tensor is both input and output: each launch needs it written anew
	judgedAt  *prepared // what the findings of the last Launch are about; nil: there are none

	bound   bool         // its tables count among the engine's
	owned   []device.Ptr // tables that did not fit, freed with the bench
	passing []*master    // of sets without a key, freed with the bench
}

// prepared are the tables that rewriting and inspecting one set needs.
type prepared struct {
	master       *master
	moves, tiles device.Ptr
	moveBlocks   int
	inspectTiles device.Ptr
	inspectN     int
	regions      device.Ptr
	outputs      device.Ptr // helpers.cu's Output, one an output
}

func (b *Bench) bind(s *device.Session) error {
	e := b.engine
	e.tables.users++
	b.bound = true
	b.extents = append(append([]task.Extent(nil), b.layout.Plan.Tensors...), b.layout.Plan.Workspace...)
	_, _, need := place(b.extents, 0)
	if err := e.arena.reserve(s, need); err != nil {
		if d := device.AsError(err); d != nil && d.OutOfMemory() {
			return launchStop(fmt.Sprintf("the buffers of size %s need %d MB, more than the device has free", b.layout.Size, need>>20), nil)
		}
		return err
	}
	buffers, zones, _ := place(b.extents, e.arena.base)
	b.buffers, b.zoneN = buffers, len(zones)/zoneBytes
	for i := range buffers {
		b.before = append(b.before, int64(binary.LittleEndian.Uint64(zones[2*i*zoneBytes+8:])))
	}
	b.outputs = b.layout.Outputs()
	b.inputs, b.reads = traffic(b.extents, e.info.L2Bytes)
	b.rewrites = slices.ContainsFunc(b.extents, func(x task.Extent) bool { return x.Role == harness.RoleInOut })
	var err error
	if b.zones, err = b.table(s, zones); err != nil {
		return err
	}
	if err := b.fillZones(s); err != nil {
		return err
	}
	b.all, err = b.launches(s, buffers)
	return err
}

// fillZones writes the red zones. It runs at every binding: other layouts share the memory.
func (b *Bench) fillZones(s *device.Session) error {
	return b.engine.helpers.launch(s, b.engine.stream, "rp_zones_fill", b.zoneN, new(device.Args).Ptr(b.zones))
}

// table brings a table to the device for as long as the bench lives.
func (b *Bench) table(s *device.Session, w words) (device.Ptr, error) {
	at, own, err := b.engine.tables.put(s, b.engine.stream, w)
	if own {
		b.owned = append(b.owned, at)
	}
	return at, err
}

// use returns the tables of a set, made now or earlier.
func (b *Bench) use(s *device.Session, set *verify.Set) (*prepared, error) {
	if p, ok := b.prepared[set.Key]; ok && set.Key != "" {
		return p, nil
	}
	m, err := b.engine.masterOf(s, set, b.layout.Plan.Tensors)
	if err != nil {
		return nil, err
	}
	if set.Key == "" {
		b.passing = append(b.passing, m)
	}
	p := &prepared{master: m}
	blocks := 4 * max(s.Info().Limits.SMs, 1)
	if err := b.moveTables(s, p, blocks); err != nil {
		return nil, err
	}
	if err := b.inspectTables(s, p, blocks); err != nil {
		return nil, err
	}
	var w words
	for _, i := range b.outputs {
		x, tol := b.extents[i], set.Tolerances[i]
		block, err := b.engine.poisonOf(s, x.DType)
		if err != nil {
			return nil, err
		}
		w = w.u64(uint64(b.buffers[i].at)).u64(uint64(m.expected[i])).u64(uint64(block.at)).u64(uint64(block.period)).u64(uint64(x.Span))
		w = w.u32(uint32(x.DType)).u32(0).u64(math.Float64bits(tol.Abs)).u64(math.Float64bits(tol.Rel))
	}
	if p.outputs, err = b.table(s, w); err != nil {
		return nil, err
	}
	if set.Key != "" {
		m.pinned++
		b.prepared[set.Key] = p
	}
	return p, nil
}

// moveTables lists what happens to each buffer before a launch: inputs are copied, outputs and scratch are poisoned.
func (b *Bench) moveTables(s *device.Session, p *prepared, blocks int) (err error) {
	var moves words
	var lengths []int64
	for i, x := range b.extents {
		if x.Role != harness.RoleInvalid && x.Role != harness.RoleOut {
			moves = moves.u64(uint64(b.buffers[i].at)).u64(uint64(p.master.inputs[i])).u64(uint64(x.Bytes())).u64(0).u32(0).u32(0)
		} else {
			block, err := b.engine.poisonOf(s, x.DType)
			if err != nil {
				return err
			}
			moves = moves.u64(uint64(b.buffers[i].at)).u64(uint64(block.at)).u64(uint64(x.Bytes())).u64(uint64(block.period)).u32(1).u32(0)
		}
		lengths = append(lengths, x.Bytes())
	}
	table, n := tiles(lengths, blocks)
	p.moveBlocks = n
	if p.moves, err = b.table(s, moves); err != nil {
		return err
	}
	p.tiles, err = b.table(s, table)
	return err
}

// inspectTables lists what is looked at after a launch: every red zone, and every input against its master.
func (b *Bench) inspectTables(s *device.Session, p *prepared, blocks int) (err error) {
	lengths := make([]int64, 0, b.zoneN+len(b.extents))
	for i := range b.extents {
		lengths = append(lengths, b.before[i], redZoneBytes)
	}
	var regions words
	for i, x := range b.layout.Plan.Tensors {
		if x.Role == harness.RoleIn {
			regions = regions.u64(uint64(b.buffers[i].at)).u64(uint64(p.master.inputs[i])).u64(uint64(x.Bytes())).u32(uint32(i)).u32(0)
			lengths = append(lengths, x.Bytes())
		}
	}
	if len(regions) == 0 {
		regions = make(words, regionBytes)
	}
	if p.regions, err = b.table(s, regions); err != nil {
		return err
	}
	table, n := tiles(lengths, blocks)
	p.inspectN = n
	p.inspectTiles, err = b.table(s, table)
	return err
}

// Write rewrites all inputs in place. The copying is queued by Poison, which follows, or by Launch where it does not.
func (b *Bench) Write(_ context.Context, set *verify.Set) error {
	err := b.engine.do(setupLimit, func(s *device.Session) (err error) {
		b.current, err = b.use(s, set)
		b.stale = true
		return err
	})
	return b.wrap("rewrite the inputs", err)
}

func (b *Bench) rewrite(s *device.Session, p *prepared, start uint64) error {
	return b.engine.helpers.launch(s, b.engine.stream, "rp_prepare", p.moveBlocks, new(device.Args).Ptr(p.moves).Ptr(p.tiles).Uint64(start))
}

// scribble spoils what a launch finds in shared memory and registers.
func (b *Bench) scribble(s *device.Session, start uint64) error {
	return b.engine.helpers.scribble(s, b.engine.stream, mix(b.engine.signKey^start), b.engine.sink)
}

// Poison fills outputs and scratch, shared memory and registers, and makes the red zones whole again. The inputs of the last Write
// are rewritten with them.
func (b *Bench) Poison(_ context.Context, seed uint64) error {
	if b.current == nil {
		return errors.New("poison the outputs: Write must come first")
	}
	b.start = uint64(verify.PoisonStart(seed))
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		b.stale = false
		return errors.Join(b.rewrite(s, b.current, b.start), b.fillZones(s), b.scribble(s, b.start))
	})
	return b.wrap("poison the outputs", err)
}

// Launch runs the plan between two events, looks at zones and inputs, compares the outputs whole where there are expected
// values, and waits once for all of it.
func (b *Bench) Launch(_ context.Context, shot verify.Shot) (verify.Lap, error) {
	var lap verify.Lap
	b.judgedAt = nil
	err := b.engine.do(limitOf(shot.Limit), func(s *device.Session) error {
		if err := b.slots().reserve(s, b.engine.stream, b.slotBytes()); err != nil {
			return err
		}
		if err := b.timed(s, max(shot.Repeats, 1)); err != nil {
			return err
		}
		if p := b.current; p != nil {
			if err := b.inspect(s, p, 0, true, 0); err != nil {
				return err
			}
			for o := range b.outputs {
				if p.outputs == 0 {
					break // mixed inputs: nobody knows what is right
				}
				if err := b.compare(s, p, 0, o, b.start); err != nil {
					return err
				}
			}
		}
		if err := b.fetch(s, 1); err != nil {
			return err
		}
		took, err := s.Elapsed(b.engine.begins[0], b.engine.ends[0])
		lap.Kernels = took
		b.engine.worked += took
		b.engine.busy = time.Now()
		b.judgedAt = b.current
		return err
	})
	return lap, b.wrap("launch", err)
}

// timed queues what Write and Flush have left to do, and the plan between two events.
func (b *Bench) timed(s *device.Session, repeats int) error {
	begin, end, err := b.engine.eventPairs(s, 1)
	if err != nil {
		return err
	}
	if b.stale {
		b.stale = false
		if err := b.rewrite(s, b.current, b.start); err != nil {
			return err
		}
	}
	if b.sweepNext {
		b.sweepNext = false
		if err := b.sweep(s); err != nil {
			return err
		}
	}
	if err := s.Record(begin[0], b.engine.stream); err != nil {
		return err
	}
	for range repeats {
		if err := b.run(s, b.all, b.buffers); err != nil {
			return err
		}
	}
	return s.Record(end[0], b.engine.stream)
}

func (b *Bench) slots() *slots { return &b.engine.slots }

// slotBytes is a Breach and one Result for each output.
func (b *Bench) slotBytes() int64 { return breachBytes + int64(len(b.outputs))*resultBytes }

func (b *Bench) slot(i int) device.Ptr { return b.slots().at.Add(int64(i) * b.slotBytes()) }

func (b *Bench) result(i, output int) device.Ptr {
	return b.slot(i).Add(breachBytes + int64(output)*resultBytes)
}

// Inputs of more than inspectWholeBytes are looked at in full where a launch's outputs are, and in one of inspectEvery parts,
// drawn anew for each launch, elsewhere: a change in one place that every launch makes is seen in the first, and one that a
// tenth of 50 launches make escapes half of the time, while the inputs are rewritten before each launch anyway.
const (
	inspectWholeBytes = 4 << 20
	inspectEvery      = 8
)

// zonesOf starts the arguments of a kernel that looks at the red zones and the inputs; draw chooses the part of large inputs where
// whole is not asked for.
func (b *Bench) zonesOf(p *prepared, slot int, whole bool, draw uint64) *device.Args {
	every := uint32(1)
	if !whole && b.inputs > inspectWholeBytes {
		every = inspectEvery
	}
	return new(device.Args).Ptr(b.zones).Uint32(uint32(b.zoneN)).Ptr(p.regions).Ptr(p.inspectTiles).Ptr(b.slot(slot)).Uint64(b.engine.signKey).Uint32(every).Uint32(uint32(draw % uint64(every)))
}

// inspect looks at the red zones and the inputs.
func (b *Bench) inspect(s *device.Session, p *prepared, slot int, whole bool, draw uint64) error {
	return b.engine.helpers.launch(s, b.engine.stream, "rp_inspect", p.inspectN, b.zonesOf(p, slot, whole, draw))
}

// look queues all that is looked at after launch i of a burst: zones and inputs with the first output in one kernel, since each
// kernel more costs a small launch 3 us, and the other outputs.
func (b *Bench) look(s *device.Session, p *prepared, i int, l *verify.BurstLaunch) error {
	signs, projects := uint64(0), uint32(0)
	if b.projects(0, l.Whole) {
		proj, err := b.projection(s, p, 0)
		if err != nil {
			return err
		}
		signs, projects = proj.signs, 1
	}
	args := b.zonesOf(p, i, l.Whole, mix(b.engine.signKey^l.Seed)).Uint32(uint32(p.inspectN)).Ptr(p.outputs).Uint64(b.start).Ptr(b.result(i, 0)).Uint64(b.engine.maskKey).Uint64(b.engine.maskPad).Uint64(signs).Uint32(projects)
	if err := b.engine.helpers.launch(s, b.engine.stream, "rp_look", p.inspectN+b.engine.blocksFor(b.extents[b.outputs[0]].Span), args); err != nil {
		return err
	}
	for o := 1; o < len(b.outputs); o++ {
		if err := b.judge(s, p, i, o, b.start, l.Whole); err != nil {
			return err
		}
	}
	return nil
}

// blocksFor is how many blocks a helper needs for n elements: enough to fill the device, no more.
func (e *Engine) blocksFor(n int64) int {
	return int(min((n+4*helperThreads-1)/(4*helperThreads), int64(8*max(e.info.Limits.SMs, 1))))
}

func (b *Bench) compare(s *device.Session, p *prepared, slot, output int, start uint64) error {
	args := new(device.Args).Ptr(p.outputs).Uint32(uint32(output)).Uint64(start).Ptr(b.result(slot, output)).Uint64(b.engine.signKey).Uint64(b.engine.maskKey).Uint64(b.engine.maskPad)
	return b.engine.helpers.launch(s, b.engine.stream, "rp_compare", b.engine.blocksFor(b.extents[b.outputs[output]].Span), args)
}

// fetch brings the findings of n launches to the host.
func (b *Bench) fetch(s *device.Session, n int) error {
	return errors.Join(s.DownloadAsync(b.engine.stream, b.slots().pinned, b.slots().at, int64(n)*b.slotBytes()), s.Wait(b.engine.stream))
}

// word reads a word of the findings of launch i.
func (b *Bench) word(i int, at int64) uint64 {
	return binary.LittleEndian.Uint64(b.slots().pinned.Bytes[int64(i)*b.slotBytes()+at:])
}

// Breach reports the first damaged red zone or input that differs from what was written last. The last Launch has looked.
func (b *Bench) Breach(context.Context, *verify.Set) (*verify.Breach, error) {
	if b.judgedAt == nil {
		return nil, errors.New("look at red zones: Write and Launch must come first")
	}
	return b.breach(0)
}

// Close frees what the binding holds.
func (b *Bench) Close() error {
	if b.engine.Lost() {
		return nil
	}
	for _, p := range b.prepared {
		p.master.pinned--
	}
	if b.bound {
		b.bound = false
		b.engine.tables.leave()
	}
	if len(b.owned)+len(b.passing) == 0 {
		return nil
	}
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		var err error
		for _, p := range b.owned {
			err = errors.Join(err, s.Free(p))
		}
		for _, m := range b.passing {
			err = errors.Join(err, b.engine.free(s, m))
		}
		return err
	})
	return b.wrap("free the tables", err)
}

func (b *Bench) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return b.engine.stop(fmt.Sprintf("%s at size %s", doing, b.layout.Size), err)
}
