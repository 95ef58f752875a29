package verify

import "hash/maphash"

var bitsSeed = maphash.MakeSeed()

// Bits sums up a buffer's bits by a keyed hash of 64 bits whose key is drawn when the process starts and never leaves it: two
// buffers of one length with the same sum hold the same bits, but for one chance in 2^64 that nobody can aim for.
func Bits(raw []byte) uint64 {
	sums := make([]uint64, (len(raw)+chunk-1)/chunk)
	parallel(len(raw), func(from, to int) { sums[from/chunk] = maphash.Bytes(bitsSeed, raw[from:to]) })
	var h maphash.Hash
	h.SetSeed(bitsSeed)
	for _, s := range sums {
		maphash.WriteComparable(&h, s)
	}
	return h.Sum64()
}
