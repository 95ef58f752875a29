package cudaengine

import (
	"errors"

	"ridgepoint/harness/device"
)

// tables holds the small tables of all bindings in one piece of device memory with its image in page-locked memory: taking and
// giving back device memory for each would cost more than the launches. It starts again when no binding is left.
type tables struct {
	at    device.Ptr
	image *device.Pinned
	used  int64
	users int
}

// tableBytes is enough for about a thousand bindings at once; a contest has three.
const tableBytes = 8 << 20

func (t *tables) init(s *device.Session) (err error) {
	if t.at, err = s.Alloc(tableBytes); err != nil {
		return err
	}
	t.image, err = s.AllocPinned(tableBytes)
	return err
}

// put queues a table's copy to the device. With own set, the table did not fit and has memory of its own, to be freed.
func (t *tables) put(s *device.Session, st device.Stream, w words) (at device.Ptr, own bool, err error) {
	n := (int64(len(w)) + 255) / 256 * 256
	if t.used+n > tableBytes {
		if at, err = s.Alloc(int64(len(w))); err != nil {
			return 0, false, err
		}
		return at, true, s.Upload(st, at, w)
	}
	from := t.image.Slice(t.used, int64(len(w)))
	copy(from.Bytes, w)
	at = t.at.Add(t.used)
	t.used += n
	return at, false, s.UploadAsync(st, at, from, int64(len(w)))
}

// leave gives a binding's tables back; the last one's leaving empties the piece. Copies still under way belong to bindings
// that are gone, and what is put next is copied after them.
func (t *tables) leave() {
	if t.users--; t.users == 0 {
		t.used = 0
	}
}

// slots is where launches' findings go, and their copy on the host.
type slots struct {
	at     device.Ptr
	pinned *device.Pinned
	bytes  int64
	round  uint64 // how many times room was made
}

// reserve makes room for n bytes of findings and queues their clearing.
func (f *slots) reserve(s *device.Session, st device.Stream, n int64) (err error) {
	f.round++
	if n > f.bytes {
		if f.pinned != nil {
			if err := errors.Join(s.Free(f.at), s.FreePinned(f.pinned)); err != nil {
				return err
			}
			*f = slots{round: f.round}
		}
		size := max(n, 1<<18)
		if f.at, err = s.Alloc(size); err != nil {
			return err
		}
		if f.pinned, err = s.AllocPinned(size); err != nil {
			return err
		}
		f.bytes = size
	}
	return s.Memset(st, f.at, 0, n)
}
