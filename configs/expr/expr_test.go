package expr

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var env = Env{"rows": Int(100), "cols": Int(7), "W": Int(4), "f": Float(2.5), "s": String("row"), "b": Bool(true), "neg": Int(-7)}

func TestEval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		want   Value
	}{
		{"ceil_div(rows, W)", Int(25)}, {"ceil_div(rows + 1, W)", Int(26)}, {"ceil_div(neg, 2)", Int(-3)}, {"ceil_div(-8, 4)", Int(-2)}, {"ceil_div(0, 3)", Int(0)},
		{"rows / W", Float(25)}, {"cols / 2", Float(3.5)}, {"cols // 2", Int(3)}, {"neg // 2", Int(-4)}, {"neg % 4", Int(1)}, {"f // 1", Float(2)},
		{"W * 32 <= 1024", Bool(true)}, {"rows % W == 0 and cols > 5", Bool(true)}, {"not b or s == 'row'", Bool(true)}, {"s in ['row', 'col']", Bool(true)},
		{"next_pow2(cols)", Int(8)}, {"next_pow2(8)", Int(8)}, {"next_pow2(0)", Int(1)}, {"min(rows, cols, 3)", Int(3)}, {"max(f, 2)", Float(2.5)}, {"abs(neg)", Int(7)},
		{"5*rows*cols", Int(3500)}, {"1 << W", Int(16)}, {"rows if b else cols", Int(100)}, {"int(f)", Int(2)}, {"float(W)", Float(4)},
		{"sqrt(rows)", Float(10)}, {"log2(W)", Float(2)}, {"pow(W, 0.5)", Float(2)}, {"exp(0)", Float(1)}, {"log(1)", Float(0)},
		{"sum([x * W for x in range(3)])", Float(12)}, {"(\n  rows +\n  cols\n)", Int(107)}, {"rows # in a comment: )", Int(100)},
		{"len([x for x in [1, 2] if x > 1]) + W", Int(5)}, {"[W for W in [9]][0] + W", Int(13)}, {"(lambda cols: cols * 2)(3) + cols", Int(13)},
		{"-rows + +W", Int(-96)}, {"rows & 6 | 1", Int(5)}, {"mean([1, 2, 6])", Float(3)}, {"std([1, 3])", Float(1)}, {"geomean([1, 4])", Float(2)},
		{"str(W) + 'x'", String("4x")}, {"max(list(range(10)))", Int(9)}, {"b == True", Bool(true)}, {"9223372036854775807 + 0", Int(math.MaxInt64)},
	} {
		e, err := Parse(c.source)
		if err != nil {
			t.Errorf("%q: %v", c.source, err)
			continue
		}
		got, err := e.Eval(env)
		if err != nil || got != c.want {
			t.Errorf("%q = %v (%s), %v; want %v (%s)", c.source, got, got.Kind(), err, c.want, c.want.Kind())
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source, want string
		column       int
	}{
		{"rows / 0", "division by zero", 6}, {"rows // (W - 4)", "division by zero", 6}, {"rows % 0", "modulo by zero", 6},
		{"rows + wings", `name "wings" is not known here; known: W, b, cols`, 8}, {"(rows +\n wings)", `"wings" is not known`, 10},
		{"rows + s", "unknown binary op", 6}, {"1 + [2]", "unknown binary op", 3}, {"s < 3", "not implemented", 3},
		{"rows +", "got end of file", 7}, {"rows +* 2", "want primary expression", 7}, {"", "got end of file", 1}, {"rows; cols", "got ';'", 6}, {"x = 1", "got '='", 4}, {"def f(): pass", "got def", 1},
		{"ceil_div(rows, 0)", "divisor must be positive", 9}, {"ceil_div(rows)", "got 1 arguments", 9}, {"ceil_div(f, 2)", "got float", 9}, {"next_pow2(1 << 63)", "", 10},
		{"sqrt(-1)", "not finite", 5}, {"log(0)", "not finite", 4}, {"1e308 * 10", "want a finite number", 0}, {"1 << 70", "over 64 bits", 0}, {"[1]", "gives a list", 0}, {"None", "gives a NoneType", 0},
		{"'x' * 1000000000", "* takes numbers", 5}, {"s * 1000000000", "* takes numbers", 3}, {"len([0] * 1000000000)", "* takes numbers", 9}, {"[0, 1][1] * W * [2]", "* takes numbers", 15},
		{"len(list(range(1000000000)))", "over 100000", 15}, {"max(range(1000000000))", "over 100000", 10}, {"len([x for x in range(100000) for y in range(100000)])", "too many steps", 0},
		{"fail('stop')", "stop", 5}, {"(lambda: rows)(1)", "accepts no arguments", 10}, {"rows.shape", "has no .shape", 5}, {"mean([])", "empty", 5}, {"rows[0]", "unhandled index", 5},
		{"sum(['a'])", "want numbers", 4}, {"load('x')", "", 1},
	} {
		e, err := Parse(c.source)
		if err == nil {
			_, err = e.Eval(env)
		}
		var xe *Error
		if !errors.As(err, &xe) || !strings.Contains(xe.Reason, c.want) || c.column > 0 && xe.Column != c.column || xe.Column > len(c.source)+1 {
			t.Errorf("%q: %v (column %d); want %q at column %d", c.source, err, columnOf(xe), c.want, c.column)
		}
	}
}

func columnOf(e *Error) int {
	if e == nil {
		return -1
	}
	return e.Column
}

func TestNames(t *testing.T) {
	t.Parallel()
	e, err := Parse("rows + max(cols, rows) + len([x for x in [W]]) + (1 if x else 2)")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.Names(), " "); got != "W cols rows x" {
		t.Errorf("names %q: x is free outside the comprehension", got)
	}
	if e.Column("cols") != 12 || e.Column("none") != 0 {
		t.Errorf("columns %d and %d", e.Column("cols"), e.Column("none"))
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	e, err := Parse("-sum([a / b for a, b in zip(t, baseline)]) / len(t) - 0.05 * fails")
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.EvalLists(Env{"fails": Int(2)}, Lists{"t": {1, 2}, "baseline": {2, 2}})
	if f, _ := v.AsFloat(); err != nil || math.Abs(f+0.85) > 1e-15 {
		t.Errorf("got %v, %v; want -0.85", v, err)
	}
	if _, err := e.EvalLists(nil, Lists{"t": {1}, "baseline": {0}}); err == nil {
		t.Error("a missing name is accepted")
	}
	if e, err = Parse("len(t * 1000000000)"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EvalLists(nil, Lists{"t": {1}}); err == nil {
		t.Error("a list is repeated a milliard times")
	}
}

// Division agrees with its definition for all signs: a == (a // b) * b + a % b, and the remainder has the divisor's sign.
func TestFloorProperty(t *testing.T) {
	t.Parallel()
	quotient, err := Parse("(a // b) * b + a % b")
	if err != nil {
		t.Fatal(err)
	}
	rest, err := Parse("a % b")
	if err != nil {
		t.Fatal(err)
	}
	up, err := Parse("ceil_div(a, b)")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 5))
	for range 2000 {
		a, b := r.Int64N(2001)-1000, r.Int64N(41)-20
		if b == 0 {
			continue
		}
		in := Env{"a": Int(a), "b": Int(b)}
		v, err := quotient.Eval(in)
		if err != nil || v != Int(a) {
			t.Fatalf("%d, %d: %v, %v", a, b, v, err)
		}
		m, err := rest.Eval(in)
		if n, _ := m.AsInt(); err != nil || n != 0 && (n < 0) != (b < 0) {
			t.Fatalf("%d %% %d = %v, %v", a, b, m, err)
		}
		if b > 0 {
			c, err := up.Eval(in)
			if n, _ := c.AsInt(); err != nil || n != int64(math.Ceil(float64(a)/float64(b))) {
				t.Fatalf("ceil_div(%d, %d) = %v, %v", a, b, c, err)
			}
		}
	}
}

func TestCachedIsTheSame(t *testing.T) {
	t.Parallel()
	a, err := Cached("rows * 3")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Cached("rows * 3")
	if err != nil || a != b {
		t.Errorf("%p and %p, %v: want one", a, b, err)
	}
	if _, err := Cached("rows *"); err == nil {
		t.Error("a wrong expression is cached")
	}
}

func TestValueJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []Value{Int(0), Int(-5), Int(math.MaxInt64), Float(1), Float(0.1), Float(1e300), Float(-2.5e-7), String(""), String("a\"b\n"), Bool(true), Bool(false)} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%v: %v", v, err)
			continue
		}
		var back Value
		if err := json.Unmarshal(b, &back); err != nil || back != v {
			t.Errorf("%v became %s became %v (%s), %v", v, b, back, back.Kind(), err)
		}
	}
	for _, v := range []Value{{}, Float(math.NaN()), Float(math.Inf(1))} {
		if _, err := json.Marshal(v); err == nil {
			t.Errorf("%v is written", v)
		}
	}
	for _, text := range []string{"null", "[1]", "{}", "1e999", "99999999999999999999", "tru", `"a`} {
		var v Value
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s is read as %v", text, v)
		}
	}
}

func TestValueEqual(t *testing.T) {
	t.Parallel()
	if !Int(2).Equal(Float(2)) || Int(2).Equal(String("2")) || Int(1).Equal(Bool(true)) || Float(2) == Int(2) {
		t.Error("numbers are equal as numbers alone")
	}
	if n, ok := Float(3).AsInt(); !ok || n != 3 {
		t.Error("3.0 is an int")
	}
	if _, ok := Float(3.5).AsInt(); ok {
		t.Error("3.5 is no int")
	}
}

func FuzzExpr(f *testing.F) {
	for _, s := range []string{"ceil_div(rows, W)", "rows if b else cols", "[x for x in range(3)][0]", "(lambda x: x)(1)", "'a' * 3", "rows\n+\ncols", "{1: 2}[1]", "s[0:1]", "rows +"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := Parse(source)
		if err == nil {
			_, err = e.Eval(env)
		}
		var xe *Error
		if err != nil && (!errors.As(err, &xe) || xe.Column < 0 || xe.Column > len(source)+1) {
			t.Errorf("%q: %v", source, err)
		}
	})
}

// The hot path: a launch's grid, evaluated once a size and configuration.
func BenchmarkEval(b *testing.B) {
	e, err := Parse("ceil_div(rows, W) * 32 + cols % W")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Eval(env); err != nil {
			b.Fatal(err)
		}
	}
}

func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	start := time.Now()
	e, err := Parse("len([1 for a in range(90000) for b in range(90000) for c in range(90000)])")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(nil); err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
