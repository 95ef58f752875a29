package cudaengine

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// hole marks a place between strides in expected values (helpers.cu, RP_HOLE).
const hole = 0x7ff4c0ffee000000

// masters keeps copies of sets on the device: inputs as they are, expected values under the mask. The least recently used
// goes when the limit is reached.
type masters struct {
	limit, used int64
	byKey       map[string]*list.Element // of *master
	recent      *list.List               // front: most recently used
}

type master struct {
	key      string
	inputs   []device.Ptr // per tensor; 0 for role out
	expected []device.Ptr // per tensor; 0 for role in
	counts   []int64      // elements of expected, holes included
	bytes    int64
	proj     map[int]*projection    // per tensor, made when first needed
	deltas   map[*master]device.Ptr // helpers.cu's Delta for each share, by the set that follows
	pinned   int                    // benches that hold descriptors of it
}

// projection is what the expected values of one output sum to under three random signs.
type projection struct {
	want  [3]float64
	bound float64
}

func (m *masters) init() { m.byKey, m.recent = map[string]*list.Element{}, list.New() }

// masterOf returns the device's copy of a set, made now if need be.
func (e *Engine) masterOf(s *device.Session, set *verify.Set, extents []task.Extent) (*master, error) {
	m := &e.masters
	if el, ok := m.byKey[set.Key]; ok && set.Key != "" {
		m.recent.MoveToFront(el)
		return el.Value.(*master), nil
	}
	made := &master{key: set.Key, proj: map[int]*projection{}, inputs: make([]device.Ptr, len(extents)), expected: make([]device.Ptr, len(extents)), counts: make([]int64, len(extents))}
	for _, x := range extents {
		if x.Role != harness.RoleOut {
			made.bytes += x.Bytes()
		}
		if x.Role != harness.RoleIn {
			made.bytes += 8 * x.Span
		}
	}
	if err := e.evict(s, made.bytes); err != nil {
		return nil, err
	}
	for i, x := range extents {
		if err := e.upload(s, made, set, i, x); err != nil {
			return nil, fmt.Errorf("bring set %s to the device: %w", set.Key, err)
		}
	}
	m.used += made.bytes
	if set.Key != "" { // contents without a name are never met again
		m.byKey[set.Key] = m.recent.PushFront(made)
	}
	return made, nil
}

func (e *Engine) upload(s *device.Session, made *master, set *verify.Set, i int, x task.Extent) (err error) {
	if x.Role != harness.RoleOut {
		if made.inputs[i], err = s.Alloc(x.Bytes()); err != nil {
			return err
		}
		raw := set.Inputs[i]
		if err := e.stage.send(s, e.stream, made.inputs[i], x.Bytes(), func(to []byte, from int64) { copy(to, raw[from:]) }); err != nil {
			return err
		}
	}
	if x.Role == harness.RoleIn {
		return nil
	}
	if made.expected[i], err = s.Alloc(8 * x.Span); err != nil {
		return err
	}
	made.counts[i] = x.Span
	// Masked here, on the host: the plain values never lie in device memory.
	want := set.Expected[i]
	if int64(len(want)) != x.Span || !contiguous(x) { // a set for a profiler has no expected values
		want = spread(want, x)
	}
	return e.stage.send(s, e.stream, made.expected[i], 8*x.Span, func(to []byte, from int64) {
		for k := int64(0); k < int64(len(to)); k += 8 {
			at := (from + k) / 8
			binary.LittleEndian.PutUint64(to[k:], math.Float64bits(want[at])^e.maskWord(uint64(at)))
		}
	})
}

// spread lays values out as the buffer is, with holes between strides.
func spread(want []float64, x task.Extent) []float64 {
	out := make([]float64, x.Span)
	for i := range out {
		out[i] = math.Float64frombits(hole)
	}
	for i := range want {
		out[offset(x, int64(i))] = want[i]
	}
	return out
}

// maskWord is helpers.cu's rp_mask_word. mix can be inverted, so the pad keeps one known value from giving the key away.
func (e *Engine) maskWord(i uint64) uint64 { return mix(e.maskKey^i) ^ e.maskPad }

// evict frees copies that no bench holds until need more bytes fit.
func (e *Engine) evict(s *device.Session, need int64) error {
	m := &e.masters
	for el := m.recent.Back(); el != nil && m.used+need > m.limit; {
		old, before := el.Value.(*master), el.Prev()
		if old.pinned == 0 {
			if err := e.free(s, old); err != nil {
				return err
			}
			m.recent.Remove(el)
		}
		el = before
	}
	return nil
}

func (e *Engine) free(s *device.Session, old *master) error {
	err := e.forget(s, old)
	for i := range old.inputs {
		err = errors.Join(err, s.Free(old.inputs[i]), s.Free(old.expected[i]))
	}
	e.masters.used -= old.bytes
	delete(e.masters.byKey, old.key)
	return err
}

func contiguous(x task.Extent) bool { return x.Span == x.Elements && dense(x) }

func dense(x task.Extent) bool {
	step := int64(1)
	for i := len(x.Shape) - 1; i >= 0; i-- {
		if x.Shape[i] > 1 && x.Strides[i] != step {
			return false
		}
		step *= x.Shape[i]
	}
	return true
}

// offset returns the place in the buffer of a logical element.
func offset(x task.Extent, index int64) int64 {
	at := int64(0)
	for i := len(x.Shape) - 1; i >= 0; i-- {
		at += index % x.Shape[i] * x.Strides[i]
		index /= x.Shape[i]
	}
	return at
}

// logical returns the logical index of the element at a place in the buffer; a place that no element has gives -1.
func logical(x task.Extent, at int64) int64 {
	if contiguous(x) {
		return at
	}
	for i := range x.Elements { // rare: only for the first mismatch of a strided output
		if offset(x, i) == at {
			return i
		}
	}
	return -1
}
