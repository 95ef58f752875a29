package cudaengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

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
	tiles    device.Ptr // the shares of buffers that blocks have
	tileN    int
	before   []int64 // length of the red zone before each buffer
	outputs  []int
	prepared map[string]*prepared
	others   []*Bench // the same plan over buffers elsewhere (see round); made with the first burst that goes round
	owner    *Bench   // whose others it is among; itself where it is nobody's

	current    *prepared // what Write or WriteMixed wrote last
	mixed      *prepared // of WriteMixed; nil until it is called
	start      uint64    // where the poison of the last Poison starts
	stale      bool      // current is not yet queued
	sweepNext  bool      // Flush was asked for
	poisonNext bool      // Poison was asked for
	reads      bool      // a launch reads much of the L2 cache's size and hardly writes
	inputs     int64     // bytes of all inputs
	rewrites   bool      // a tensor is both input and output: each launch needs it written anew
	judgedAt   *prepared // what the findings of the last Launch are about; nil: there are none

	bound   bool         // its tables count among the engine's
	owned   []device.Ptr // tables that did not fit, freed with the bench
	passing []*master    // of sets without a key, freed with the bench
}

// prepared are the tables that rewriting and inspecting one set needs.
type prepared struct {
	master  *master
	moves   device.Ptr // helpers.cu's Move, one a buffer
	looks   device.Ptr // helpers.cu's Look, likewise
	outputs device.Ptr // helpers.cu's Output, one an output; 0: nobody knows what is right
	proofs  device.Ptr // helpers.cu's Proof, one a share; 0 until the first burst

	proofKey uint64
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
	b.outputs = b.layout.Outputs()
	b.inputs, b.reads = traffic(b.extents, e.info.L2Bytes)
	b.rewrites = slices.ContainsFunc(b.extents, func(x task.Extent) bool { return x.Role == harness.RoleInOut })
	lengths := make([]int64, len(b.extents))
	for i, x := range b.extents {
		lengths[i] = x.Bytes()
	}
	shares, n := tiles(lengths, len(b.layout.Plan.Tensors), turnBlocks*max(s.Info().Limits.SMs, 1))
	var err error
	if b.tiles, err = b.table(s, shares); err != nil {
		return err
	}
	b.tileN = n
	if err := b.settle(s, e.arena.base); err != nil {
		return err
	}
	return b.fillZones(s)
}

// settle gives the buffers their places from base on.
func (b *Bench) settle(s *device.Session, base device.Ptr) (err error) {
	buffers, zones, _ := place(b.extents, base)
	b.buffers, b.zoneN = buffers, len(zones)/zoneBytes
	for i := range buffers {
		b.before = append(b.before, int64(binary.LittleEndian.Uint64(zones[2*i*zoneBytes+8:])))
	}
	if b.zones, err = b.table(s, zones); err != nil {
		return err
	}
	b.all, err = b.launches(s, buffers)
	return err
}

// fillZones writes the red zones. It runs at every binding: other layouts share the memory.
func (b *Bench) fillZones(s *device.Session) error {
	b.engine.zoned = b.owner
	for _, at := range b.owner.everywhere() {
		if err := at.engine.helpers.launch(s, at.engine.stream, "rp_zones_fill", at.zoneN, new(device.Args).Ptr(at.zones)); err != nil {
			return err
		}
	}
	return nil
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
	if err := b.turnTables(s, p, set); err != nil {
		return nil, err
	}
	if set.Key != "" {
		m.pinned++
		b.prepared[set.Key] = p
	}
	return p, nil
}

// turnTables lists what happens to each buffer between launches: inputs are held against their copies and copied again, outputs are
// compared with what the set expects, if there is one, and poisoned as scratch is.
func (b *Bench) turnTables(s *device.Session, p *prepared, set *verify.Set) error {
	var moves, looks, outputs words
	for i, x := range b.extents {
		master, output := uint64(0), uint32(noOutput)
		if x.Role == harness.RoleIn {
			master = uint64(p.master.inputs[i])
		}
		if o := slices.Index(b.outputs, i); o >= 0 {
			output = uint32(o)
		}
		looks = looks.u64(master).u32(output).u32(0)
		if x.Role != harness.RoleInvalid && x.Role != harness.RoleOut {
			moves = moves.u64(uint64(b.buffers[i].at)).u64(uint64(p.master.inputs[i])).u64(uint64(x.Bytes())).u64(0).u32(0).u32(0)
			continue
		}
		block, err := b.engine.poisonOf(s, x.DType)
		if err != nil {
			return err
		}
		moves = moves.u64(uint64(b.buffers[i].at)).u64(uint64(block.at)).u64(uint64(x.Bytes())).u64(uint64(block.period)).u32(1).u32(0)
	}
	for o, i := range b.outputs {
		if set == nil {
			break
		}
		x, tol := b.extents[i], set.Tolerances[i]
		block, err := b.engine.poisonOf(s, x.DType)
		if err != nil {
			return err
		}
		projects := uint32(0)
		if b.projects(o, false) {
			projects = 1
		}
		outputs = outputs.u64(uint64(b.buffers[i].at)).u64(uint64(p.master.expected[i])).u64(uint64(block.at)).u64(uint64(block.period)).u64(uint64(x.Span))
		outputs = outputs.u32(uint32(x.DType)).u32(projects).u64(math.Float64bits(tol.Abs)).u64(math.Float64bits(tol.Rel)).u64(b.engine.signsOf(p.master, i)).u64(0)
	}
	at, err := b.table(s, slices.Concat(moves, looks, outputs))
	if err != nil {
		return err
	}
	p.moves, p.looks = at, at.Add(int64(len(moves)))
	if set != nil {
		p.outputs = p.looks.Add(int64(len(looks)))
	}
	return nil
}

// turnBlocks is how many blocks a multiprocessor gets, one after the other, of work that is shared by bytes: a share takes one to four
// times as long as another of the same length, and with few the last ones would work alone.
const turnBlocks = 16

// Write rewrites all inputs in place. The copying is queued by the Launch that follows.
func (b *Bench) Write(_ context.Context, set *verify.Set) error {
	if p, ok := b.prepared[set.Key]; ok && set.Key != "" {
		b.current, b.stale = p, true
		return nil
	}
	err := b.engine.do(setupLimit, func(s *device.Session) (err error) {
		b.current, err = b.use(s, set)
		b.stale = true
		return err
	})
	return b.wrap("rewrite the inputs", err)
}

// rewrite queues the writing of all buffers. The zones among them are made whole where another bench wrote last, whose scratch may lie
// there: in a contest a kernel was accused of what its rival had written.
func (b *Bench) rewrite(s *device.Session, p *prepared, start uint64) error {
	if b.engine.zoned != b.owner {
		if err := b.fillZones(s); err != nil {
			return err
		}
	}
	return b.engine.helpers.launch(s, b.engine.stream, "rp_prepare", b.tileN, new(device.Args).Ptr(p.moves).Ptr(b.tiles).Uint64(start))
}

// scribble spoils what a launch finds in shared memory and registers.
func (b *Bench) scribble(s *device.Session, start uint64) error {
	return b.engine.helpers.scribble(s, b.engine.stream, mix(b.engine.signKey^start), b.engine.sink)
}

// Poison fills outputs and scratch, shared memory and registers, and makes the red zones whole again. It is queued by the Launch that
// follows, with the rewriting of the inputs of the last Write.
func (b *Bench) Poison(_ context.Context, seed uint64) error {
	if b.current == nil {
		return errors.New("poison the outputs: Write must come first")
	}
	b.start, b.poisonNext, b.stale = uint64(verify.PoisonStart(seed)), true, true
	return nil
}

// poison queues what Poison asked for besides the rewriting.
func (b *Bench) poison(s *device.Session) error {
	if !b.poisonNext {
		return nil
	}
	b.poisonNext = false
	return errors.Join(b.fillZones(s), b.scribble(s, b.start))
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
		if err := errors.Join(b.engine.begin(s), b.timed(s, max(shot.Repeats, 1))); err != nil {
			return err
		}
		if b.current != nil {
			if err := b.turn(s, &turn{of: b.current, whole: true}); err != nil {
				return err
			}
		}
		if err := errors.Join(s.Record(b.engine.span[1], b.engine.stream), b.fetch(s, 1)); err != nil {
			return err
		}
		var err error
		if lap.Kernels, err = s.Elapsed(b.engine.begins[0], b.engine.ends[0]); err != nil {
			return err
		}
		b.judgedAt = b.current
		return b.engine.account(s)
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
	if err := b.poison(s); err != nil {
		return err
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

// blocksFor is how many blocks a helper needs for n elements: enough to fill the device, no more.
func (e *Engine) blocksFor(n int64) int {
	return int(min((n+4*helperThreads-1)/(4*helperThreads), int64(8*max(e.info.Limits.SMs, 1))))
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
	var owned []device.Ptr
	var passing []*master
	for _, at := range b.everywhere() {
		for _, p := range at.prepared {
			p.master.pinned--
		}
		owned, passing = append(owned, at.owned...), append(passing, at.passing...)
		at.prepared, at.owned, at.passing = map[string]*prepared{}, nil, nil // nothing is given back twice
	}
	if b.bound {
		b.bound = false
		b.engine.tables.leave()
	}
	if len(owned)+len(passing) == 0 {
		return nil
	}
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		var err error
		for _, p := range owned {
			err = errors.Join(err, s.Free(p))
		}
		for _, m := range passing {
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
