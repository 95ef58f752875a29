//go:build linux

package runner

import (
	"encoding/binary"
	"fmt"

	"ridgepoint/harness"
)

// Descriptors that a child inherits.
const (
	controlFD = 3 // packets between parent and child
	arenaFD   = 4 // the buffers
	lockFD    = 5 // the device's lock: held as long as any child lives
)

// Operations of the parent, the first byte of a packet.
const (
	opLoad  = 'L'
	opWatch = 'W' // the parent watches the listener: go on
	opBind  = 'B'
	opGo    = 'G'
)

// Answers of the child, the first byte of a packet.
const (
	answerOK     = 'K'
	answerListen = 'S' // with the listener's number
	answerFail   = 'F' // with a reason that the candidate is to blame for
)

// maxPacket bounds a packet: a bind of 64 launches with 32 arguments is under 256 KiB.
const maxPacket = 256 << 10

// loadOrder asks the child to load a shared object.
type loadOrder struct {
	Path    string   `json:"path"` // as the child sees it
	Kernels []string `json:"kernels"`
	Lock    bool     `json:"lock"` // install the system-call filter first
}

// bindOrder tells the child the layout of the arena and the launches.
type bindOrder struct {
	Length   int64    `json:"length"`
	Guards   []int64  `json:"guards"`   // offsets of pages that must not be touched
	ReadOnly []extent `json:"readonly"` // page ranges that Protect covers
	Outputs  []extent `json:"outputs"`  // where late writes are looked for
	Clears   []extent `json:"clears"`   // scratch that is zeroed within the timed region
	Launches []call   `json:"launches"`
}

type extent struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// call is one kernel call.
type call struct {
	Kernel int        `json:"kernel"` // index into loadOrder.Kernels
	Args   []argument `json:"args"`
}

// argument is a pointer into the arena (Offset), an integer or a float.
type argument struct {
	Pointer bool          `json:"pointer,omitempty"`
	Offset  int64         `json:"offset,omitempty"`
	DType   harness.DType `json:"dtype,omitempty"`
	Int     int64         `json:"int,omitempty"`
	Float   float64       `json:"float,omitempty"`
}

// goOrder is opGo's packet: op, protect, repeats, seed.
const goLength = 1 + 1 + 4 + 8

func encodeGo(protect bool, repeats int, seed uint64) []byte {
	b := make([]byte, goLength)
	b[0] = opGo
	if protect {
		b[1] = 1
	}
	binary.LittleEndian.PutUint32(b[2:], uint32(repeats))
	binary.LittleEndian.PutUint64(b[6:], seed)
	return b
}

// probes is how many places of the outputs a child reads right after its kernels have returned; the parent reads them again
// when it judges. A thread that goes on writing after the return is seen with probability 1-(1-f)^64 a launch, where f is the
// share of the outputs that it still had to write.
const probes = 64

// answerLength is opGo's answer: answerOK, nanoseconds, involuntary switches, probes.
const answerLength = 1 + 8 + 8 + probes*8

type goAnswer struct {
	nanoseconds int64
	switches    int64
	probes      [probes]uint64
}

func (a *goAnswer) encode(b []byte) {
	b[0] = answerOK
	binary.LittleEndian.PutUint64(b[1:], uint64(a.nanoseconds))
	binary.LittleEndian.PutUint64(b[9:], uint64(a.switches))
	for i, v := range a.probes {
		binary.LittleEndian.PutUint64(b[17+8*i:], v)
	}
}

func (a *goAnswer) decode(b []byte) error {
	if len(b) != answerLength || b[0] != answerOK {
		return fmt.Errorf("answer of %d bytes, want %d", len(b), answerLength)
	}
	a.nanoseconds = int64(binary.LittleEndian.Uint64(b[1:]))
	a.switches = int64(binary.LittleEndian.Uint64(b[9:]))
	for i := range a.probes {
		a.probes[i] = binary.LittleEndian.Uint64(b[17+8*i:])
	}
	return nil
}

// probePlaces calls yield with the 64 places of a seed: arena offsets of 8 bytes each, and the output they are in. The last
// bytes of every output are always among them.
func probePlaces(outputs []extent, seed uint64, yield func(i, output int, offset int64)) {
	if len(outputs) == 0 {
		return
	}
	x := seed | 1
	for i := range probes {
		x ^= x << 13 // xorshift64 (Marsaglia, 2003): cheap enough to leave the caches alone
		x ^= x >> 7
		x ^= x << 17
		at := i % len(outputs)
		o := outputs[at]
		span := max(o.Length-8, 0)
		offset := o.Offset + span
		if i >= len(outputs) {
			offset = o.Offset + int64(x%uint64(span+1))
		}
		yield(i, at, offset)
	}
}
