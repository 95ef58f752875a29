package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/verify"
)

// How much slower launches on inputs never seen before must be, every one of freshTries against every one on seen inputs, for
// a candidate to be judged to skip work that it did before. Honest kernels differ by noise, of either sign.
const (
	freshFactor = 1.3
	freshTries  = 6
)

// fresh looks for work skipped on inputs that were seen before. The timed launches take two or three input sets in turn, whose
// outputs are right; a kernel that keeps results by the whole content of its inputs gets them right too, and fast. It is slow
// on contents that it never saw: those need no expected values, only a clock.
func (b *bench) fresh(ctx context.Context, timing Timing, medianUS float64) error {
	if !b.repeats(timing) {
		return nil
	}
	unseen := b.unseenUS
	if b.unseenUS = 0; unseen == 0 {
		var err error
		if unseen, err = b.unseen(ctx, b.sets[0], timing); err != nil {
			return err
		}
	}
	timing.Unseen = false
	if unseen <= freshFactor*medianUS+2 {
		return nil
	}
	slowestSeen, quickestUnseen := 0.0, unseen
	for i := range freshTries {
		shots, err := b.take(ctx, 1, timing, func(int) bool { return false })
		if err != nil {
			return err
		}
		slowestSeen = max(slowestSeen, shots[0].us)
		if unseen, err = b.unseen(ctx, b.sets[i%len(b.sets)], timing); err != nil {
			return err
		}
		if quickestUnseen = min(quickestUnseen, unseen); quickestUnseen <= freshFactor*slowestSeen {
			return nil
		}
	}
	return verify.Blame(&verify.Stop{Fault: harness.FaultIncorrect, Evidence: harness.Evidence{Kind: verify.KindCached},
		Reason: fmt.Sprintf("skips work on inputs that it has seen before: %.1f us at most on those, %.1f us at least on new ones", slowestSeen, quickestUnseen)},
		b.layout, b.sets[0], verify.Aim{Launch: b.launches, Timed: true})
}

// repeats reports whether there are launches on inputs that were seen before.
func (b *bench) repeats(timing Timing) bool { return len(b.sets) < b.launches && timing.Rewrite }

// unseen times one launch on contents that were never written before: those of a set with a share of its elements exchanged,
// on the device where it can, and behind a flush where the timed launches are.
func (b *bench) unseen(ctx context.Context, s *verify.Set, timing Timing) (float64, error) {
	b.launches++
	aim := verify.Aim{Launch: b.launches, Timed: true}
	written, err := b.writeUnseen(ctx, s)
	if err != nil {
		return 0, err
	}
	if err := b.Poison(ctx, verify.Mix(b.seed, uint64(b.launches))); err != nil {
		return 0, err
	}
	if timing.Flush {
		if err := b.Flush(ctx); err != nil {
			return 0, err
		}
	}
	lap, err := b.Launch(ctx, verify.Shot{Limit: b.limit})
	if err != nil {
		return 0, verify.Blame(err, b.layout, s, aim)
	}
	b.split.Device += lap.Kernels.Seconds()
	breach, err := b.Breach(ctx, written)
	if err != nil {
		return 0, verify.Blame(err, b.layout, s, aim)
	}
	if stop := verify.Judge(verify.Lap{}, breach, nil, b.layout, s, aim); stop != nil {
		return 0, stop
	}
	return float64(lap.Kernels) / float64(time.Microsecond), nil
}

// writeUnseen returns the set that Breach must be asked about.
func (b *bench) writeUnseen(ctx context.Context, s *verify.Set) (*verify.Set, error) {
	if m, ok := b.Bench.(verify.Mixer); ok {
		return s, m.WriteMixed(ctx, s, verify.Mix(b.seed, uint64(b.launches), 0x313d))
	}
	mixed := &verify.Set{Key: "", Size: s.Size, Distribution: s.Distribution, Index: s.Index, Inputs: make([][]byte, len(s.Inputs)), Expected: s.Expected, Tolerances: s.Tolerances}
	rng := rand.New(rand.NewPCG(b.seed, uint64(b.launches)))
	for i, raw := range s.Inputs {
		if mixed.Inputs[i] = raw; raw != nil && b.layout.Mixes(i) {
			mixed.Inputs[i] = exchange(raw, b.layout.Plan.Tensors[i].DType.SizeBytes(), rng)
		}
	}
	return mixed, b.Write(ctx, mixed)
}

// exchange returns a copy of raw in which one element in 32, at least one pair, has changed places.
func exchange(raw []byte, size int, rng *rand.Rand) []byte {
	out := append([]byte(nil), raw...)
	n := len(out) / size
	if n < 2 {
		return out
	}
	var held [8]byte
	for range max(1, n/64) {
		i, j := rng.IntN(n)*size, rng.IntN(n)*size
		copy(held[:size], out[i:])
		copy(out[i:i+size], out[j:j+size])
		copy(out[j:j+size], held[:size])
	}
	return out
}

// Bounds of the clocks' disagreement: DESIGN's 5 %, plus what waking a process takes, and by how much a launch in a batch, its
// inputs in the caches, may be slower than the single ones were said to be.
const (
	clockShare   = 0.05
	clockSlackUS = 300
	batchFactor  = 1.5
	batchSlackUS = 2
)

// batchesUS are the lengths of the batches that are tried until one agrees. A busy machine delays the start and the end of a
// request by milliseconds, which a longer batch outweighs; a false clock is found out by every one. On a machine with ten
// processes to a core the threads of a team wait for each other's turns, and honest kernels disagreed in all of these: short
// batches after a pause follow, since the scheduler lets a process that has slept run first.
var batchesUS = append([]float64{5_000, 5_000, 5_000, 20_000, 20_000, 80_000, 80_000, 320_000}, slices.Repeat([]float64{5_000, 10_000}, 20)...)

// pausedBatches is from which batch on the candidate rests for batchPause before it.
const (
	pausedBatches = 8
	batchPause    = 30 * time.Millisecond
)

// batch times many launches as one by the judge's own clocks, where the candidate shares a process with the clock that times
// single launches: Lap.Wall, and Lap.Busy, which other processes on the machine do not move. The candidate's claim must hold
// for the batch, and the batch for the single launches.
func (b *bench) batch(ctx context.Context, medianUS float64) error {
	if int(batchesUS[0]/max(medianUS, 1)) < 2 {
		return nil // checkWalls has looked at every launch
	}
	var reason string
	for try, length := range batchesUS {
		if try >= pausedBatches {
			select {
			case <-time.After(batchPause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		n := int(min(max(length/max(medianUS, 1), 1), 20_000))
		limit := b.limit + time.Duration(4*float64(n)*b.slowestUS*float64(time.Microsecond))
		lap, err := b.Launch(ctx, verify.Shot{Limit: limit, Repeats: n})
		if err != nil {
			return verify.Blame(err, b.layout, b.sets[0], verify.Aim{Launch: b.launches, Timed: true})
		}
		const us = float64(time.Microsecond)
		wall, busy, kernels := float64(lap.Wall)/us, float64(lap.Busy)/us, float64(lap.Kernels)/us
		switch each := min(kernels, busy) / float64(n); {
		case lap.Wall == 0:
			return nil // the device's own clock is beyond the candidate's reach
		case wall > kernels*(1+clockShare)+clockSlackUS || busy > kernels*batchFactor+clockSlackUS:
			reason = fmt.Sprintf("%d launches took %.0f us by the judge's clock (%.0f us of processor time) and %.0f us by the clock beside the kernel", n, wall, busy, kernels)
		case each > batchFactor*medianUS+batchSlackUS:
			reason = fmt.Sprintf("a launch takes %.1f us in a batch of %d and was said to take %.1f us alone", each, n, medianUS)
		default:
			return nil
		}
	}
	return b.clockStop(reason)
}

func (b *bench) clockStop(reason string) *verify.Stop {
	stop := &verify.Stop{Fault: harness.FaultIncorrect, Reason: "the clock was tampered with: " + reason, Evidence: harness.Evidence{Kind: verify.KindClock}}
	_ = verify.Blame(stop, b.layout, b.sets[0], verify.Aim{Launch: b.launches, Timed: true}) // fills the evidence in place
	return stop
}

// wallSlackUS is how long a busy machine may delay a request in its quickest launch: two turns of other processes.
const wallSlackUS = 20_000

// checkWalls compares both clocks over the kept launches of a size, by the launch that agrees best: a false clock disagrees in
// every one. It serves launches too long for a batch.
func checkWalls(b *bench, kept, walls []float64) error {
	least, at := math.Inf(1), -1
	for i, wall := range walls {
		if over := wall - kept[i]*(1+clockShare); wall > 0 && over < least {
			least, at = over, i
		}
	}
	if at < 0 || least <= wallSlackUS {
		return nil
	}
	return b.clockStop(fmt.Sprintf("a launch took %.0f us by the judge's clock and %.0f us by the clock beside the kernel", walls[at], kept[at]))
}
