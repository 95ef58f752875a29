package measure

import (
	"context"
	"fmt"

	"ridgepoint/harness"
)

// newContest lays a contest out: rivals in their order, the candidate last, every odd round in the opposite order.
func newContest(contestants []Contestant, sizes []harness.Size, rounds int) *harness.Contest {
	c := &harness.Contest{Sizes: sizes, Order: make([][]int, rounds), MedianUS: make([][][]float64, rounds)}
	n := len(contestants)
	for i := 1; i < n; i++ { // rivals first, the candidate last
		c.Contestants = append(c.Contestants, contestants[i].Role)
	}
	c.Contestants = append(c.Contestants, contestants[0].Role)
	for r := range rounds {
		for k := range n {
			at := k
			if r%2 == 1 { // A/B then B/A
				at = n - 1 - k
			}
			c.Order[r] = append(c.Order[r], at)
			c.MedianUS[r] = append(c.MedianUS[r], make([]float64, len(sizes)))
		}
	}
	return c
}

// contest runs the interleaved rounds of one size. The candidate's and the baseline's samples of all rounds make the size's
// times.
func (m *meter) contest(ctx context.Context, index int, benches []*bench) (harness.SizeTime, error) {
	c := m.result.Contest
	names := m.contestants()
	n := len(benches)
	all := make([][]float64, n)
	dropped := 0
	for r := range m.Rounds {
		for _, at := range c.Order[r] {
			who := (at + 1) % n // contest order has the candidate last, benches have it first
			m.role = names[who].Role
			timing := m.timing
			timing.MinRuns, timing.MaxRuns, timing.Window = timing.RoundRuns, timing.RoundRuns, 0
			if r > 0 {
				timing.Warmups, timing.Discard = 1, 0
			}
			if !timing.Flush && r == 0 {
				if err := benches[who].Flush(ctx); err != nil {
					return harness.SizeTime{}, fmt.Errorf("flush caches: %w", err)
				}
			}
			got, err := benches[who].collect(ctx, timing)
			if err != nil {
				return harness.SizeTime{}, err
			}
			if who == 0 {
				if err := checkWalls(benches[0], got.kept, got.walls); err != nil {
					return harness.SizeTime{}, err
				}
			}
			c.MedianUS[r][at][index] = statistic(timing.Statistic, got.kept)
			all[who] = append(all[who], got.kept...)
			dropped += got.dropped
		}
	}
	st := benches[0].sizeTime(all[0], m.timing)
	st.Dropped, st.Noisy = dropped, st.Noisy || crowded(dropped, n*len(all[0]))
	for i := 1; i < n; i++ {
		if names[i].Role == RoleBaseline {
			st.BaselineUS, st.BaselineNoisy = statistic(m.timing.Statistic, all[i]), m.timing.noisy(all[i])
		}
	}
	return st, nil
}
