package replay

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"
)

// Checkpoints are the evaluations at which curves are reported.
var Checkpoints = []int{1, 5, 20, 40, 80, 120, 160, 220}

// Marks returns the checkpoints that a budget reaches, and the budget itself where it lies between or beyond them: what a run would
// have come to after its end is not known.
func Marks(budget int) []int {
	var out []int
	for _, k := range Checkpoints {
		if k <= budget {
			out = append(out, k)
		}
	}
	if len(out) == 0 || out[len(out)-1] < budget {
		out = append(out, budget)
	}
	return out
}

// stableSpread is the largest spread among a recording's best 1 % with which the recording counts for "within" and "worst":
// above it the recorded optimum itself is not certain.
const stableSpread = 0.10

// Stable reports whether the repeats of the best 1 % of the configurations agree.
func (r *Record) Stable() bool {
	n := 0
	for _, t := range r.Time {
		if !math.IsNaN(t) {
			n++
		}
	}
	limit := quantile(okTimes(r.Time), 0.01)
	var spreads []float64
	for id, t := range r.Time {
		if t <= limit {
			spreads = append(spreads, r.Spread[id])
		}
	}
	return n > 0 && median(spreads) <= stableSpread
}

func okTimes(times []float64) []float64 {
	var out []float64
	for _, t := range times {
		if !math.IsNaN(t) {
			out = append(out, t)
		}
	}
	return out
}

// Plan says what a benchmark runs.
type Plan struct {
	Records    []*Record
	Strategies []string
	Seeds      int
	FirstSeed  uint64 // the runs of a strategy on a recording have the seeds FirstSeed, FirstSeed+1, ...
	Conditions Conditions
	Parallel   int
	// New makes the search for one run.
	New func(r *Record, strategy string, seed uint64) (Searcher, error)
	// Progress is called after each run, from one goroutine at a time; nil: not called.
	Progress func(done, total int)
}

// Cell is one strategy on one recording: a result for each seed.
type Cell struct {
	Strategy string
	Record   *Record
	First    uint64 // seed of the first result
	Budget   int    // evaluations that a run had
	Results  []*Result
}

// Do runs the plan and returns the cells by strategy, then recording.
func (p Plan) Do(ctx context.Context) ([]Cell, error) {
	var cells []Cell
	for _, s := range p.Strategies {
		for _, r := range p.Records {
			cells = append(cells, Cell{Strategy: s, Record: r, First: p.FirstSeed, Budget: p.Conditions.Budget, Results: make([]*Result, p.Seeds)})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, p.Parallel))
	done := make(chan struct{}, 16) // a few ends of runs may wait while a line is printed
	total, finished := len(cells)*p.Seeds, make(chan struct{})
	go func() {
		defer close(finished)
		n := 0
		for range done {
			if n++; p.Progress != nil {
				p.Progress(n, total)
			}
		}
	}()
	for i := range cells {
		for seed := range p.Seeds {
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				c := &cells[i]
				s, err := p.New(c.Record, c.Strategy, c.First+uint64(seed))
				if err != nil {
					return fmt.Errorf("%s on %s: %w", c.Strategy, c.Record.Name, err)
				}
				conditions := p.Conditions
				conditions.Seed = c.First + uint64(seed)
				c.Results[seed], err = Run(ctx, c.Record, s, conditions)
				done <- struct{}{}
				return err
			})
		}
	}
	err := group.Wait()
	close(done)
	<-finished
	return cells, err
}

// Ratio is the recorded optimum over the best true time after k evaluations; 0 before the first success.
func (c *Cell) Ratio(seed, k int) float64 {
	curve := c.Results[seed].Curve
	if len(curve) == 0 {
		return 0
	}
	return c.Record.Best / curve[min(k, len(curve))-1]
}

// Ratios returns Ratio for every seed.
func (c *Cell) Ratios(k int) []float64 {
	out := make([]float64, len(c.Results))
	for seed := range out {
		out[seed] = c.Ratio(seed, k)
	}
	return out
}

// To returns the evaluations that a seed needed to come within a share of the optimum; +Inf when it did not.
func (c *Cell) To(seed int, share float64) float64 {
	for i, t := range c.Results[seed].Curve {
		if c.Record.Best/t >= 1-share {
			return float64(i + 1)
		}
	}
	return math.Inf(1)
}
