package verify

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"ridgepoint/harness"
)

// poisonBytes is the length of a dtype's block of random finite values, which is laid out again and again from a place that
// the seed chooses. It is larger than any kernel's row and odd in units of 64 bytes, so that neighbours in memory differ.
const poisonBytes = 1<<20 + 64

var (
	poisonOnce   [16]sync.Once
	poisonBlocks [16][]byte
)

// poisonBlock returns the random finite values of a dtype. They are of moderate magnitude and are no answer to anything: a
// kernel that leaves one behind, or adds to it, is seen.
func poisonBlock(d harness.DType) []byte {
	poisonOnce[d].Do(func() {
		rng := rand.New(rand.NewPCG(0x9d15ea5e, uint64(d)))
		block := make([]byte, poisonBytes)
		for i := 0; i < len(block); i += d.SizeBytes() {
			putPoison(block[i:], d, rng.Uint64())
		}
		poisonBlocks[d] = block
	})
	return poisonBlocks[d]
}

func putPoison(raw []byte, d harness.DType, r uint64) {
	le := binary.LittleEndian
	switch d {
	case harness.Float64:
		le.PutUint64(raw, r&0x800fffffffffffff|(1013+r>>52%21)<<52) // exponents 2^-10 to 2^10
	case harness.Float32:
		le.PutUint32(raw, uint32(r)&0x807fffff|uint32(117+r>>40%21)<<23)
	case harness.Float16:
		le.PutUint16(raw, uint16(r)&0x83ff|uint16(8+r>>20%14)<<10)
	case harness.BFloat16:
		le.PutUint16(raw, uint16(r)&0x807f|uint16(117+r>>20%21)<<7)
	case harness.Float8E4M3:
		raw[0] = byte(r)&0x87 | byte(2+r>>10%12)<<3
	case harness.Float8E5M2:
		raw[0] = byte(r)&0x83 | byte(8+r>>10%16)<<2
	case harness.BoolType:
		raw[0] = 2 + byte(r%250) // no bool
	default: // integers: any bits
		var b [8]byte
		le.PutUint64(b[:], r)
		copy(raw, b[:d.SizeBytes()])
	}
}

// Poison fills dst, a buffer of d, with the seed's random finite values.
func Poison(dst []byte, d harness.DType, seed uint64) {
	block := poisonBlock(d)
	at := poisonStart(seed)
	for len(dst) > 0 {
		n := copy(dst, block[at:])
		dst, at = dst[n:], 0
	}
}

// Poisoned reports whether the element of size bytes at byte offset off of a buffer that Poison(seed) filled still holds it.
func Poisoned(element []byte, d harness.DType, seed uint64, off int64) bool {
	block := poisonBlock(d)
	at := int((int64(poisonStart(seed)) + off) % int64(len(block)))
	return bytes.Equal(element, block[at:at+len(element)])
}

// FirstChange returns the offset of the first byte of region that is no longer what Poison(seed) wrote, or -1.
func FirstChange(region []byte, d harness.DType, seed uint64) int64 {
	block := poisonBlock(d)
	at := poisonStart(seed)
	var done int64
	for len(region) > 0 {
		n := min(len(region), len(block)-at)
		if !bytes.Equal(region[:n], block[at:at+n]) {
			for i := range n {
				if region[i] != block[at+i] {
					return done + int64(i)
				}
			}
		}
		region, at, done = region[n:], 0, done+int64(n)
	}
	return -1
}

// poisonStart is where in the block a seed starts, a multiple of 64 bytes.
func poisonStart(seed uint64) int {
	return int(Mix(seed, 0x0150) % (poisonBytes / 64) * 64)
}

// Mix derives a seed from a seed and the words that say what it is for (the finalizer of splitmix64, Steele et al. 2014).
func Mix(seed uint64, words ...uint64) uint64 {
	for _, w := range words {
		seed = (seed ^ w) + 0x9e3779b97f4a7c15
		seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		seed = (seed ^ seed>>27) * 0x94d049bb133111eb
		seed ^= seed >> 31
	}
	return seed
}
