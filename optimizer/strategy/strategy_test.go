package strategy_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/optimizer/transfer"
)

func value(v int64) *expr.Value { x := expr.Int(v); return &x }

func ints(v ...int64) []expr.Value {
	out := make([]expr.Value, len(v))
	for i, x := range v {
		out[i] = expr.Int(x)
	}
	return out
}

// kernelLike is a mixed space with a condition and constraints, and a smooth objective with failures.
func kernelLike(t testing.TB) *optimizer.Space {
	t.Helper()
	space, err := optimizer.New(optimizer.Declaration{
		Params: []optimizer.Param{
			{Name: "bx", Min: value(32), Max: value(256), Step: value(32)},
			{Name: "by", Values: ints(1, 2, 4, 8, 16)},
			{Name: "tile", Values: ints(1, 2, 3, 4)},
			{Name: "shared", Type: "bool"},
			{Name: "pad", Values: ints(0, 1), When: "shared"},
			{Name: "fetch", Type: "string", Values: []expr.Value{expr.String("plain"), expr.String("ldg"), expr.String("async")}},
		},
		Constraints: []string{"bx * by <= 1024", "fetch != \"async\" or shared"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func evaluate(c optimizer.Configuration) optimizer.Observation {
	if _, ok := c["bx"]; !ok {
		return happened(c)
	}
	get := func(name string) float64 { f, _ := c[name].AsFloat(); return f }
	threads := math.Log2(get("bx") * get("by"))
	y := 1 + 0.1*math.Pow(threads-7.5, 2) + 0.2*math.Abs(get("tile")-3) + 0.1*get("pad")
	if shared, _ := c["shared"].AsBool(); shared {
		y *= 0.8
	}
	if s, _ := c["fetch"].AsString(); s == "ldg" {
		y *= 0.9
	}
	if get("tile") == 4 && threads > 9 {
		return optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed, FailKind: "launch"}
	}
	return optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: y, CostSeconds: 0.1}
}

// warmed is the portfolio with records of two other devices: one alike, one misleading.
const warmed = "portfolio with records"

func setup(t testing.TB, name string, space *optimizer.Space, seed uint64) *strategy.Search {
	t.Helper()
	o := strategy.Options{Seed: seed}
	if name == warmed {
		name = "portfolio"
		var err error
		if o.Prior, err = transfer.New(space, sources(space)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := strategy.New(name, space, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sources(space *optimizer.Space) []optimizer.Source {
	pool := space.NewPool()
	like, unlike := optimizer.Source{Name: "like"}, optimizer.Source{Name: "unlike"}
	for id := 0; id < pool.Len(); id += 3 {
		o := evaluate(space.Configuration(pool.Row(id)))
		o.Value *= 1 + 0.1*float64(id%4)
		like.Observations = append(like.Observations, o)
		if o.Outcome == optimizer.OutcomeMeasured {
			o.Value = 1 / o.Value
			unlike.Observations = append(unlike.Observations, o)
		}
	}
	return []optimizer.Source{like, unlike}
}

// TestFeasibleAndFresh drives every strategy with eight in flight, lost and repeated tells among them.
func TestFeasibleAndFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	for _, name := range append(strategy.Names(), warmed) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space, ctx := kernelLike(t), context.Background()
			s := setup(t, name, space, 3)
			asked := map[string]bool{}
			var flight []optimizer.Configuration
			for i := range 80 {
				c, err := s.Ask(ctx)
				if err != nil {
					t.Fatal(err)
				}
				canonical, err := space.Canonical(c)
				if err != nil || !cmp.Equal(optimizer.Hash(canonical), optimizer.Hash(c)) {
					t.Fatalf("asked %v: not a canonical feasible configuration: %v", c, err)
				}
				if h := optimizer.Hash(c); asked[h] {
					t.Fatalf("asked %v twice", c)
				} else {
					asked[h] = true
				}
				if flight = append(flight, c); len(flight) < 8 {
					continue
				}
				o := evaluate(flight[0])
				if i%11 == 0 {
					o = optimizer.Observation{Configuration: o.Configuration, Outcome: optimizer.OutcomeLost}
					delete(asked, optimizer.Hash(o.Configuration))
				}
				if i%13 == 0 && o.Outcome == optimizer.OutcomeMeasured {
					o.Outcome = optimizer.OutcomeCensored
				}
				flight = flight[1:]
				if err := s.Tell(ctx, o); err != nil {
					t.Fatal(err)
				}
				if i%17 == 0 && o.Outcome == optimizer.OutcomeMeasured {
					o.Value *= 1.02
					if err := s.Tell(ctx, o); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestExhaustsSmallSpace asks until nothing is left and counts.
func TestExhaustsSmallSpace(t *testing.T) {
	t.Parallel()
	for _, name := range strategy.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space, err := optimizer.New(optimizer.Declaration{
				Params:      []optimizer.Param{{Name: "a", Values: ints(1, 2, 4, 8)}, {Name: "b", Values: ints(1, 2, 3)}, {Name: "only", Values: ints(5)}},
				Constraints: []string{"a != 8 or b == 1"},
			})
			if err != nil {
				t.Fatal(err)
			}
			s, ctx := setup(t, name, space, 1), context.Background()
			seen := map[string]bool{}
			for i := range 10 {
				c, err := s.Ask(ctx)
				if err != nil {
					t.Fatalf("ask %d of 10: %v", i+1, err)
				}
				seen[optimizer.Hash(c)] = true
				a, _ := c["a"].AsFloat()
				if err := s.Tell(ctx, optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: a}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Ask(ctx); !errors.Is(err, optimizer.ErrExhausted) || len(seen) != 10 {
				t.Fatalf("%d distinct, then %v; want 10 and ErrExhausted", len(seen), err)
			}
		})
	}
}

// TestSameLogSameProposals rebuilds an optimizer from a log, by asking again and by Resume, and compares what follows.
func TestSameLogSameProposals(t *testing.T) {
	t.Parallel()
	for _, name := range append(strategy.Names(), warmed) {
		if name == "goptuna-tpe" { // draws from the process's global source: see tpe.Shipped
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := kernelLike(t)
			first, again, resumed := setup(t, name, space, 9), setup(t, name, space, 9), setup(t, name, space, 9)
			ctx := context.Background()
			var flight []optimizer.Configuration
			step := func(s *strategy.Search, tell *optimizer.Observation, log optimizer.Configuration) optimizer.Configuration {
				if tell != nil {
					if err := s.Tell(ctx, *tell); err != nil {
						t.Fatal(err)
					}
				}
				if log != nil {
					if err := s.Resume(log); err != nil {
						t.Fatal(err)
					}
					return log
				}
				c, err := s.Ask(ctx)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			for i := range 56 {
				var tell *optimizer.Observation
				if len(flight) >= 5 {
					o := evaluate(flight[2])
					tell = &o
					flight = append(flight[:2:2], flight[3:]...)
				}
				c := step(first, tell, nil)
				if d := step(again, tell, nil); !cmp.Equal(optimizer.Hash(c), optimizer.Hash(d)) {
					t.Fatalf("ask %d: %v, then %v for the same log", i, c, d)
				}
				var log optimizer.Configuration
				if i < 40 {
					log = c
				}
				if d := step(resumed, tell, log); !cmp.Equal(optimizer.Hash(c), optimizer.Hash(d)) {
					t.Fatalf("ask %d: %v, after a resume %v", i, c, d)
				}
				flight = append(flight, c)
			}
		})
	}
}

// TestSpaceTooLargeToHold searches 2e10 configurations: proposals are feasible and fresh, and the model does better than a draw.
func TestSpaceTooLargeToHold(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	d := optimizer.Declaration{Constraints: []string{"p0 * p1 <= 100"}}
	for i := range 9 {
		d.Params = append(d.Params, optimizer.Param{Name: "p" + string(rune('0'+i)), Min: value(1), Max: value(16)})
	}
	space, err := optimizer.New(d)
	if err != nil {
		t.Fatal(err)
	}
	best := map[string]float64{}
	for _, name := range []string{"random", "tpe", "local", "gp", "portfolio"} {
		s, ctx := setup(t, name, space, 2), context.Background()
		seen := map[string]bool{}
		best[name] = math.Inf(1)
		for range 50 {
			c, err := s.Ask(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := space.Row(c); err != nil || seen[optimizer.Hash(c)] {
				t.Fatalf("%s asked %v: repeated or %v", name, c, err)
			}
			seen[optimizer.Hash(c)] = true
			y := 1.0
			for i, p := range space.Names() {
				x, _ := c[p].AsFloat()
				y += 0.01 * math.Pow(x-float64(3+i), 2)
			}
			best[name] = math.Min(best[name], y)
			if err := s.Tell(ctx, optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: y}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if best["gp"] >= best["random"] || best["portfolio"] >= best["random"] {
		t.Errorf("best values %v: no better than random", best)
	}
}

// TestBestIsShrunken tells one configuration a lucky value among noisy repeats of its neighbours.
func TestBestIsShrunken(t *testing.T) {
	t.Parallel()
	space, ctx := kernelLike(t), context.Background()
	s := setup(t, "portfolio", space, 4)
	var lucky optimizer.Configuration
	const sd = 0.2
	for i := range 60 {
		c, err := s.Ask(ctx)
		if err != nil {
			t.Fatal(err)
		}
		o := evaluate(c)
		o.Variance = sd * sd
		if i == 4 && o.Outcome == optimizer.OutcomeMeasured {
			lucky, o.Value = c, 0.55 // far below what its neighbours say, within three deviations of noise
		}
		if err := s.Tell(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	v := s.Verdicts(1)
	if lucky == nil || len(v) == 0 {
		t.Fatal("the lucky draw failed to run: choose another seed")
	}
	if got := math.Exp(v[0].Mean); got < 0.6 {
		t.Errorf("the best is believed to take %.3f; a single draw of 0.55 with 20 %% noise must not be", got)
	}
	c, ok := s.Remeasure(0)
	if !ok {
		t.Fatal("nothing is worth measuring again although the noise is 20 %")
	}
	if _, err := space.Row(c); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Remeasure(60); ok {
		t.Error("repeats go on after as many as there were evaluations")
	}
}

func TestUnknownStrategyIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := strategy.New("bayes", kernelLike(t), strategy.Options{}); err == nil {
		t.Fatal("want an error that lists the strategies")
	}
}

// TestRecordsOfLargeSpaces gives records of a few hundred configurations of spaces that are too large to look at whole: one that
// is held and one that is not. The first proposals are the records' best, and the prior takes no time that grows with the space.
func TestRecordsOfLargeSpaces(t *testing.T) {
	t.Parallel()
	for dims, held := range map[int]bool{5: true, 9: false} {
		d := optimizer.Declaration{}
		for i := range dims {
			d.Params = append(d.Params, optimizer.Param{Name: "p" + string(rune('0'+i)), Min: value(1), Max: value(16)})
		}
		space, err := optimizer.New(d)
		if err != nil {
			t.Fatal(err)
		}
		if space.Enumerated() != held || space.Size() < 1e6 {
			t.Fatalf("%.0f configurations, held %v", space.Size(), space.Enumerated())
		}
		slow := func(c optimizer.Configuration) float64 {
			y := 1.0
			for i, p := range space.Names() {
				x, _ := c[p].AsFloat()
				y += 0.01 * math.Pow(x-float64(3+i), 2)
			}
			return y
		}
		src, best := optimizer.Source{Name: "elsewhere"}, math.Inf(1)
		pool, rng := space.NewPool(), rand.New(rand.NewPCG(1, 1))
		for range 300 {
			c := space.Configuration(pool.Row(pool.Draw(rng)))
			src.Observations = append(src.Observations, optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: slow(c)})
			best = min(best, slow(c))
		}
		s := setup(t, "portfolio", space, 1)
		if used, err := s.Inform([]optimizer.Source{src}); err != nil || len(used) != 1 {
			t.Fatalf("used %v, %v", used, err)
		}
		found := math.Inf(1)
		for range 12 {
			c, err := s.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found = min(found, slow(c))
			if err := s.Tell(t.Context(), optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: slow(c)}); err != nil {
				t.Fatal(err)
			}
		}
		if found > best {
			t.Errorf("%d parameters: the best of twelve takes %.3f, the records hold one of %.3f", dims, found, best)
		}
	}
}
