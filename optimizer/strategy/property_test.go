package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
)

// randomSpace draws a declaration with every kind of parameter, a chain of conditions and constraints over both.
func randomSpace(t testing.TB, rng *rand.Rand, wide bool) *optimizer.Space {
	t.Helper()
	for {
		low := int64(1) << rng.IntN(3)
		high := low << (1 + rng.IntN(3))
		d := optimizer.Declaration{Params: []optimizer.Param{
			{Name: "lg", Min: value(low), Max: value(high), Log: true},
			{Name: "step", Min: value(rng.Int64N(4)), Max: value(4 + rng.Int64N(3)), Step: value(1 + rng.Int64N(2))},
			{Name: "list", Values: []expr.Value{expr.Float(0.5), expr.Float(1.25), expr.Float(4)}[:2+rng.IntN(2)]},
			{Name: "on", Type: "bool"},
			{Name: "depth", Values: ints(2, 3, 4)[:2+rng.IntN(2)], When: "on"},
			{Name: "word", Type: "string", Values: []expr.Value{expr.String("a"), expr.String("b"), expr.String("c")}[:2+rng.IntN(2)], When: "on and depth > 2"},
			{Name: "only", Values: ints(7)},
		}}
		if wide {
			for i := range 3 {
				d.Params = append(d.Params, optimizer.Param{Name: fmt.Sprintf("w%d", i), Values: ints(1, 2, 3, 4, 6, 8)})
			}
			d.Constraints = append(d.Constraints, "w0 * w1 <= 24")
		}
		for _, c := range []string{"lg * step <= 24", "list * lg >= 1.0", "word != \"b\" or step > 1", "not on or step % 2 == 0"} {
			if rng.IntN(2) == 0 {
				d.Constraints = append(d.Constraints, c)
			}
		}
		if s, err := optimizer.New(d); err == nil {
			return s
		}
	}
}

// lawful checks a configuration against its declaration by the expression evaluator itself, not by the space's compiled form.
func lawful(t testing.TB, s *optimizer.Space, c optimizer.Configuration) error {
	t.Helper()
	d := s.Declaration()
	holds := func(source string) bool {
		e, err := expr.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(expr.Env(c))
		if err != nil {
			t.Fatalf("%s over %v: %v", source, c, err)
		}
		b, ok := v.AsBool()
		return ok && b
	}
	if len(c) != len(d.Params) {
		return fmt.Errorf("has %d values, want %d", len(c), len(d.Params))
	}
	for i, p := range d.Params {
		v, among := c[p.Name], false
		for _, w := range s.Values(i) {
			among = among || v == w
		}
		if !among {
			return fmt.Errorf("%s = %s is none of its values", p.Name, v)
		}
		if p.Min != nil {
			x, _ := v.AsFloat()
			low, _ := p.Min.AsFloat()
			high, _ := p.Max.AsFloat()
			if x < low || x > high {
				return fmt.Errorf("%s = %s lies outside %g to %g", p.Name, v, low, high)
			}
			if k := math.Log2(x / low); p.Log && k != math.Trunc(k) {
				return fmt.Errorf("%s = %s is no power of two times %g", p.Name, v, low)
			}
		}
		if p.When != "" && !holds(p.When) && v != s.Values(i)[0] {
			return fmt.Errorf("%s = %s although %q does not hold: want its default", p.Name, v, p.When)
		}
	}
	for _, k := range d.Constraints {
		if !holds(k) {
			return fmt.Errorf("breaks %q", k)
		}
	}
	return nil
}

// count returns how many distinct canonical configurations are lawful, by looking at the whole product.
func count(t testing.TB, s *optimizer.Space) int {
	t.Helper()
	found := map[string]bool{}
	c := optimizer.Configuration{}
	var walk func(i int)
	walk = func(i int) {
		if i == s.Dims() {
			if lawful(t, s, c) == nil {
				found[optimizer.Hash(c)] = true
			}
			return
		}
		for _, v := range s.Values(i) {
			c[s.Names()[i]] = v
			walk(i + 1)
		}
	}
	walk(0)
	return len(found)
}

// happened makes up what became of a configuration, a function of it: values, failures of two kinds, bounds.
func happened(c optimizer.Configuration) optimizer.Observation {
	x := 0.0
	for _, name := range []string{"lg", "step", "list", "depth"} {
		f, _ := c[name].AsFloat()
		x += math.Abs(f - 2)
	}
	o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: 1 + 0.1*x, CostSeconds: 0.1, Variance: 2.5e-3}
	switch h := optimizer.Hash(c); {
	case h[0] == '0' || h[0] == '1':
		return optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed, FailKind: "compile"}
	case h[0] == '2':
		o.Outcome = optimizer.OutcomeCensored
	case h[0] == '3':
		o.Outcome, o.Variance = optimizer.OutcomeNoisy, 0.01
	}
	return o
}

// long reports whether the long variants are asked for.
func long() bool { return os.Getenv("RIDGEPOINT_LONG") != "" }

// TestEveryProposalIsLawful asks every strategy for all there is of random spaces, with several in flight, lost and repeated
// tells: each proposal keeps to its declaration, none comes twice, and exactly the lawful ones come.
func TestEveryProposalIsLawful(t *testing.T) {
	t.Parallel()
	spaces := 3
	if long() {
		spaces = 40
	}
	for _, name := range strategy.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(spaces) {
				rng := rand.New(rand.NewPCG(seed, 99))
				exhaust(t, name, randomSpace(t, rng, false), rng)
			}
		})
	}
}

// exhaust asks until nothing is left.
func exhaust(t *testing.T, name string, space *optimizer.Space, rng *rand.Rand) {
	t.Helper()
	want, ctx := count(t, space), context.Background()
	if float64(want) != space.Size() {
		t.Fatalf("%v holds %.0f configurations, the product has %d lawful ones", space.Declaration(), space.Size(), want)
	}
	s := setup(t, name, space, rng.Uint64())
	seen, lost := map[string]bool{}, map[string]bool{}
	var flight []optimizer.Configuration
	most := want + 100
	if name == "goptuna-tpe" { // each of its suggestions that is tried or unlawful stays in its study, which it copies whole every time
		most = 5
	}
	for asks := 0; asks < most; asks++ {
		c, err := s.Ask(ctx)
		if err != nil && !errors.Is(err, optimizer.ErrExhausted) {
			t.Fatal(err)
		}
		if err == nil {
			h := optimizer.Hash(c)
			if e := lawful(t, space, c); e != nil {
				t.Fatalf("%v of %v: %v", c, space.Declaration(), e)
			}
			if seen[h] && !lost[h] {
				t.Fatalf("%v was proposed twice", c)
			}
			seen[h] = true
			delete(lost, h)
			if flight = append(flight, c); len(flight) < 1+rng.IntN(4) {
				continue
			}
		}
		if len(flight) == 0 {
			break
		}
		k := rng.IntN(len(flight))
		o := happened(flight[k])
		flight = append(flight[:k], flight[k+1:]...)
		if rng.IntN(20) == 0 {
			o.Outcome = optimizer.OutcomeLost
			lost[optimizer.Hash(o.Configuration)] = true
		}
		for range 1 + rng.IntN(8)/7 { // one in eight is measured twice
			if err := s.Tell(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != want && most > want {
		t.Fatalf("%d distinct proposals, want all %d", len(seen), want)
	}
}

// TestResumedSearchProposesTheSame stops searches of a space too large to be looked at whole, with repeats, lost ones and a
// second structure beside them, at any place of the log, and rebuilds them from it.
func TestResumedSearchProposesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	stops := []int{13, 44, 71}
	if long() {
		stops = []int{3, 9, 13, 21, 38, 44, 52, 67, 71, 90}
	}
	for _, name := range append(strategy.Names(), warmed) {
		if name == "goptuna-tpe" { // draws from the process's global source: see tpe.Shipped
			continue
		}
		stops := stops
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spaces := []*optimizer.Space{randomSpace(t, rand.New(rand.NewPCG(5, 99)), true), randomSpace(t, rand.New(rand.NewPCG(6, 99)), true)}
			for _, s := range spaces {
				if s.Size() <= 3000 {
					t.Fatalf("a space of %.0f is looked at whole: draw another", s.Size())
				}
			}
			if name == warmed && !long() {
				stops = []int{33} // each takes seconds
			}
			log := pair(t, name, spaces)
			log.drive(t, stops[len(stops)-1]+12)
			for _, stop := range stops {
				again := pair(t, name, spaces)
				again.replay(t, log.steps, stop)
			}
		})
	}
}

// step is one entry of a log over two structures: an ask with its answer, or a tell.
type step struct {
	structure int
	asked     optimizer.Configuration
	told      *optimizer.Observation
}

// searches are two structures of one campaign.
type searches struct {
	of    []*strategy.Search
	steps []step
}

func pair(t *testing.T, name string, spaces []*optimizer.Space) *searches {
	t.Helper()
	out, family := &searches{}, &optimizer.Family{}
	for i, s := range spaces {
		search := setup(t, name, s, uint64(40+i))
		search.Join(family)
		out.of = append(out.of, search)
	}
	return out
}

// drive writes a log of n steps.
func (s *searches) drive(t *testing.T, n int) {
	t.Helper()
	rng, ctx := rand.New(rand.NewPCG(3, 3)), context.Background()
	var flight []step
	for len(s.steps) < n {
		if len(flight) < 4 {
			k := rng.IntN(2)
			c, err := s.of[k].Ask(ctx)
			if err != nil {
				t.Fatal(err)
			}
			flight = append(flight, step{structure: k, asked: c})
			s.steps = append(s.steps, step{structure: k, asked: c})
			continue
		}
		at := rng.IntN(len(flight))
		f := flight[at]
		flight = append(flight[:at], flight[at+1:]...)
		o := happened(f.asked)
		if rng.IntN(12) == 0 {
			o.Outcome = optimizer.OutcomeLost
		}
		times := 1
		if o.Outcome == optimizer.OutcomeMeasured && rng.IntN(4) == 0 {
			times = 2
		}
		for range times {
			if err := s.of[f.structure].Tell(ctx, o); err != nil {
				t.Fatal(err)
			}
			told := o
			s.steps = append(s.steps, step{structure: f.structure, told: &told})
			o.Value *= 1.03
		}
	}
}

// replay takes the first stop steps from the log and must then give the same answers.
func (s *searches) replay(t *testing.T, steps []step, stop int) {
	t.Helper()
	ctx := context.Background()
	for i, e := range steps {
		search := s.of[e.structure]
		switch {
		case e.told != nil:
			if err := search.Tell(ctx, *e.told); err != nil {
				t.Fatal(err)
			}
		case i < stop:
			if err := search.Resume(e.asked); err != nil {
				t.Fatal(err)
			}
		default:
			c, err := search.Ask(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if optimizer.Hash(c) != optimizer.Hash(e.asked) {
				t.Fatalf("stopped at step %d: step %d proposes\n%v, without the stop it proposed\n%v", stop, i, c, e.asked)
			}
		}
	}
}

// TestLargestHeldSpace searches a space of just under two million configurations, the most that is held.
func TestLargestHeldSpace(t *testing.T) {
	t.Parallel()
	d := optimizer.Declaration{}
	for i := range 6 {
		d.Params = append(d.Params, optimizer.Param{Name: fmt.Sprintf("p%d", i), Min: value(1), Max: value(11)})
	}
	d.Params = append(d.Params, optimizer.Param{Name: "on", Type: "bool"})
	d.Constraints = []string{"p0 + p1 + p2 < 18"}
	space, err := optimizer.New(d)
	if err != nil {
		t.Fatal(err)
	}
	if !space.Enumerated() || space.Size() < 1_500_000 || space.Size() > optimizer.MaxEnumerated {
		t.Fatalf("%.0f configurations, held %v: want 1.5 to 2 million, held", space.Size(), space.Enumerated())
	}
	for _, name := range []string{"random", "local", "tpe", "portfolio"} {
		s, seen := setup(t, name, space, 1), map[string]bool{}
		for i := range 14 {
			c, err := s.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e := lawful(t, space, c); e != nil || seen[optimizer.Hash(c)] {
				t.Fatalf("%s, ask %d: %v: %v, or seen before", name, i, c, e)
			}
			seen[optimizer.Hash(c)] = true
			x, _ := c["p0"].AsFloat()
			if err := s.Tell(t.Context(), optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: x}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
