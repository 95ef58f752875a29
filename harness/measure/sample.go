package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/verify"
)

// bench is one contestant bound to one size, with what was measured of it.
type bench struct {
	verify.Bench
	layout   *verify.Layout
	sets     []*verify.Set
	limit    time.Duration
	seed     uint64
	launches int // so far at this size

	slowestUS float64 // of all launches: what a busy machine made of one
	unseenUS  float64 // of the launch on inputs never met before that the last burst ended with; 0: none

	tally  *verify.Tally
	failed *harness.Errors // of the comparison that ended it
	split  *harness.Split
	clock  [2]int
}

// shot is one timed launch.
type shot struct {
	us       float64
	wallUS   float64 // 0: the device's clock is beyond the candidate's reach
	spoiled  bool    // by steal time, an involuntary switch or throttling
	switches int64
}

// take runs n launches, each verified, and returns them in order.
func (b *bench) take(ctx context.Context, n int, timing Timing, whole func(launch int) bool) ([]shot, error) {
	if burster, ok := b.Bench.(verify.Burster); ok {
		return b.burst(ctx, burster, 0, n, timing, whole)
	}
	var out []shot
	for range n {
		b.launches++
		set := b.sets[(b.launches-1)%len(b.sets)]
		aim := verify.Aim{Shot: verify.Shot{Limit: b.limit}, Launch: b.launches, Timed: true, Flush: timing.Flush, Whole: whole(b.launches), Poison: verify.Mix(b.seed, uint64(b.launches))}
		begin := time.Now()
		lap, found, err := verify.Shoot(ctx, b.Bench, b.layout, set, aim)
		b.split.Measure += time.Since(begin).Seconds()
		b.count(lap, found)
		if err != nil {
			if found != nil {
				b.failed = verify.Failed(found)
			}
			return out, err
		}
		out = append(out, shotOf(lap))
	}
	return out, nil
}

// burst does the same in one run on the device, behind a number of warm-ups that are no more than launches.
func (b *bench) burst(ctx context.Context, device verify.Burster, warmups, n int, timing Timing, whole func(launch int) bool) ([]shot, error) {
	run := &verify.Burst{Warmups: warmups, NoFlush: !timing.Flush, Rewrite: timing.Rewrite, Limit: b.limit}
	b.launches += warmups
	for range n {
		b.launches++
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.sets[(b.launches-1)%len(b.sets)], Seed: verify.Mix(b.seed, uint64(b.launches)), Whole: whole(b.launches)})
	}
	first := b.launches - n + 1
	_, mixes := b.Bench.(verify.Mixer)
	unseen := mixes && timing.Unseen && b.repeats(timing)
	if unseen {
		b.launches++
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.sets[0], Seed: verify.Mix(b.seed, uint64(b.launches), 0x313d), Unseen: true})
	}
	begin := time.Now()
	laps, err := device.Burst(ctx, run)
	b.split.Measure += time.Since(begin).Seconds()
	b.split.Device += run.Warmed.Seconds()
	b.split.Kernels += run.Warmed.Seconds()
	var out []shot
	for i, s := range laps {
		aim := verify.Aim{Launch: first + i, Timed: true, Poison: run.Launches[i].Seed}
		b.count(s.Lap, s.Comparisons)
		if stop := verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, run.Launches[i].Set, aim); stop != nil {
			b.failed = verify.Failed(s.Comparisons)
			return out, stop
		}
		out = append(out, shotOf(s.Lap))
	}
	if unseen && len(out) == len(run.Launches) {
		b.unseenUS = out[n].us
		out = out[:n]
	}
	if err != nil {
		at := min(len(laps), len(run.Launches)-1)
		return out, verify.Blame(err, b.layout, run.Launches[at].Set, verify.Aim{Launch: first + at, Timed: true})
	}
	if len(laps) != len(run.Launches) {
		return out, fmt.Errorf("the device ran %d of %d launches and gave no reason", len(laps), len(run.Launches))
	}
	return out, nil
}

func (b *bench) count(lap verify.Lap, found []verify.Comparison) {
	b.slowestUS = max(b.slowestUS, float64(lap.Kernels)/float64(time.Microsecond))
	b.split.Device += lap.Kernels.Seconds()
	b.split.Kernels += lap.Kernels.Seconds()
	for _, c := range found {
		b.tally.Add(c)
	}
	if lap.ClockMHz > 0 {
		if b.clock[0] == 0 || lap.ClockMHz < b.clock[0] {
			b.clock[0] = lap.ClockMHz
		}
		b.clock[1] = max(b.clock[1], lap.ClockMHz)
	}
}

func shotOf(lap verify.Lap) shot {
	const us = float64(time.Microsecond)
	return shot{us: float64(lap.Kernels) / us, wallUS: float64(lap.Wall) / us, spoiled: lap.Steal || lap.Throttle || preempted(lap), switches: lap.Switches}
}

// waitLimit is the share of a launch for which its threads may have waited for a core, all together. On a virtual machine of
// two cores with nothing else running, the host's agents and the kernel's own threads took a core for some 20 us from two of
// three launches of 3 ms with two threads: dropping each one dropped nearly all, and what is left by chance is no truer.
const waitLimit = 0.01

// preempted reports that other work took a core from the candidate for long enough to show in the launch's time. Threads of a
// candidate that makes more of them than there are cores wait for each other: as long as together they had the cores for all
// of the time, nobody else did.
func preempted(lap verify.Lap) bool {
	if lap.Switches == 0 {
		return false
	}
	limit := time.Duration(waitLimit * float64(lap.Kernels))
	return lap.Waited == verify.Unknown || lap.Waited > limit && lap.Kernels-lap.Busy > limit
}

// samples is the outcome of timing one size once.
type samples struct {
	kept    []float64 // microseconds, in launch order
	walls   []float64
	dropped int
	forced  bool // too few clean samples: spoiled ones had to be kept
}

// collect warms up and takes a sample set. Spoiled samples are dropped and taken again, at most as many as are wanted and for
// at most ten windows; when too few clean ones come, the least spoiled ones are kept and the set is marked.
func (b *bench) collect(ctx context.Context, timing Timing) (samples, error) {
	first := b.launches + 1
	random := first + timing.Warmups + int(verify.Mix(b.seed, uint64(b.launches))%uint64(max(1, timing.MinRuns)))
	last := -1
	whole := func(launch int) bool { return launch == first || launch == last || launch == random }
	want, ahead := timing.MaxRuns, 0
	var shots []shot
	var err error
	device, bursts := b.Bench.(verify.Burster)
	if timing.Window == 0 { // how many are wanted is known: one run on the device holds them and the warm-ups
		ahead = want
		last = b.launches + timing.Warmups + ahead
	}
	if bare := timing.Warmups - timing.Discard; bursts && timing.Window == 0 {
		first += bare
		shots, err = b.burst(ctx, device, bare, timing.Discard+ahead, timing, whole)
	} else {
		shots, err = b.take(ctx, timing.Warmups+ahead, timing, whole)
	}
	if err != nil {
		return samples{}, err
	}
	warm := shots[:len(shots)-ahead]
	shots = shots[len(shots)-ahead:]
	if timing.Window > 0 {
		quickest := math.Inf(1)
		for _, w := range warm {
			quickest = min(quickest, w.us)
		}
		want = min(max(int(float64(timing.Window)/float64(time.Microsecond)/max(quickest, 1)), timing.MinRuns), timing.MaxRuns)
	}
	var got samples
	var spoiled []shot
	begin := time.Now()
	for attempt := 0; len(got.kept) < want; attempt++ {
		need := want - len(got.kept)
		if attempt > 0 && (len(spoiled) > want || timing.Window > 0 && time.Since(begin) > 10*timing.Window) {
			break
		}
		if attempt > 0 || ahead == 0 {
			last = b.launches + need
			if shots, err = b.take(ctx, need, timing, whole); err != nil {
				return got, err
			}
		}
		for _, s := range shots {
			if s.spoiled {
				spoiled = append(spoiled, s)
				continue
			}
			got.kept, got.walls = append(got.kept, s.us), append(got.walls, s.wallUS)
		}
	}
	got.dropped = len(spoiled)
	if short := timing.MinRuns - len(got.kept); short > 0 {
		slices.SortStableFunc(spoiled, func(a, b shot) int { return int(a.switches - b.switches) })
		for _, s := range spoiled[:min(short, len(spoiled))] {
			got.kept, got.walls = append(got.kept, s.us), append(got.walls, s.wallUS)
			got.dropped--
		}
		got.forced = true
	}
	return got, nil
}

// time measures one size: a noisy sample set is taken again, and the quietest one counts.
func (b *bench) time(ctx context.Context, timing Timing) (harness.SizeTime, []float64, error) {
	if !timing.Flush {
		begin := time.Now()
		if err := b.Flush(ctx); err != nil {
			return harness.SizeTime{}, nil, fmt.Errorf("flush caches: %w", err)
		}
		b.split.Flush += time.Since(begin).Seconds()
	}
	var best samples
	dropped := 0
	begin := time.Now()
	for attempt := 0; attempt <= timing.Retries && time.Since(begin) < retryLimit; attempt++ {
		got, err := b.collect(ctx, timing)
		if err != nil {
			return harness.SizeTime{}, nil, err
		}
		dropped += got.dropped
		if attempt == 0 || quieter(got, best) {
			best = got
		}
		if !best.forced && !timing.noisy(best.kept) {
			break
		}
	}
	st := b.sizeTime(best.kept, timing)
	st.Dropped = dropped
	st.Noisy = st.Noisy || best.forced && st.SpreadRatio > timing.Spread/2 || crowded(dropped, len(best.kept))
	return st, best.walls, nil
}

// crowded reports that more launches were spoiled than kept: the machine was shared, and what was kept was not seen to be
// spoiled, which says little. Ten runs of one product with two threads on such a machine had medians up to 2.2 apart, each
// from a narrow sample set.
func crowded(dropped, kept int) bool { return dropped > kept }

// retryLimit is the time at one size after which a noisy sample set is not taken again: the machine is too busy for it to help.
const retryLimit = time.Second

// quieter prefers clean samples, then the smaller spread.
func quieter(a, b samples) bool {
	if a.forced != b.forced {
		return !a.forced
	}
	return Spread(a.kept) < Spread(b.kept)
}

// sizeTime sums samples up.
func (b *bench) sizeTime(kept []float64, timing Timing) harness.SizeTime {
	st := harness.SizeTime{Size: b.layout.Size, SamplesUS: kept, MedianUS: statistic(timing.Statistic, kept), SpreadRatio: Spread(kept), Warmups: timing.Warmups, ClockMHz: b.clock}
	st.Noisy = timing.noisy(kept)
	return st
}
