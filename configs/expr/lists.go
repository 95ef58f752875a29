package expr

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// Lists gives names lists of numbers, as rewards use them.
type Lists map[string][]float64

// EvalLists is Eval with some names bound to lists instead of scalars.
func (e *Expr) EvalLists(env Env, lists Lists) (Value, error) {
	args := make(starlark.Tuple, len(e.names))
	for i, name := range e.names {
		if list, ok := lists[name]; ok {
			args[i] = listValue(list)
			continue
		}
		v, ok := env[name]
		if !ok {
			return Value{}, e.unknown(name, env)
		}
		args[i] = toStarlark(v)
	}
	return e.call(args, true)
}

func listValue(list []float64) starlark.Value {
	elems := make([]starlark.Value, len(list))
	for i, f := range list {
		elems[i] = starlark.Float(f)
	}
	out := starlark.NewList(elems)
	out.Freeze()
	return out
}

// overNumbers makes a builtin of a function over a list of numbers.
func overNumbers(name string, fn func([]float64) float64) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var list starlark.Iterable
		if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &list); err != nil {
			return nil, err
		}
		var numbers []float64
		iter := list.Iterate()
		defer iter.Done()
		var v starlark.Value
		for iter.Next(&v) {
			f, ok := starlark.AsFloat(v)
			if !ok {
				return nil, fmt.Errorf("%s: got a %s in the list, want numbers", name, v.Type())
			}
			numbers = append(numbers, f)
		}
		if len(numbers) == 0 {
			return nil, fmt.Errorf("%s: the list is empty", name)
		}
		return finite(name, fn(numbers))
	})
}

func sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }

// std is the population standard deviation.
func std(x []float64) float64 {
	m := mean(x)
	var s float64
	for _, v := range x {
		s += (v - m) * (v - m)
	}
	return math.Sqrt(s / float64(len(x)))
}

// geomean is the geometric mean; it is not finite, and so an error, unless all numbers are positive.
func geomean(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += math.Log(v)
	}
	return math.Exp(s / float64(len(x)))
}
