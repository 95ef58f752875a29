package cudaengine

import (
	"context"
	"errors"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// WriteMixed writes inputs that nobody has seen: those of a set with one element in 64 exchanged for another, made on the
// device.
func (b *Bench) WriteMixed(_ context.Context, set *verify.Set, seed uint64) error {
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		p, err := b.use(s, set)
		if err != nil {
			return err
		}
		if err := b.mixable(s); err != nil {
			return err
		}
		if err := errors.Join(b.engine.begin(s), b.mix(s, p, seed)); err != nil {
			return err
		}
		b.current, b.stale = b.mixed, true
		return nil
	})
	return b.wrap("mix the inputs", err)
}

// mix queues the making of mixed inputs out of a set's.
func (b *Bench) mix(s *device.Session, p *prepared, seed uint64) error {
	for i, x := range b.layout.Plan.Tensors {
		from, to := p.master.inputs[i], b.mixed.master.inputs[i]
		if from == 0 {
			continue
		}
		if err := s.Copy(b.engine.stream, to, from, x.Bytes()); err != nil {
			return err
		}
		if !b.layout.Mixes(i) {
			continue
		}
		pairs := max(x.Span/128, 1)
		args := new(device.Args).Ptr(to).Uint64(uint64(x.Span)).Uint32(uint32(x.DType.SizeBytes())).Uint64(uint64(pairs)).Uint64(mix(seed ^ uint64(i)))
		if err := b.engine.helpers.launch(s, b.engine.stream, "rp_exchange", b.engine.blocksFor(pairs), args); err != nil {
			return err
		}
	}
	return nil
}

// mixable makes b.mixed where there is none yet: its master lies in memory that all benches share, and mix fills its inputs.
func (b *Bench) mixable(s *device.Session) error {
	if b.mixed != nil {
		return nil
	}
	tensors := b.layout.Plan.Tensors
	m := &master{inputs: make([]device.Ptr, len(tensors)), expected: make([]device.Ptr, len(tensors)), proj: map[int]*projection{}}
	places, _, need := place(tensors, 0)
	if err := b.engine.mixing.reserve(s, need); err != nil {
		return err
	}
	for i, x := range tensors {
		if x.Role != harness.RoleOut {
			m.inputs[i] = b.engine.mixing.base.Add(int64(places[i].at))
		}
	}
	p := &prepared{master: m}
	if err := b.turnTables(s, p, nil); err != nil {
		return err
	}
	b.mixed = p
	return nil
}
