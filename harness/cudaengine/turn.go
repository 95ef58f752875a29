package cudaengine

import (
	"errors"

	"ridgepoint/harness/device"
)

// Of inputs of more than inspectWholeBytes one of inspectEvery parts, drawn anew for each launch, is looked at after a launch that is
// not compared whole, and written whole for the next; elsewhere the elements are written in which the next set differs. All is looked
// at after the first, the last and a random launch, and looked at and written before them; after the one on inputs never met before,
// which may end a burst, too. So nothing is written over that was not looked at, but for those few elements: a change that a kernel
// makes to its inputs lasts until it is seen. Where launches go round several places all is looked at and written each time.
const (
	inspectWholeBytes = 4 << 20
	inspectEvery      = 8
)

// turn is what lies between two launches.
type turn struct {
	of    *prepared // the set of the launch before
	slot  int       // where the findings go
	whole bool      // look at all of the inputs and compare all of the outputs
	draw  uint64    // chooses the part of large inputs where whole is not asked for

	at        *Bench    // over whose buffers the launch that follows goes: this bench, or another of its round; nil: none follows
	next      *prepared // the set of that launch, for which all is rewritten; nil: nothing is
	nextWhole bool      // it is compared whole
	start     uint64    // of its poison
}

// turn looks at red zones, inputs and outputs, and rewrites all buffers for the next launch, in one kernel: each one more would cost
// a small launch 4 us, and what was just looked at is at hand.
func (b *Bench) turn(s *device.Session, t *turn) error {
	large := b.inputs > inspectWholeBytes
	every, whole := uint32(1), uint32(1)
	if !t.whole {
		whole = 0
	}
	apart := uint32(0)
	if t.next != nil && t.at != b {
		apart = 1
	}
	if large && !t.whole && t.at == b && !(t.next != nil && t.nextWhole) {
		every = inspectEvery
	}
	var next, deltas device.Ptr
	if t.next != nil {
		next = t.next.moves
		if every > 1 {
			deltas = t.of.master.deltas[t.next.master]
		}
	}
	outputs := len(b.outputs)
	if t.of.outputs == 0 {
		outputs = 0
	}
	args := new(device.Args).Ptr(b.zones).Uint32(uint32(b.zoneN)).Uint32(whole).Ptr(b.tiles).Ptr(t.of.looks).Ptr(t.of.proofs).Uint32(every).Uint32(uint32(t.draw % uint64(every))).
		Ptr(t.of.moves).Ptr(next).Uint32(apart).Ptr(deltas).Uint64(t.start).
		Ptr(t.of.outputs).Uint32(uint32(outputs)).Uint64(b.start).Ptr(b.slot(t.slot)).Uint64(b.engine.keyOf(t.slot)).Uint64(t.of.proofKey).Uint64(b.engine.maskKey).Uint64(b.engine.maskPad)
	if err := b.engine.helpers.launch(s, b.engine.stream, "rp_turn", b.zoneN+b.tileN, args); err != nil {
		return err
	}
	if t.next != nil {
		t.at.start = t.start
	}
	return nil
}

// differ lists where a set's inputs differ from those of the next, once for all candidates. Contents without a name are not met again.
func (b *Bench) differ(s *device.Session, of, next *prepared) error {
	from, to := of.master, next.master
	if from == to || from.key == "" || to.key == "" || b.inputs <= inspectWholeBytes || from.deltas[to] != 0 {
		return nil
	}
	at, err := s.Alloc(int64(b.tileN) * deltaBytes)
	if err != nil {
		return err
	}
	if err := b.engine.helpers.launch(s, b.engine.stream, "rp_diff", b.tileN, new(device.Args).Ptr(of.moves).Ptr(next.moves).Ptr(b.tiles).Ptr(at)); err != nil {
		return errors.Join(err, s.Free(at))
	}
	if from.deltas == nil {
		from.deltas = map[*master]device.Ptr{}
	}
	from.deltas[to] = at
	return nil
}

// proving makes room for the proofs of a set's outputs. Their key is used for nothing else: a proof of another set proves nothing.
func (b *Bench) proving(s *device.Session, p *prepared) (err error) {
	if p.proofs == 0 {
		b.engine.proven++
		p.proofKey = mix(mix(b.engine.signKey) ^ b.engine.proven)
		p.proofs, err = b.table(s, make(words, b.tileN*proofBytes))
	}
	return err
}

// forget frees the deltas from and to a master.
func (e *Engine) forget(s *device.Session, old *master) error {
	var err error
	for _, at := range old.deltas {
		err = errors.Join(err, s.Free(at))
	}
	for el := e.masters.recent.Front(); el != nil; el = el.Next() {
		m := el.Value.(*master)
		if at := m.deltas[old]; at != 0 {
			err = errors.Join(err, s.Free(at))
			delete(m.deltas, old)
		}
	}
	old.deltas = nil
	return err
}
