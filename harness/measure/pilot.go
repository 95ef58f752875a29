package measure

import (
	"context"

	"ridgepoint/harness"
)

// pilotRuns is how many launches of each size are kept in a pilot: with the warm-ups a third of what the whole takes.
const pilotRuns = 8

// pilots reports whether a measurement begins with a pilot: racing, on a device whose sizes get a known number of launches.
func (m *meter) pilots(sizes int) bool {
	return m.Race != nil && m.Rounds == 0 && m.timing.Window == 0 && m.timing.MinRuns > 2*pilotRuns && sizes > 1 && !m.engine.Traits().Untimed
}

// pilot times every size briefly, from the least work to the most, so that a candidate that cannot win is found out at any size
// before the whole is measured at the first. It returns the samples by size, which count among those of the whole, and
// whether the race is over.
func (m *meter) pilot(ctx context.Context, order []int, scored []harness.Size) (early [][]float64, over bool, err error) {
	early = make([][]float64, len(scored))
	timing := m.timing
	timing.MinRuns, timing.MaxRuns = pilotRuns, pilotRuns
	for done, i := range order {
		kept, err := m.brief(ctx, i, scored[i], timing)
		if err != nil {
			return early, false, err
		}
		early[i] = kept
		if bound, stop := race(m.Race, early); stop && done+1 < len(scored) {
			m.result.Censored = &harness.Censored{MeasuredSizes: done + 1, LowerBound: bound}
			return early, true, nil
		}
	}
	return early, false, nil
}

// brief takes one sample set of the candidate at one size.
func (m *meter) brief(ctx context.Context, index int, size harness.Size, timing Timing) ([]float64, error) {
	benches, err := m.bind(ctx, index, size)
	defer closeAll(benches)
	if err != nil {
		return nil, err
	}
	m.role = RoleCandidate
	got, err := benches[0].collect(ctx, timing)
	if err != nil {
		m.keepFailed(benches)
		return nil, err
	}
	return got.kept, nil
}

// rest is the time plan of a size of which a pilot has samples already: what is wanted beyond them, behind a few launches that
// bring the kernel back into the caches of instructions. The ten launches before the first kept one were the pilot's.
func (t Timing) rest(early []float64) Timing {
	if n := len(early); n > 0 {
		t.Warmups, t.Discard, t.MinRuns, t.MaxRuns = 2, 0, t.MinRuns-n, t.MaxRuns-n
	}
	return t
}

// merge joins a pilot's samples with the rest's.
func (b *bench) merge(early []float64, rest harness.SizeTime, timing Timing) harness.SizeTime {
	if len(early) == 0 {
		return rest
	}
	st := b.sizeTime(append(append([]float64(nil), early...), rest.SamplesUS...), timing)
	st.Dropped, st.Noisy = rest.Dropped, st.Noisy || rest.Noisy
	return st
}

func closeAll(benches []*bench) {
	for _, b := range benches {
		_ = b.Bench.Close() // the program's own Close follows and reports
	}
}
