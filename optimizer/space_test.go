package optimizer

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs/expr"
)

func values(v ...int64) []expr.Value {
	out := make([]expr.Value, len(v))
	for i, x := range v {
		out[i] = expr.Int(x)
	}
	return out
}

// gemm is the space of CLBlast's Xgemm as Kernel Tuner's benchmark hub records it.
func gemm() Declaration {
	return Declaration{
		Params: []Param{
			{Name: "MWG", Values: values(16, 32, 64, 128)}, {Name: "NWG", Values: values(16, 32, 64, 128)},
			{Name: "MDIMC", Values: values(8, 16, 32)}, {Name: "NDIMC", Values: values(8, 16, 32)},
			{Name: "MDIMA", Values: values(8, 16, 32)}, {Name: "NDIMB", Values: values(8, 16, 32)},
			{Name: "VWM", Values: values(1, 2, 4, 8)}, {Name: "VWN", Values: values(1, 2, 4, 8)},
			{Name: "SA", Values: values(0, 1)}, {Name: "SB", Values: values(0, 1)},
		},
		Fixed: map[string]expr.Value{"KWG": expr.Int(32), "KWI": expr.Int(2)},
		Constraints: []string{"KWG % KWI == 0", "MWG % (MDIMC * VWM) == 0", "NWG % (NDIMC * VWN) == 0", "MWG % (MDIMA * VWM) == 0",
			"NWG % (NDIMB * VWN) == 0", "KWG % ((MDIMC * NDIMC)/MDIMA) == 0", "KWG % ((MDIMC * NDIMC)/NDIMB) == 0"},
	}
}

func TestGemmSpace(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	s, err := New(gemm())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("enumerated in %v", time.Since(begin))
	if s.Size() != 17956 || !s.Enumerated() {
		t.Fatalf("size %v, want 17956", s.Size())
	}
	p := s.NewPool()
	for id := 0; id < p.Len(); id += 97 {
		if got, ok := p.ID(p.Row(id)); !ok || got != id {
			t.Fatalf("row %d is found at %d, %v", id, got, ok)
		}
		if row, err := s.Row(s.Configuration(p.Row(id))); err != nil || s.compare(row, p.Row(id)) != 0 {
			t.Fatalf("configuration of row %d gives %v, %v", id, row, err)
		}
	}
}

// randomDeclaration draws a small space with conditions and constraints.
func randomDeclaration(rng *rand.Rand) Declaration {
	names := []string{"a", "b", "c", "d", "e"}
	var d Declaration
	for i, name := range names {
		p := Param{Name: name, Values: values(1, 2, 3, 4, 6, 8)[:1+rng.IntN(6)]}
		if rng.IntN(3) == 0 {
			if other := names[rng.IntN(len(names))]; other != name && (other < name || i == 0) && d.Params != nil {
				p.When = other + " % 2 == 0"
			}
		}
		d.Params = append(d.Params, p)
	}
	for range rng.IntN(4) {
		x, y := names[rng.IntN(5)], names[rng.IntN(5)]
		d.Constraints = append(d.Constraints, []string{x + " * " + y + " <= 12", x + " % " + y + " == 0", x + " <= " + y + " or e == 1", "8 / " + x + " >= " + y}[rng.IntN(4)])
	}
	return d
}

// TestEnumerationAgainstBruteForce holds count, enumeration, lookup and neighbours against the Cartesian product, with
// constraints evaluated by Starlark.
func TestEnumerationAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 80 {
		d := randomDeclaration(rng)
		want := bruteForce(t, d)
		s, err := New(d)
		if err != nil {
			if len(want) == 0 && strings.Contains(err.Error(), "no feasible") {
				continue
			}
			t.Fatalf("%+v: %v", d, err)
		}
		p := s.NewPool()
		if p.Len() != len(want) {
			t.Fatalf("%+v: %d configurations, want %d", d, p.Len(), len(want))
		}
		for id := range p.Len() {
			if !want[Hash(s.Configuration(p.Row(id)))] {
				t.Fatalf("%+v: %v is not feasible", d, s.Configuration(p.Row(id)))
			}
			for _, n := range p.Neighbours(id, nil) {
				if n == id || n < 0 || n >= p.Len() {
					t.Fatalf("%+v: neighbour %d of %d", d, n, id)
				}
			}
		}
	}
}

func bruteForce(t *testing.T, d Declaration) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	env := expr.Env{}
	truth := func(source string) bool {
		e, err := expr.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(env)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := v.AsBool()
		return b
	}
	var visit func(i int)
	visit = func(i int) {
		if i == len(d.Params) {
			for _, c := range d.Constraints {
				if !truth(c) {
					return
				}
			}
			for _, p := range d.Params { // inactive parameters stay at their default, the first value
				if p.When != "" && !truth(p.When) && env[p.Name] != p.Values[0] {
					return
				}
			}
			c := Configuration{}
			for name, v := range env {
				c[name] = v
			}
			out[Hash(c)] = true
			return
		}
		for _, v := range d.Params[i].Values {
			env[d.Params[i].Name] = v
			visit(i + 1)
		}
	}
	visit(0)
	return out
}

// TestSampledSpace draws from a space too large to hold and compares frequencies with what a count by hand gives.
func TestSampledSpace(t *testing.T) {
	t.Parallel()
	d := Declaration{Constraints: []string{"p0 <= p1", "p2 * p3 <= 64"}}
	for i := range 9 {
		v := make([]expr.Value, 16)
		for k := range v {
			v[k] = expr.Int(int64(k + 1))
		}
		d.Params = append(d.Params, Param{Name: "p" + string(rune('0'+i)), Values: v})
	}
	s, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for x := 1; x <= 16; x++ {
		for y := 1; y <= 16; y++ {
			if x*y <= 64 {
				pairs++
			}
		}
	}
	if want := 136 * float64(pairs) * math.Pow(16, 5); s.Size() != want || s.Enumerated() {
		t.Fatalf("size %v, enumerated %v; want %v, sampled", s.Size(), s.Enumerated(), want)
	}
	p, rng, equal := s.NewPool(), rand.New(rand.NewPCG(3, 4)), 0
	const draws = 4000
	for range draws {
		row := p.Row(p.Draw(rng))
		if row[0] > row[1] || (row[2]+1)*(row[3]+1) > 64 {
			t.Fatalf("drew %v, infeasible", row)
		}
		if row[0] == row[1] {
			equal++
		}
	}
	mean := draws * 16.0 / 136
	if math.Abs(float64(equal)-mean) > 5*math.Sqrt(mean) {
		t.Fatalf("p0 = p1 in %d of %d draws; a uniform draw gives %.0f", equal, draws, mean)
	}
	if n := p.Neighbours(0, nil); len(n) == 0 || len(n) > 9*15 {
		t.Fatalf("%d neighbours", len(n))
	}
}

func TestParamsExpand(t *testing.T) {
	t.Parallel()
	v := func(text string) *expr.Value {
		var x expr.Value
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		return &x
	}
	for _, c := range []struct {
		param Param
		want  string
	}{
		{Param{Name: "a", Min: v("32"), Max: v("128"), Step: v("32")}, "[32 64 96 128]"},
		{Param{Name: "a", Min: v("1"), Max: v("20"), Log: true}, "[1 2 4 8 16]"},
		{Param{Name: "a", Min: v("0.1"), Max: v("0.5"), Step: v("0.1")}, "[0.1 0.2 0.30000000000000004 0.4 0.5]"},
		{Param{Name: "a", Type: "bool"}, "[false true]"},
		{Param{Name: "a", Type: "float", Values: values(1, 2)}, "[1 2]"},
		{Param{Name: "a", Min: v("0.5"), Max: v("1.5")}, "a range of floats needs a `step`"},
		{Param{Name: "a", Min: v("0"), Max: v("8"), Log: true}, "min is positive"},
		{Param{Name: "a", Values: values(1, 1)}, "listed twice"},
		{Param{Name: "a"}, "has no values"},
		{Param{Name: "a", Min: v("1"), Max: v("10000000")}, "more than 65536 steps"},
		{Param{Name: "a", Type: "int", Min: v("1"), Max: v("1000000"), Step: v("1e-9")}, "more than 65536 steps"},
		{Param{Name: "a", Min: v("1"), Max: v("1000000"), Step: v("1.000000001"), Log: true}, "more than 65536 steps"},
		{Param{Name: "a", Min: v("1000000000000000000"), Max: v("1000000000000000005")}, "beyond ±2^53"},
		{Param{Name: "a", Min: v("-1e308"), Max: v("1e308"), Step: v("1.0")}, "finite numbers"},
		{Param{Name: "a", Type: "integer", Values: values(1)}, "write int, float, string or bool"},
	} {
		got, _, err := c.param.expand()
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = "[" + strings.Join(strs(got), " ") + "]"
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%+v: got %q, want %q", c.param, text, c.want)
		}
	}
}

func strs(v []expr.Value) []string {
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = x.String()
	}
	return out
}

func TestCasesAllHold(t *testing.T) {
	t.Parallel()
	s, err := New(Declaration{
		Params:      []Param{{Name: "vec", Values: values(1, 2, 4, 8)}},
		Constraints: []string{"cols % vec == 0"},
		Cases:       []map[string]expr.Value{{"cols": expr.Int(64)}, {"cols": expr.Int(12)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Size() != 3 {
		t.Fatalf("%v configurations, want vec = 1, 2, 4 (8 does not divide 12)", s.Size())
	}
	if _, err := s.Row(Configuration{"vec": expr.Int(8)}); !errors.Is(err, ErrInfeasible) {
		t.Fatalf("got %v, want ErrInfeasible", err)
	}
}

func TestBadDeclarations(t *testing.T) {
	t.Parallel()
	a := Param{Name: "a", Values: values(0, 1, 2)}
	for name, c := range map[string]struct {
		d    Declaration
		want string
	}{
		"unknown name":     {Declaration{Params: []Param{a}, Constraints: []string{"b < 2"}}, `"b" is no parameter`},
		"division by zero": {Declaration{Params: []Param{a}, Constraints: []string{"4 % a == 0"}}, "at a=0"},
		"nothing left":     {Declaration{Params: []Param{a}, Constraints: []string{"a > 5"}}, "no feasible configuration"},
		"circle":           {Declaration{Params: []Param{{Name: "a", When: "b > 0", Values: values(0, 1)}, {Name: "b", When: "a > 0", Values: values(0, 1)}}}, "circle"},
		"bad default":      {Declaration{Params: []Param{a}, Default: map[string]expr.Value{"a": expr.Int(7)}}, "none of the parameter's values"},
		"twice":            {Declaration{Params: []Param{a, a}}, "declared twice"},
		"empty":            {Declaration{}, "no parameters"},
	} {
		if _, err := New(c.d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestCountGivesUp counts a space whose constraint ties three ranges together; long ones would take days.
func TestCountGivesUp(t *testing.T) {
	t.Parallel()
	from, to := expr.Int(1), expr.Int(60)
	long := func(name string) Param { return Param{Name: name, Min: &from, Max: &to} }
	s, err := New(Declaration{Params: []Param{long("x"), long("y"), long("z")}, Constraints: []string{"x * y * z == 30"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCounter(s)
	if err != nil || c.bound != 60+60*60+60*60*60 {
		t.Fatalf("tried %d values, %v; want every one of 60, 60*60 and 60*60*60", c.bound, err)
	}
	c = &counter{space: s, frontier: c.frontier, memo: []map[string]float64{{}, {}, {}, {}}, bound: maxBound - c.bound + 1} // one short
	_, err = c.below(s.walker(), 0)
	if err == nil || !strings.Contains(err.Error(), "takes too long to count") {
		t.Errorf("got %v, want that it takes too long to count", err)
	}
}

func BenchmarkGemmEnumeration(b *testing.B) {
	for b.Loop() {
		if _, err := New(gemm()); err != nil {
			b.Fatal(err)
		}
	}
}
