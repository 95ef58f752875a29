package replay

import (
	"context"
	"errors"
	"io"
	"math"

	"golang.org/x/sync/errgroup"

	"ridgepoint/optimizer"
)

// Contest is how many evaluations each way of spending needed on one recording, by seed; +Inf beyond the budget.
type Contest struct {
	Space  string               `json:"space"`
	Parts  int                  `json:"structures"`
	Budget int                  `json:"budget"`
	Needed map[string][]float64 `json:"-"`
	Means  map[string]float64   `json:"mean_evaluations_to_5_percent"` // geometric; runs beyond the budget count as the budget
	Missed map[string]int       `json:"runs_beyond_the_budget"`
}

// ErrNoSwitches says that no recording can be taken apart into structures.
var ErrNoSwitches = errors.New("none of the recordings has algorithm switches to take as structures; recordings of conv, gemm and pnpoly have")

// Spends are the ways compared, ours first.
var Spends = []string{SpendOffers, SpendEqually, SpendBest}

// ContestPlan says what is compared.
type ContestPlan struct {
	Records  []*Record
	Seeds    int
	Budget   int
	Parallel int
	New      func(part *Record, seed uint64) (Contender, error)
}

// Do plays the recordings that have switches; others are left out.
func (p ContestPlan) Do(ctx context.Context) ([]Contest, error) {
	var out []Contest
	for _, r := range p.Records {
		switches, ok := Switches[r.Family()]
		if !ok {
			continue
		}
		parts, err := Split(r, switches)
		if err != nil {
			return nil, err
		}
		c := Contest{Space: r.Name, Parts: len(parts), Budget: p.Budget, Needed: map[string][]float64{}, Means: map[string]float64{}, Missed: map[string]int{}}
		for _, spend := range Spends {
			needed, err := p.play(ctx, parts, spend)
			if err != nil {
				return nil, err
			}
			c.Needed[spend] = needed
			capped := make([]float64, len(needed))
			for i, n := range needed {
				if capped[i] = math.Min(n, float64(p.Budget)); math.IsInf(n, 1) {
					c.Missed[spend]++
				}
			}
			c.Means[spend] = geometric(capped)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, ErrNoSwitches
	}
	return out, nil
}

func (p ContestPlan) play(ctx context.Context, parts []*Record, spend string) ([]float64, error) {
	out := make([]float64, p.Seeds)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, p.Parallel))
	for seed := range p.Seeds {
		group.Go(func() error {
			searches, family := make([]Contender, len(parts)), &optimizer.Family{}
			for i, part := range parts {
				var err error
				if searches[i], err = p.New(part, uint64(seed)); err != nil {
					return err
				}
				if spend == SpendOffers { // the others tune each structure alone
					searches[i].Join(family)
				}
			}
			var err error
			out[seed], err = Compete(ctx, parts, searches, spend, uint64(seed), p.Budget, 0.05)
			return err
		})
	}
	return out, group.Wait()
}

// WriteContests writes one line a recording, then the geometric means over recordings and how many times fewer evaluations
// ours needs.
func WriteContests(w io.Writer, contests []Contest) error {
	p := &printer{w: w}
	p.printf("%-20s %10s", "evaluations to 5 %", "structures")
	for _, s := range Spends {
		p.printf(" %10s", s)
	}
	p.printf("  runs beyond the budget\n")
	means := map[string][]float64{}
	for _, c := range contests {
		p.printf("%-20s %10d", c.Space, c.Parts)
		for _, s := range Spends {
			p.printf(" %10.1f", c.Means[s])
			means[s] = append(means[s], c.Means[s])
		}
		for _, s := range Spends {
			p.printf(" %3d", c.Missed[s])
		}
		p.printf("\n")
	}
	p.printf("%-31s", "geometric mean")
	for _, s := range Spends {
		p.printf(" %10.1f", geometric(means[s]))
	}
	p.printf("\n%-31s", "times as many as offers")
	for _, s := range Spends {
		p.printf(" %10.2f", geometric(means[s])/geometric(means[SpendOffers]))
	}
	p.printf("\n")
	return p.err
}
