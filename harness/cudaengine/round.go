package cudaengine

import (
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// Where a small kernel's buffers lie shows in its time: on an H200 the medians of one softmax at six places differed by 0.3 us of 4.8
// at 256 x 256, by 0.08 us of 8.5 and of 12 at 4 and 16 MB, and no longer at 32 MB; each place kept its time for as long as the process lived.
// So the launches of a burst go round several places. Each is written right before its launch and poisoned behind it, as one place is.
const (
	places       = 4
	placesApart  = 6 << 20 // beside what the buffers need
	placesOfL2   = 3       // buffers of up to that part of the cache go round
	pageBytes    = 2 << 20 // of memory on the device
	roundLeast   = 2 * places
	roundOfArena = 2 // the places take at most that part of it
)

// round returns the benches that a burst's launches use in turn, the last launch this one; only this one where the burst keeps what
// lies in the caches or in the buffers, or where the places do not matter or do not fit.
func (b *Bench) round(s *device.Session, burst *verify.Burst) ([]*Bench, error) {
	one := []*Bench{b}
	_, _, need := place(b.extents, 0)
	step := (need+pageBytes-1)/pageBytes*pageBytes + placesApart
	if burst.NoFlush || !burst.Rewrite || len(burst.Launches) < roundLeast || need > b.engine.info.L2Bytes/placesOfL2 {
		return one, nil
	}
	if b.base() != b.engine.arena.base || places*step > b.engine.arena.size/roundOfArena {
		return one, nil
	}
	for i := int64(len(b.others)) + 1; i < places; i++ {
		at := &Bench{program: b.program, engine: b.engine, layout: b.layout, extents: b.extents, outputs: b.outputs, rewrites: b.rewrites, tiles: b.tiles, tileN: b.tileN,
			prepared: map[string]*prepared{}, owner: b}
		if err := at.settle(s, b.base().Add(i*step)); err != nil {
			b.owned = append(b.owned, at.owned...)
			return nil, err
		}
		b.others = append(b.others, at)
		b.engine.zoned = nil // its zones are not yet written
	}
	return b.everywhere(), nil
}

// everywhere is this bench and its others.
func (b *Bench) everywhere() []*Bench { return append([]*Bench{b}, b.others...) }

// base is where the first red zone begins.
func (b *Bench) base() device.Ptr { return b.buffers[0].at.Add(-b.before[0]) }
