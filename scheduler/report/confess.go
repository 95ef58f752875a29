package report

import (
	"context"
	"fmt"
	"math"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/memory"
)

// Confession is what a reader should know before quoting the result: how far the search flattered its winner, what became of it at
// sizes that nobody was scored on, how much of the measuring was disturbed, and what was not believed.
type Confession struct {
	// SearchedSpeedup is the winner's when the search first measured it, ReplayedSpeedup the number to quote; Overstated is by
	// what share the former is above the latter. 0 where there is no such number.
	SearchedSpeedup float64 `json:"searched_speedup,omitempty"`
	ReplayedSpeedup float64 `json:"replayed_speedup,omitempty"`
	Overstated      float64 `json:"overstated,omitempty"`
	// BestSearched is the highest speed-up that any one measurement of the search showed: the luckiest of many.
	BestSearched float64 `json:"best_searched,omitempty"`
	// HiddenSpeedup is the replayed winner's geometric mean over hidden sizes, where the baseline was not disturbed.
	HiddenSpeedup float64      `json:"hidden_speedup,omitempty"`
	Hidden        []HiddenSize `json:"hidden,omitempty"`
	// Measured counts the outcomes with times, Noisy those of them whose spread stayed over the limit.
	Measured    int64         `json:"measured"`
	Noisy       int64         `json:"noisy"`
	Quarantined []Quarantined `json:"quarantined,omitempty"`
}

// HiddenSize is one size that nobody was scored on. Times are in microseconds.
type HiddenSize struct {
	Size       harness.Size `json:"size"`
	BaselineUS float64      `json:"baseline_us"`
	RuntimeUS  float64      `json:"runtime_us"`
	Disturbed  bool         `json:"disturbed,omitempty"` // not counted
}

// Quarantined is a result that is faster than the device can be.
type Quarantined struct {
	Candidate     string                `json:"candidate"`
	Structure     string                `json:"structure"`
	Configuration harness.Configuration `json:"configuration"`
	Reason        string                `json:"reason"`
}

// maxQuarantined bounds the list of quarantined results.
const maxQuarantined = 12

// count takes in any outcome.
func (b *builder) count(t *scheduler.Trial, s *scheduler.Summary) {
	c := &b.out.Confession
	if s.Cached || !s.Fault.Measured() {
		return
	}
	c.Measured++
	if s.Fault == harness.FaultNoisy {
		c.Noisy++
	}
	if s.Quarantined {
		if len(c.Quarantined) < maxQuarantined {
			c.Quarantined = append(c.Quarantined, Quarantined{t.Point.ID, b.name(t.Point.Structure), t.Point.Configuration, s.Reason})
		}
		return
	}
	if t.Purpose != scheduler.PurposeSearch || s.Censored {
		return
	}
	speedup := crown.GeoMeanSpeedup(b.state.BaselineUS, s.TimesUS)
	if _, known := b.searched[t.Point.ID]; !known {
		b.searched[t.Point.ID] = speedup
	}
	c.BestSearched = max(c.BestSearched, speedup)
}

// confess completes the confession from the winner and the replay's report.
func (b *builder) confess(ctx context.Context, store *memory.Store) error {
	c := &b.out.Confession
	if w := b.out.Result.Winner; w != nil {
		c.SearchedSpeedup, c.ReplayedSpeedup = b.searched[w.Candidate], w.ReplayedSpeedup
		if c.SearchedSpeedup > 0 && c.ReplayedSpeedup > 0 {
			c.Overstated = c.SearchedSpeedup/c.ReplayedSpeedup - 1
		}
	}
	if b.replay == 0 {
		return nil
	}
	outcomes, err := store.Outcomes(ctx, b.campaign.ID, b.replay)
	if err != nil || len(outcomes) == 0 {
		return err
	}
	logs, n := 0.0, 0
	for _, z := range outcomes[len(outcomes)-1].Report.Hidden {
		c.Hidden = append(c.Hidden, HiddenSize{z.Size, z.BaselineUS, z.MedianUS, z.Noisy || z.BaselineNoisy})
		if !z.Noisy && !z.BaselineNoisy && z.BaselineUS > 0 && z.MedianUS > 0 {
			logs, n = logs+math.Log(z.BaselineUS/z.MedianUS), n+1
		}
	}
	if n > 0 {
		c.HiddenSpeedup = math.Exp(logs / float64(n))
	}
	return nil
}

// Lines are the confession for a person, a line each.
func (c *Confession) Lines() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.SearchedSpeedup > 0 && c.ReplayedSpeedup > 0 {
		word := "overstated"
		if c.Overstated < 0 {
			word = "understated"
		}
		add("winner's curse: searched at %.2f×, replayed at %.2f×: the search %s it by %.1f %%; the luckiest single measurement was %.2f×", c.SearchedSpeedup, c.ReplayedSpeedup, word, 100*math.Abs(c.Overstated), c.BestSearched)
	}
	for _, h := range c.Hidden {
		note := ""
		if h.Disturbed {
			note = ", disturbed: not counted"
		}
		add("hidden size %s: baseline %s, winner %s, %.2f×%s", h.Size, micros(h.BaselineUS), micros(h.RuntimeUS), h.BaselineUS/h.RuntimeUS, note)
	}
	switch {
	case c.HiddenSpeedup > 0 && c.ReplayedSpeedup > 0:
		add("hidden sizes: %.2f× where scored ones have %.2f× (geometric means)", c.HiddenSpeedup, c.ReplayedSpeedup)
	case c.ReplayedSpeedup > 0 && len(c.Hidden) == 0:
		add("hidden sizes: none was timed (the task has none, or the device times nothing); hidden ones were verified only")
	}
	if c.Measured > 0 {
		add("noise: %d of %d measurements stayed noisy (%.0f %%)", c.Noisy, c.Measured, 100*float64(c.Noisy)/float64(c.Measured))
	}
	for _, q := range c.Quarantined {
		add("quarantined: %s %s (%s): %s", q.Structure, Config(q.Configuration), Short(q.Candidate), q.Reason)
	}
	return out
}

// confession prints it.
func (r *Report) confession(p *printer) {
	lines := r.Confession.Lines()
	if len(lines) == 0 {
		return
	}
	p.line("Before you quote this")
	for _, l := range lines {
		p.line("  %s", l)
	}
	if n := r.Noise; n != nil {
		p.line("  detectable: gains under %.2f %% are below what a confirmation finds here with %.0f %% power", 100*n.Detectable, 100*n.Power)
	}
	p.line("")
}
