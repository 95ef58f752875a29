package expr

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// builtins are the functions that every expression may call besides Starlark's own (min, max, abs, len, int, float, ...).
var builtins = starlark.StringDict{
	"ceil_div":  starlark.NewBuiltin("ceil_div", ceilDiv),
	"next_pow2": starlark.NewBuiltin("next_pow2", nextPow2),
	"sqrt":      real1("sqrt", math.Sqrt),
	"log2":      real1("log2", math.Log2),
	"log":       real1("log", math.Log),
	"exp":       real1("exp", math.Exp),
	"pow":       starlark.NewBuiltin("pow", pow),
	"range":     starlark.NewBuiltin("range", boundedRange),
	guardName:   starlark.NewBuiltin("*", multiply),
	"sum":       overNumbers("sum", sum),
	"mean":      overNumbers("mean", mean),
	"std":       overNumbers("std", std),
	"geomean":   overNumbers("geomean", geomean),
}

// ceilDiv is ceil(a/b) over integers; b must be positive.
func ceilDiv(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var num, den int64
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &num, &den); err != nil {
		return nil, err
	}
	if den <= 0 {
		return nil, fmt.Errorf("ceil_div(%d, %d): the divisor must be positive", num, den)
	}
	q := num / den
	if num%den > 0 {
		q++
	}
	return starlark.MakeInt64(q), nil
}

// nextPow2 is the smallest power of two that is at least its argument; at least 1.
func nextPow2(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n int64
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &n); err != nil {
		return nil, err
	}
	if n > 1<<62 {
		return nil, fmt.Errorf("next_pow2(%d): larger than 2^62", n)
	}
	p := int64(1)
	for p < n {
		p <<= 1
	}
	return starlark.MakeInt64(p), nil
}

func pow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, y float64
	if err := unpackFloats(b.Name(), args, kwargs, &x, &y); err != nil {
		return nil, err
	}
	return finite(b.Name(), math.Pow(x, y))
}

func real1(name string, fn func(float64) float64) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x float64
		if err := unpackFloats(b.Name(), args, kwargs, &x); err != nil {
			return nil, err
		}
		return finite(b.Name(), fn(x))
	})
}

func unpackFloats(name string, args starlark.Tuple, kwargs []starlark.Tuple, out ...*float64) error {
	vars := make([]any, len(out))
	raw := make([]starlark.Value, len(out))
	for i := range raw {
		vars[i] = &raw[i]
	}
	if err := starlark.UnpackPositionalArgs(name, args, kwargs, len(out), vars...); err != nil {
		return err
	}
	for i, v := range raw {
		f, ok := starlark.AsFloat(v)
		if !ok {
			return fmt.Errorf("%s: got a %s, want a number", name, v.Type())
		}
		*out[i] = f
	}
	return nil
}

func finite(name string, f float64) (starlark.Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%s: the result is not finite", name)
	}
	return starlark.Float(f), nil
}

func toStarlark(v Value) starlark.Value {
	switch v.kind {
	case KindInt:
		return starlark.MakeInt64(v.num)
	case KindFloat:
		return starlark.Float(v.real)
	case KindString:
		return starlark.String(v.text)
	case KindBool:
		return starlark.Bool(v.num == 1)
	default:
		return starlark.None
	}
}

// fromStarlark returns a result as a Value, or what is wrong with it.
func fromStarlark(v starlark.Value) (out Value, reason string) {
	switch v := v.(type) {
	case starlark.Int:
		n, ok := v.Int64()
		if !ok {
			return Value{}, "gives an int of over 64 bits"
		}
		return Int(n), ""
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return Value{}, fmt.Sprintf("gives %v; want a finite number", f)
		}
		return Float(float64(v)), ""
	case starlark.String:
		return String(string(v)), ""
	case starlark.Bool:
		return Bool(bool(v)), ""
	default:
		return Value{}, fmt.Sprintf("gives a %s; want an int, a float, a string or a bool", v.Type())
	}
}
