package formula

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ridgepoint/configs/expr"
)

var testVariables = []Variable{
	{"a", expr.KindInt}, {"b", expr.KindInt}, {"c", expr.KindInt}, {"x", expr.KindFloat}, {"y", expr.KindFloat},
	{"p", expr.KindBool}, {"q", expr.KindBool}, {"s", expr.KindString},
}

var testValues = map[expr.Kind][]expr.Value{
	expr.KindInt: {expr.Int(0), expr.Int(1), expr.Int(-1), expr.Int(2), expr.Int(7), expr.Int(32), expr.Int(-48), expr.Int(1024),
		expr.Int(1 << 40), expr.Int(-1 << 62), expr.Int(1<<62 + 1)},
	expr.KindFloat:  {expr.Float(0), expr.Float(0.5), expr.Float(-1.5), expr.Float(3), expr.Float(1e300), expr.Float(32)},
	expr.KindBool:   {expr.Bool(true), expr.Bool(false)},
	expr.KindString: {expr.String(""), expr.String("a"), expr.String("row")},
}

// TestEqualToStarlark draws random expressions and values and holds the closures equal to Starlark, errors included.
func TestEqualToStarlark(t *testing.T) {
	t.Parallel()
	scope, err := NewScope(testVariables, map[string]expr.Value{"K": expr.Int(12), "H": expr.Float(0.25)})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(6, 28))
	compiled, failed := 0, 0
	for range 1500 {
		source := randomExpr(rng, 4)
		f, err := scope.Compile(source)
		if err != nil {
			t.Fatalf("compile %q: %v", source, err)
		}
		if f.Compiled() {
			compiled++
		}
		exact, err := expr.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		frame := scope.NewFrame()
		for range 8 {
			env := expr.Env{"K": expr.Int(12), "H": expr.Float(0.25)}
			for i, v := range testVariables {
				values := testValues[v.Kind]
				value := values[rng.IntN(len(values))]
				frame.Set(i, value)
				env[v.Name] = value
			}
			want, wantErr := exact.Eval(env)
			got, gotErr := f.Truth(frame)
			if wantErr != nil {
				failed++
			}
			switch {
			case (wantErr == nil) != (gotErr == nil):
				t.Fatalf("%q at %v: got error %v, want %v", source, env, gotErr, wantErr)
			case wantErr == nil && got != truthOf(want):
				t.Fatalf("%q at %v: got %v, want %v", source, env, got, want)
			}
			number, numberErr := f.Number(frame)
			if w, ok := want.AsFloat(); ok && wantErr == nil && (numberErr != nil || number != w) {
				t.Fatalf("%q at %v: number %v, %v; want %v", source, env, number, numberErr, w)
			}
		}
	}
	if compiled < 250 || failed < 250 {
		t.Fatalf("the draw is too tame: %d of 1500 compiled, %d evaluations failed", compiled, failed)
	}
}

func randomExpr(rng *rand.Rand, depth int) string {
	if depth == 0 || rng.IntN(5) == 0 {
		return []string{"a", "b", "c", "x", "y", "p", "q", "s", "K", "H", "0", "3", "32", "1.5", "\"row\"", "True"}[rng.IntN(16)]
	}
	l, r := randomExpr(rng, depth-1), randomExpr(rng, depth-1)
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		return "(" + l + " " + []string{"+", "-", "*", "/", "//", "%", "&", "|", "^"}[rng.IntN(9)] + " " + r + ")"
	case 4, 5, 6:
		return "(" + l + " " + []string{"==", "!=", "<", "<=", ">", ">="}[rng.IntN(6)] + " " + r + ")"
	case 7:
		return "(" + l + " " + []string{"and", "or"}[rng.IntN(2)] + " " + r + ")"
	case 8:
		return "(not " + l + ")"
	case 9:
		return fmt.Sprintf("(%s if %s else %s)", l, r, randomExpr(rng, depth-1))
	case 10:
		return fmt.Sprintf("%s(%s, %s)", []string{"min", "max", "ceil_div"}[rng.IntN(3)], l, r)
	default:
		return fmt.Sprintf("(-%s in [%s, %s])", l, r, "a")
	}
}

func TestDivisionIsExact(t *testing.T) {
	t.Parallel()
	scope, err := NewScope([]Variable{{"a", expr.KindInt}, {"b", expr.KindInt}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := scope.Compile("32 % (a / b) == 0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b int64
		want bool
	}{{64, 32, true}, {16, 32, true}, {3, 2, false}, {24, 1, false}} {
		frame := scope.NewFrame()
		frame.Set(0, expr.Int(c.a))
		frame.Set(1, expr.Int(c.b))
		if got, err := f.Truth(frame); err != nil || got != c.want {
			t.Errorf("32 %% (%d / %d) == 0: got %v, %v; want %v", c.a, c.b, got, err, c.want)
		}
	}
}

func TestCompileNamesTheUnknown(t *testing.T) {
	t.Parallel()
	scope, err := NewScope([]Variable{{"WARPS", expr.KindInt}}, map[string]expr.Value{"rows": expr.Int(4)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = scope.Compile("WRAPS * 32 <= rows")
	if err == nil || !strings.Contains(err.Error(), `"WRAPS"`) || !strings.Contains(err.Error(), "WARPS, rows") {
		t.Fatalf("got %v; want the unknown name and the known ones", err)
	}
}

func TestOperands(t *testing.T) {
	t.Parallel()
	scope, err := NewScope([]Variable{{"a", expr.KindInt}, {"b", expr.KindInt}, {"c", expr.KindInt}}, map[string]expr.Value{"K": expr.Int(32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		source string
		want   []string
	}{
		{"a*b <= 1024", []string{"a*b"}},
		{"a % (b * c) == 0", []string{"(a) / ((b * c))"}},
		{"a == 0 or (32 <= a*b and not (b + c > K))", []string{"a*b", "b + c"}},
		{"a <= 4", nil},
	} {
		got, err := scope.Operands(c.source)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, f := range got {
			texts = append(texts, f.Source())
		}
		if fmt.Sprint(texts) != fmt.Sprint(c.want) {
			t.Errorf("%q: got %q, want %q", c.source, texts, c.want)
		}
	}
}

func BenchmarkTruth(b *testing.B) {
	scope, _ := NewScope([]Variable{{"a", expr.KindInt}, {"b", expr.KindInt}, {"c", expr.KindInt}}, map[string]expr.Value{"K": expr.Int(32)})
	f, _ := scope.Compile("K % ((a * b)/c) == 0")
	frame := scope.NewFrame()
	for i := range 3 {
		frame.Set(i, expr.Int(8))
	}
	for b.Loop() {
		if ok, _ := f.Truth(frame); !ok {
			b.Fatal("8*8/8 divides 32")
		}
	}
}
