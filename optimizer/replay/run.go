package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ridgepoint/optimizer"
)

// Searcher is what a run drives: an optimizer that names what it holds best and what it would measure again.
type Searcher interface {
	optimizer.Optimizer
	// Best returns the told configuration that the search would hand over.
	Best() (optimizer.Configuration, bool)
	// Remeasure returns a told configuration worth another measurement, given how many were spent on repeats so far.
	Remeasure(spent int) (optimizer.Configuration, bool)
}

// Conditions are how a recording is played back.
type Conditions struct {
	Budget   int              // unique configurations
	InFlight int              // evaluations at a time; 1 is one after another
	Noise    bool             // log-normal with the recorded spread (at most 5 %), 1 % outliers of 1.5 times
	Seed     uint64           // of the noise
	Now      func() time.Time // for the time of asks and tells; nil: not taken
}

// Result is what one run came to.
type Result struct {
	Curve    []float64 // smallest true time among the configurations told so far, after each; +Inf before the first success
	Returned float64   // true time of what the search hands over
	Failed   int
	Repeats  int           // measurements beyond one a configuration
	Wall     time.Duration // simulated, from the recorded compile and benchmark times
	Work     time.Duration // the same, added up
	Took     time.Duration // in Ask and Tell
}

// maxSpread caps the noise; outlierShare of the measurements are outlierFactor too slow.
const (
	maxSpread     = 0.05
	outlierShare  = 0.01
	outlierFactor = 1.5
)

// Run drives a search over a recording until the budget or the space is used up.
func Run(ctx context.Context, r *Record, s Searcher, c Conditions) (*Result, error) {
	p := &player{record: r, search: s, c: c, pool: r.Space.NewPool(), rng: rand.New(rand.NewPCG(c.Seed, 77)), best: math.Inf(1), result: &Result{Returned: math.Inf(1)}}
	err := p.play(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s, evaluation %d: %w", r.Name, len(p.result.Curve)+1, err)
	}
	if best, ok := s.Best(); ok {
		id, err := p.id(best)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		p.result.Returned = r.Time[id]
	}
	return p.result, nil
}

// player is one run under way.
type player struct {
	record *Record
	search Searcher
	c      Conditions
	pool   *optimizer.Pool
	rng    *rand.Rand
	best   float64
	asked  int
	flight []flight
	clock  time.Duration
	result *Result
}

// flight is one evaluation under way.
type flight struct {
	id     int
	config optimizer.Configuration
	ends   time.Duration
}

func (p *player) play(ctx context.Context) error {
	for {
		for len(p.flight) < max(1, p.c.InFlight) && p.asked < p.c.Budget {
			if err := p.ask(ctx); errors.Is(err, optimizer.ErrExhausted) {
				break
			} else if err != nil {
				return err
			}
		}
		if len(p.flight) == 0 {
			return p.repeat(ctx)
		}
		if err := p.finish(ctx); err != nil {
			return err
		}
		if err := p.repeat(ctx); err != nil {
			return err
		}
	}
}

func (p *player) ask(ctx context.Context) error {
	var c optimizer.Configuration
	err := p.timed(func() (err error) {
		c, err = p.search.Ask(ctx)
		return err
	})
	if err != nil {
		return err
	}
	id, err := p.id(c)
	if err != nil {
		return err
	}
	took := p.duration(id)
	p.asked++
	p.result.Work += took
	p.flight = append(p.flight, flight{id: id, config: c, ends: p.clock + took})
	return nil
}

// finish tells the evaluation that ends first.
func (p *player) finish(ctx context.Context) error {
	first := 0
	for i, f := range p.flight {
		if f.ends < p.flight[first].ends {
			first = i
		}
	}
	f := p.flight[first]
	p.flight = append(p.flight[:first], p.flight[first+1:]...)
	p.clock = max(p.clock, f.ends)
	p.result.Wall = p.clock
	t := p.record.Time[f.id]
	if math.IsNaN(t) {
		p.result.Failed++
	} else {
		p.best = math.Min(p.best, t)
	}
	p.result.Curve = append(p.result.Curve, p.best)
	return p.tell(ctx, f.id, f.config)
}

// repeat measures again what the search wants measured again.
func (p *player) repeat(ctx context.Context) error {
	if !p.c.Noise {
		return nil
	}
	for {
		c, ok := p.search.Remeasure(p.result.Repeats)
		if !ok {
			return nil
		}
		id, err := p.id(c)
		if err != nil {
			return err
		}
		p.result.Repeats++
		p.clock += p.duration(id)
		if err := p.tell(ctx, id, c); err != nil {
			return err
		}
	}
}

func (p *player) tell(ctx context.Context, id int, c optimizer.Configuration) error {
	o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed, FailKind: p.record.Fail[id], CostSeconds: p.duration(id).Seconds()}
	if t := p.record.Time[id]; !math.IsNaN(t) {
		o.Outcome, o.Value = optimizer.OutcomeMeasured, t
		if p.c.Noise {
			sd := math.Min(p.record.Spread[id], maxSpread)
			o.Value *= math.Exp(sd * p.rng.NormFloat64())
			o.Variance = sd * sd
			if p.rng.Float64() < outlierShare {
				o.Value *= outlierFactor
			}
		}
	}
	return p.timed(func() error { return p.search.Tell(ctx, o) })
}

// duration is how long the recorded evaluation took: compiling and benchmarking, at least a millisecond.
func (p *player) duration(id int) time.Duration {
	ms := p.record.Compile[id] + p.record.Bench[id]
	return time.Duration(math.Max(ms, 1) * float64(time.Millisecond))
}

// id returns the pool's id of a proposal, which must be feasible.
func (p *player) id(c optimizer.Configuration) (int, error) {
	row, err := p.record.Space.Row(c)
	if err != nil {
		return 0, err
	}
	id, ok := p.pool.ID(row)
	if !ok {
		return 0, optimizer.ErrInfeasible
	}
	return id, nil
}

func (p *player) timed(fn func() error) error {
	if p.c.Now == nil {
		return fn()
	}
	begin := p.c.Now()
	err := fn()
	p.result.Took += p.c.Now().Sub(begin)
	return err
}
