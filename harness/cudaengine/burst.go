package cudaengine

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// Burst queues every launch with all that belongs to it and waits once.
func (b *Bench) Burst(ctx context.Context, burst *verify.Burst) ([]verify.Shotted, error) {
	n := len(burst.Launches)
	if n == 0 {
		return nil, nil
	}
	shots := make([]verify.Shotted, n)
	steps := make([]step, n)
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		round, err := b.round(s, burst)
		if err != nil {
			return err
		}
		for i := range steps {
			steps[i].at = round[(n-1-i)%len(round)]
			if err := steps[i].ready(s, &burst.Launches[i], i+1 == n); err != nil {
				return err
			}
			if i > 0 && len(round) == 1 {
				if err := b.differ(s, steps[i-1].set, steps[i].set); err != nil {
					return err
				}
			}
		}
		b.judgedAt = nil
		return b.slots().reserve(s, b.engine.stream, int64(n)*b.slotBytes())
	})
	if err != nil {
		return nil, b.wrap("prepare the timed launches", err)
	}
	// A launch that hangs is found after one limit and some; honest launches seldom take an eighth of theirs.
	all := n + burst.Warmups
	limit := limitOf(burst.Limit) + time.Duration(all)*limitOf(burst.Limit)/8
	if b.engine.Emulated() {
		limit = time.Duration(all) * limitOf(burst.Limit)
	}
	err = b.engine.do(limit, func(s *device.Session) error { return b.queue(s, burst, steps, shots) })
	if err != nil {
		return nil, b.wrap("run the timed launches", err)
	}
	b.current = steps[n-1].set
	if burst.Launches[n-1].Unseen {
		b.current = b.mixed
	}
	for i := range shots {
		if shots[i].Breach, err = b.breach(i); err != nil {
			return nil, err
		}
		for o := range b.outputs {
			if burst.Launches[i].Unseen {
				break
			}
			c, err := b.judged(steps[i].set, i, o, burst.Launches[i].Whole)
			if err != nil {
				return nil, err
			}
			shots[i].Comparisons = append(shots[i].Comparisons, c)
		}
	}
	return shots, ctx.Err()
}

// queue queues the warm-ups and the launches, and reads what they gave. What follows a launch, and the rewriting for the next, are
// queued with it, so that the device has work while the host waits for the launch to end (see sweepBehind).
func (b *Bench) queue(s *device.Session, burst *verify.Burst, steps []step, shots []verify.Shotted) error {
	e := b.engine
	begins, ends, err := e.eventPairs(s, len(steps))
	if err != nil {
		return err
	}
	fences, err := e.fencesOf(s, len(steps))
	if err != nil {
		return err
	}
	if err := errors.Join(e.warm(s), e.begin(s), steps[0].warmUp(s, burst), s.Record(e.heat[1], e.stream), steps[0].first(s, burst)); err != nil {
		return err
	}
	var asked *reading
	for i := range steps {
		at := steps[i].at
		if i == len(steps)/4 { // under load, and early enough for the answer to be there at the end
			asked = e.ask()
		}
		if !burst.NoFlush || i == 0 && b.sweepNext {
			ahead := e.heat[1]
			if i > 0 {
				ahead = ends[i-1]
			}
			if err := b.sweepBehind(s, ahead, fences[i]); err != nil {
				return err
			}
		}
		if err := s.Record(begins[i], e.stream); err != nil {
			return err
		}
		if err := at.run(s, at.all, at.buffers); err != nil {
			return err
		}
		if err := errors.Join(s.Record(ends[i], e.stream), follow(s, burst, steps, i)); err != nil {
			return err
		}
	}
	b.stale, b.poisonNext, b.sweepNext = false, false, false
	if err := s.Record(e.span[1], e.stream); err != nil {
		return err
	}
	if err := b.fetch(s, len(steps)); err != nil {
		return err
	}
	clock, throttled := e.read(asked)
	if burst.Warmups > 0 {
		if burst.Warmed, err = s.Elapsed(e.heat[0], e.heat[1]); err != nil {
			return err
		}
	}
	if err := e.laps(s, burst, fences, clock, throttled, shots); err != nil {
		return err
	}
	return e.account(s)
}

// step is a launch of a burst: the set that its inputs are of, with the tables of the bench over whose buffers it goes.
type step struct {
	at  *Bench
	set *prepared
}

// ready makes what the launch needs to know of its set.
func (t *step) ready(s *device.Session, l *verify.BurstLaunch, last bool) (err error) {
	b := t.at
	if t.set, err = b.use(s, l.Set); err != nil {
		return err
	}
	if l.Unseen {
		if !last {
			return errors.New("only the last launch of a burst may be on inputs never met before")
		}
		return b.mixable(s)
	}
	for o := range b.outputs {
		if b.projects(o, l.Whole) {
			if _, err := b.projection(s, t.set, o); err != nil {
				return err
			}
		}
	}
	if l.Set.Key == "" { // another copy that nobody meets again would be made for the first place
		return b.proving(s, t.set)
	}
	first, err := b.owner.use(s, l.Set) // bits that were right are right wherever they lie
	if err != nil {
		return err
	}
	err = b.owner.proving(s, first)
	t.set.proofs, t.set.proofKey = first.proofs, first.proofKey
	return err
}

// warmUp queues the launches before the first that counts. Their inputs are written once, where the kernel does not write them.
func (t *step) warmUp(s *device.Session, burst *verify.Burst) error {
	b, start := t.at, uint64(verify.PoisonStart(burst.Launches[0].Seed))
	var err error
	if burst.Warmups > 0 {
		err = b.rewrite(s, t.set, start)
	}
	err = errors.Join(err, s.Record(b.engine.heat[0], b.engine.stream))
	for i := 0; i < burst.Warmups && err == nil; i++ {
		if i > 0 && b.rewrites {
			err = b.rewrite(s, t.set, start)
		}
		err = errors.Join(err, b.run(s, b.all, b.buffers))
	}
	return err
}

// first queues what the first launch needs before the flush.
func (t *step) first(s *device.Session, burst *verify.Burst) error {
	b, p := t.at, t.set
	b.start = uint64(verify.PoisonStart(burst.Launches[0].Seed))
	if burst.Launches[0].Unseen {
		if err := b.mix(s, p, burst.Launches[0].Seed); err != nil {
			return err
		}
		p = b.mixed
	}
	return errors.Join(b.rewrite(s, p, b.start), b.spoil(s, burst, 0))
}

// follow queues what lies between launch i and the flush of the next.
func follow(s *device.Session, burst *verify.Burst, steps []step, i int) error {
	l, b := &burst.Launches[i], steps[i].at
	t := &turn{of: steps[i].set, slot: i, whole: l.Whole, draw: mix(b.engine.signKey ^ l.Seed)}
	if l.Unseen {
		t.of = b.mixed
	}
	if i+1 == len(steps) {
		return b.turn(s, t)
	}
	following, next := &burst.Launches[i+1], steps[i+1]
	t.at = next.at
	if following.Unseen {
		if err := next.at.mix(s, next.set, following.Seed); err != nil {
			return err
		}
		t.next = next.at.mixed
	} else if burst.Rewrite || next.set != steps[i].set {
		t.next = next.set
	}
	t.nextWhole, t.start = following.Whole, uint64(verify.PoisonStart(following.Seed))
	return errors.Join(b.turn(s, t), next.at.spoil(s, burst, i+1))
}

// spoil scribbles before a launch that is compared whole; the others would pay for it and show nothing more.
func (b *Bench) spoil(s *device.Session, burst *verify.Burst, i int) error {
	if !burst.Launches[i].Whole {
		return nil
	}
	return b.scribble(s, mix(uint64(verify.PoisonStart(burst.Launches[i].Seed))^uint64(i)))
}

// laps reads what each launch of a burst and the flush before it took.
func (e *Engine) laps(s *device.Session, burst *verify.Burst, fences []device.Event, clockMHz int, throttled bool, shots []verify.Shotted) (err error) {
	for i := range shots {
		shots[i].Lap = verify.Lap{ClockMHz: clockMHz, Throttle: throttled}
		if shots[i].Lap.Kernels, err = s.Elapsed(e.begins[i], e.ends[i]); err != nil {
			return err
		}
		if burst.NoFlush {
			continue
		}
		took, err := s.Elapsed(fences[i], e.begins[i])
		if err != nil {
			return err
		}
		e.flushed += took
	}
	return nil
}

// sweepBehind waits until the launch before has ended, and queues the flush. What is queued next, the events and the kernels between
// them, reaches the device while it looks at the launch before, rewrites and flushes, and the host is silent when the kernels
// start. With launches queued far ahead, every second to fourth one on an H200 was 0.3 to 0.8 us slow, since the host was writing
// to the device meanwhile.
func (b *Bench) sweepBehind(s *device.Session, ahead, fence device.Event) error {
	return errors.Join(s.WaitEvent(ahead), s.Record(fence, b.engine.stream), b.sweep(s))
}

// begin marks the first thing queued of a burst or launch; what follows is the device's working time until account.
func (e *Engine) begin(s *device.Session) error {
	if e.begun {
		return nil
	}
	e.begun = true
	return s.Record(e.span[0], e.stream)
}

// account adds what lay between the span's events to the device's working time.
func (e *Engine) account(s *device.Session) error {
	e.begun = false
	took, err := s.Elapsed(e.span[0], e.span[1])
	e.worked += took
	e.busy = time.Now()
	return err
}

// float reads word k of raw as a float64.
func float(raw []byte, k int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:]))
}

// salt tells the projections of one set from another's.
func (m *master) salt() uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(m.key) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// Graph times launches runs of the plan in one graph over buffers that rotate, so that no run finds its data in the cache.
func (b *Bench) Graph(_ context.Context, set *verify.Set, launches int) (time.Duration, error) {
	var took time.Duration
	err := b.engine.do(setupLimit, func(s *device.Session) (err error) {
		p, err := b.use(s, set)
		if err != nil {
			return err
		}
		_, _, bytes := place(b.extents, 0)
		copies := int(min(int64(launches), b.engine.flushN/max(bytes, 1)+2))
		room, err := s.Alloc(bytes * int64(copies))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Free(room)) }()
		variants := make([][]ready, copies)
		places := make([][]placed, copies)
		for c := range copies {
			places[c], _, _ = place(b.extents, room.Add(int64(c)*bytes))
			for i, x := range b.layout.Plan.Tensors {
				if p.master.inputs[i] != 0 {
					if err := s.Copy(b.engine.stream, places[c][i].at, p.master.inputs[i], x.Bytes()); err != nil {
						return err
					}
				}
			}
			if variants[c], err = b.launches(s, places[c]); err != nil {
				return err
			}
		}
		graph, err := s.Capture(b.engine.stream, func() error {
			for i := range launches {
				if err := b.run(s, variants[i%copies], places[i%copies]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		took, err = b.timeGraph(s, graph, launches)
		return errors.Join(err, s.FreeGraph(graph))
	})
	return took, b.wrap("time a graph", err)
}

// timeGraph launches the graph twice, the first time to warm up, and returns the second's time for one run.
func (b *Bench) timeGraph(s *device.Session, graph *device.Graph, launches int) (time.Duration, error) {
	begins, ends, err := b.engine.eventPairs(s, 1)
	if err != nil {
		return 0, err
	}
	st := b.engine.stream
	err = errors.Join(s.LaunchGraph(st, graph), s.Wait(st), b.sweep(s), s.Record(begins[0], st), s.LaunchGraph(st, graph), s.Record(ends[0], st), s.Wait(st))
	if err != nil {
		return 0, err
	}
	total, err := s.Elapsed(begins[0], ends[0])
	return total / time.Duration(max(launches, 1)), err
}
