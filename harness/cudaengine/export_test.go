package cudaengine

import (
	"errors"

	"ridgepoint/harness/device"
)

// ExpectedOnDevice returns the bytes that lie on the device for the expected values of every set it holds.
func (e *Engine) ExpectedOnDevice() (all [][]byte, err error) {
	err = e.do(setupLimit, func(s *device.Session) error {
		for el := e.masters.recent.Front(); el != nil; el = el.Next() {
			m := el.Value.(*master)
			for i, at := range m.expected {
				if at == 0 {
					continue
				}
				raw := make([]byte, 8*m.counts[i])
				if err := s.Download(e.stream, raw, at); err != nil {
					return err
				}
				all = append(all, raw)
			}
		}
		return nil
	})
	return all, err
}

// SlotsAt returns where the findings of launches lie, and SlotBytes how many bytes of them one launch has.
func (e *Engine) SlotsAt() uint64 { return uint64(e.slots.at) }

// SlotBytes returns what the findings of one launch take.
func (b *Bench) SlotBytes() int64 { return b.slotBytes() }

// ProofsAt returns where the proofs of a set lie, one a share of a buffer.
func (b *Bench) ProofsAt(key string) uint64 { return uint64(b.prepared[key].proofs) }

// Mailbox makes memory on the device of two words, by which a test tells a kernel something.
func (e *Engine) Mailbox() (at uint64, put func(a, b uint64) error, err error) {
	err = e.do(setupLimit, func(s *device.Session) error {
		p, err := s.Alloc(16)
		at = uint64(p)
		return err
	})
	return at, func(a, b uint64) error {
		return e.do(setupLimit, func(s *device.Session) error { return s.Upload(e.stream, device.Ptr(at), words{}.u64(a).u64(b)) })
	}, err
}

// Pinned returns how many times benches hold the sets on the device.
func (e *Engine) Pinned() (n int) {
	for el := e.masters.recent.Front(); el != nil; el = el.Next() {
		n += el.Value.(*master).pinned
	}
	return n
}

// Swept reports whether a flush has run since Swept was last called, and whether something is left that the next Launch would do first.
func (b *Bench) Swept() (swept, pending bool, err error) {
	err = b.engine.do(setupLimit, func(s *device.Session) error {
		var first [1]byte
		err := s.Download(b.engine.stream, first[:], b.engine.flush)
		swept = first[0] == 0
		return errors.Join(err, s.Memset(b.engine.stream, b.engine.flush, 1, b.engine.flushN), s.Wait(b.engine.stream))
	})
	return swept, b.stale || b.poisonNext || b.sweepNext, err
}

// Cache makes the engine take the device's L2 cache for one of n bytes.
func (e *Engine) Cache(n int64) { e.info.L2Bytes = n }

// Arena makes the engine take its memory for buffers for n bytes: what needs more gets another.
func (e *Engine) Arena(n int64) error {
	err := e.do(setupLimit, func(s *device.Session) error { return e.arena.reserve(s, n) })
	e.arena.size = n
	return err
}

// Held returns how many bytes of the device's memory copies of sets take.
func (e *Engine) Held() int64 { return e.masters.used }

// FillTables leaves no room among the tables of bindings: each that is made from now on has memory of its own.
func (e *Engine) FillTables() { e.tables.used = tableBytes }

// Free returns how many bytes of the device's memory nobody holds.
func (e *Engine) Free() (free int64, err error) {
	err = e.do(setupLimit, func(s *device.Session) error {
		free, _, err = s.Memory()
		return err
	})
	return free, err
}

// Proofs returns, for each place in which launches on a set have been, where its proofs lie and their key.
func (b *Bench) Proofs(key string) (all [][2]uint64) {
	for _, at := range b.everywhere() {
		if p := at.prepared[key]; p != nil {
			all = append(all, [2]uint64{uint64(p.proofs), p.proofKey})
		}
	}
	return all
}
