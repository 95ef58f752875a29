package cudaengine

import (
	"fmt"

	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
)

// redZoneBytes is how much memory on each side of a buffer is watched.
const redZoneBytes = 8 << 10

// arena is the memory that candidates' buffers lie in, one block for all of them: every layout starts at its base, so that
// the same layout gets the same addresses. A layout that does not fit gets a larger block; the smaller one stays, since
// bindings may still use it.
type arena struct {
	base device.Ptr
	size int64
}

// placed is a buffer within the arena.
type placed struct {
	at    device.Ptr
	bytes int64
}

// place lays buffers out with a red zone on both sides of each. It returns them, the zones in helpers.cu's form and the
// bytes needed.
func place(extents []task.Extent, base device.Ptr) (buffers []placed, zones words, need int64) {
	at := int64(0)
	for i, e := range extents {
		align := max(int64(e.AlignmentBytes), 256)
		start := (at + redZoneBytes + align - 1) / align * align
		end := start + e.Bytes()
		zones = zones.u64(uint64(base.Add(at))).u64(uint64(start - at)).u32(uint32(i)).u32(0)
		zones = zones.u64(uint64(base.Add(end))).u64(redZoneBytes).u32(uint32(i)).u32(1)
		buffers = append(buffers, placed{at: base.Add(start), bytes: e.Bytes()})
		at = (end + redZoneBytes + 255) / 256 * 256
	}
	return buffers, zones, at
}

// reserve makes the arena hold n bytes. The first block is at least a sixteenth of the device's memory.
func (a *arena) reserve(s *device.Session, n int64) error {
	if n <= a.size {
		return nil
	}
	size := max(n, s.Info().MemoryByte/16)
	base, err := s.Alloc(size)
	if err != nil && size > n {
		size = n
		base, err = s.Alloc(size)
	}
	if err != nil {
		return fmt.Errorf("take %d MB for buffers: %w", n>>20, err)
	}
	a.base, a.size = base, size
	return nil
}
