package expr

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

// oddOperands are values of every kind at their edges, as a hostile file would write them.
var oddOperands = []string{
	"0", "1", "-1", "63", "9223372036854775807", "-9223372036854775808", "9" + "9999999999999999999999999999999999999999", "0.0", "-0.0", "1e308", "5e-324",
	`float("inf")`, `float("nan")`, "True", "None", `""`, `"abc"`, `"%d %s %r"`, `"é\x00"`, "[]", "[1]", "[[], 2]", "()", "(1, 2)", "{}", `{1: "x"}`, "range(3)", "lambda x: x", "min", "rows", "s",
}

var oddOperators = []string{"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", "in", "not in", "and", "or"}

// evalOdd wants a value or a placed *Error, soon.
func evalOdd(t *testing.T, source string) {
	t.Helper()
	begin := time.Now()
	e, err := Parse(source)
	if err == nil {
		_, err = e.Eval(env)
	}
	var xe *Error
	if err != nil && (!errors.As(err, &xe) || xe.Reason == "" || xe.Column < 0 || xe.Column > len(source)+1) {
		t.Errorf("%q: %v", source, err)
	}
	if took := time.Since(begin); took > 5*time.Second { // a machine under load is a hundred times slower than this needs
		t.Errorf("%q took %v", source, took)
	}
}

// Every operator, function and method meets every pair of odd operands without a panic, and without taking the machine's memory.
func TestOddOperands(t *testing.T) {
	t.Parallel()
	for _, a := range oddOperands {
		for _, u := range []string{"-", "+", "~", "not "} {
			evalOdd(t, u+"("+a+")")
		}
		for _, b := range oddOperands {
			for _, op := range oddOperators {
				evalOdd(t, fmt.Sprintf("(%s) %s (%s)", a, op, b))
			}
			evalOdd(t, fmt.Sprintf("(%s)[%s]", a, b))
			evalOdd(t, fmt.Sprintf("(%s)[%s:%s:%s]", a, b, a, b))
		}
	}
}

func TestOddArguments(t *testing.T) {
	t.Parallel()
	var names []string
	for name, v := range starlark.Universe {
		if _, ok := v.(starlark.Callable); ok {
			names = append(names, name)
		}
	}
	for name := range builtins {
		if name != guardName {
			names = append(names, name)
		}
	}
	if len(names) < 30 {
		t.Fatalf("only %d functions: %v", len(names), names)
	}
	for _, f := range names {
		evalOdd(t, f+"()")
		for _, a := range oddOperands {
			evalOdd(t, fmt.Sprintf("%s(%s)", f, a))
			evalOdd(t, fmt.Sprintf("%s(*%s)", f, a))
			evalOdd(t, fmt.Sprintf("%s(%s, %s, %s)", f, a, a, a))
			for _, b := range oddOperands {
				evalOdd(t, fmt.Sprintf("%s(%s, %s)", f, a, b))
			}
		}
	}
}

func TestOddMethods(t *testing.T) {
	t.Parallel()
	for _, v := range []starlark.HasAttrs{starlark.String(""), starlark.NewList(nil), starlark.NewDict(0), starlark.Bytes("")} {
		for _, m := range v.AttrNames() {
			for _, self := range []string{`"abc"`, `"%s{}{0}"`, "[3, 1]", "{1: 2}", `b"ab"`} {
				evalOdd(t, fmt.Sprintf("(%s).%s()", self, m))
				for _, a := range oddOperands {
					evalOdd(t, fmt.Sprintf("(%s).%s(%s)", self, m, a))
					evalOdd(t, fmt.Sprintf("(%s).%s(%s, %s)", self, m, a, a))
				}
			}
		}
	}
}

// What grows by doubling ends at a limit, not with the machine's memory.
func TestGrowthIsBounded(t *testing.T) { // alone, since it counts what the process allocates
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, source := range []string{
		`"a" * 9223372036854775807`, `[0] * 4611686018427387904`, `(1 << 62) * "ab"`, `len("a" * 1000000000)`, `[x for x in range(1000000000)]`, `1 << 100000`, `1 << 9223372036854775807`,
		`len([x for a in range(10000) for x in range(10000)])`, `"a".join(["b" * 100000 for x in range(100000)])`, `"aaaaaaaaaa".replace("a", "b" * 100000000)`, `[s for s in [s + s for s in [s * 100000]]]`,
		`sum([x for x in range(100000000)])`, `sorted(list(range(100000000)))`, `str([[0] * 100000 for x in range(100000)])`, `max(*range(100000000))`, `dict([(x, "a" * 100000) for x in range(100000)])`,
	} {
		evalOdd(t, source)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<30 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
}
