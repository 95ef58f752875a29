package verify

import "ridgepoint/harness"

// PoisonBlock returns the random finite values of a dtype that Poison lays out again and again, for engines that poison on
// their device. Its length is a multiple of 64; it must not be changed.
func PoisonBlock(d harness.DType) []byte { return poisonBlock(d) }

// PoisonStart returns the byte of PoisonBlock with which a buffer of the seed begins, a multiple of 64.
func PoisonStart(seed uint64) int { return poisonStart(seed) }
