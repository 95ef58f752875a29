package cudaengine

import (
	"context"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
)

// FlushTimes is how many times as large as the L2 cache the buffer is that a flush goes through. Behind twice, some of what was written
// before still lay in an H200's cache: in three processes of eight a softmax of 32 MB took 27.4 us instead of 26.3 after launches whose
// inputs had been rewritten in part; behind three times the medians of all eight were within 1.2 %, however the inputs were written.
const FlushTimes = 3

// FlushBytes is the size of that buffer for a cache.
func FlushBytes(l2Bytes int64) int64 { return max(FlushTimes*l2Bytes, 1<<20) }

// Flush overwrites or reads a buffer of FlushTimes the L2 cache. It is queued by the Launch that follows, right before the first event: the
// time that the sweep takes hides the launch's own latency.
func (b *Bench) Flush(context.Context) error {
	b.sweepNext = true
	return nil
}

// sweep queues the flush, behind which nothing is left that a launch before has read or written by a policy of evict_last. Such lines
// outlive a flush of any size, up to 11 MB of them on an H200: the next launch of the same kernel took 4.7 us instead of 5.8 over 4 MB and
// 9.0 instead of 9.7 over 16 MB, and other kernels' launches were up to 11 % faster or slower for it. So first all lines are made alike,
// which takes the host 3 us, for the most part while the device is at work on what lies between launches; every launch before must have
// ended. Made alike with the flush already on its way, half of what they gain is left.
func (b *Bench) sweep(s *device.Session) error {
	if b.engine.info.PersistingL2Bytes > 0 {
		if err := s.ForgetPersisting(); err != nil {
			return err
		}
	}
	return b.cover(s)
}

// cover queues the overwriting or reading of the flush's buffer. The lines that overwriting leaves are dirty, and a launch that fills
// the cache waits while they are written back: for one that writes as much itself that is its own due, which it leaves to the next. A
// launch that hardly writes would pay for what is not its own (a sum of 64 MB took 21.4 us of which 2.9 were the flush's on an H200), so
// that there the same buffer is read. Of one read of the cache's size after overwriting, 2.6 us were left.
func (b *Bench) cover(s *device.Session) error {
	e := b.engine
	if !b.reads {
		return s.Memset(e.stream, e.flush, 0, e.flushN)
	}
	args := new(device.Args).Ptr(e.flush).Uint64(uint64(e.flushN / 16)).Ptr(e.sink)
	return e.helpers.launch(s, e.stream, "rp_read", 8*max(e.info.Limits.SMs, 1), args)
}

// traffic returns the bytes of a plan's inputs, and whether its launches read at least a quarter of the cache and write less than
// a sixteenth of it.
func traffic(extents []task.Extent, l2Bytes int64) (inputs int64, reads bool) {
	var written int64
	for _, x := range extents {
		switch x.Role {
		case harness.RoleIn:
			inputs += x.Bytes()
		case harness.RoleInOut:
			inputs, written = inputs+x.Bytes(), written+x.Bytes()
		default:
			written += x.Bytes() // outputs and scratch
		}
	}
	return inputs, inputs >= l2Bytes/4 && written < l2Bytes/16
}
