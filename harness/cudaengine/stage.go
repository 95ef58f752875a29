package cudaengine

import (
	"errors"

	"ridgepoint/harness/device"
)

// stageBytes is the size of each half of a stage.
const stageBytes = 16 << 20

// stage brings large data to the device through two pieces of page-locked memory in turn: one is filled by all cores while the
// other is copied. A copy from pageable memory goes through the driver's own, one core filling it.
type stage struct {
	halves [2]*device.Pinned
	free   [2]device.Event // when the half's last copy has ended
	used   [2]bool
	next   int
}

// send queues the copy of n bytes, a multiple of 8 but for the last part, to the device; fill writes those from an offset on, a
// multiple of 8, into a part of a half, and is called by several goroutines at once. All of them have been filled when it returns.
func (g *stage) send(s *device.Session, st device.Stream, to device.Ptr, n int64, fill func(part []byte, from int64)) error {
	for off := int64(0); off < n; off += stageBytes {
		k := g.next
		g.next = 1 - k
		if err := g.ready(s, k); err != nil {
			return err
		}
		half := g.halves[k].Slice(0, min(stageBytes, n-off))
		const grain = 8 << 10 // bytes
		parallel((len(half.Bytes)+grain-1)/grain, 8, func(from, upTo int) {
			part := half.Bytes[from*grain : min(upTo*grain, len(half.Bytes))]
			fill(part, off+int64(from*grain))
		})
		if err := errors.Join(s.UploadAsync(st, to.Add(off), half, int64(len(half.Bytes))), s.Record(g.free[k], st)); err != nil {
			return err
		}
		g.used[k] = true
	}
	return nil
}

// ready makes half k, or waits until its last copy has ended.
func (g *stage) ready(s *device.Session, k int) (err error) {
	if g.used[k] {
		return s.WaitEvent(g.free[k])
	}
	if g.halves[k] != nil {
		return nil
	}
	if g.halves[k], err = s.AllocPinned(stageBytes); err != nil {
		return err
	}
	g.free[k], err = s.NewEvent()
	return err
}
