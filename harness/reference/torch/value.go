package torch

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// String returns the shape, never the elements.
func (a *Array) String() string { return fmt.Sprintf("tensor%v", a.Shape) }

// Type returns "tensor".
func (a *Array) Type() string { return "tensor" }

// Freeze does nothing: arrays never change.
func (a *Array) Freeze() {}

// Truth is that of the only element.
func (a *Array) Truth() starlark.Bool { return len(a.Data) == 1 && a.Data[0] != 0 }

// Hash refuses: arrays are no dict keys.
func (a *Array) Hash() (uint32, error) { return 0, errors.New("a tensor cannot be a key") }

// Attr returns an attribute or a method.
func (a *Array) Attr(name string) (starlark.Value, error) {
	switch name {
	case "shape":
		out := make(starlark.Tuple, len(a.Shape))
		for i, d := range a.Shape {
			out[i] = starlark.MakeInt(d)
		}
		return out, nil
	case "T", "mT":
		return transposeLast(a, name == "T")
	case "ndim":
		return starlark.MakeInt(len(a.Shape)), nil
	}
	if b, ok := methods[name]; ok {
		return b.BindReceiver(a), nil
	}
	return nil, nil
}

// AttrNames returns the names of attributes and methods.
func (a *Array) AttrNames() []string { return methodNames }

// Binary applies an operator of the language element by element.
func (a *Array) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if op == syntax.PERCENT {
		if y == matmulMark && side == starlark.Left {
			return &halfProduct{a}, nil
		}
		if h, ok := y.(*halfProduct); ok && side == starlark.Right {
			return matmul(h.left, a)
		}
	}
	f, ok := operators[op]
	if !ok {
		return nil, nil
	}
	b, err := toArray(y)
	if err != nil {
		return nil, fmt.Errorf("tensor %s %s: %w", op, y.Type(), err)
	}
	if side == starlark.Right {
		a, b = b, a
	}
	return binary(a, b, f)
}

// Unary applies -, + or ~.
func (a *Array) Unary(op syntax.Token) (starlark.Value, error) {
	switch op {
	case syntax.MINUS:
		return unary(a, func(x float64) float64 { return -x }, a.kind)
	case syntax.PLUS:
		return a, nil
	case syntax.TILDE:
		return unary(a, func(x float64) float64 { return truth(x == 0) }, kindBool)
	default:
		return nil, nil
	}
}

// Get is a[key].
func (a *Array) Get(key starlark.Value) (starlark.Value, bool, error) {
	v, err := index(a, key)
	return v, true, err
}

// Len is the extent of the first dim.
func (a *Array) Len() int {
	if len(a.Shape) == 0 {
		return 0
	}
	return a.Shape[0]
}

// Index is a[i] for an i in range.
func (a *Array) Index(i int) starlark.Value {
	step := len(a.Data) / max(a.Shape[0], 1)
	return &Array{Shape: a.Shape[1:], Data: a.Data[i*step : (i+1)*step], kind: a.kind}
}

// Slice is a[start:end:step] for bounds in range. A scalar has no slices: it gives None, which no operator takes.
func (a *Array) Slice(start, end, step int) starlark.Value {
	if len(a.Shape) == 0 {
		return starlark.None
	}
	n := 0
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		n++
	}
	row := len(a.Data) / max(a.Len(), 1)
	shape := append([]int{n}, a.Shape[1:]...)
	if step == 1 {
		return &Array{Shape: shape, Data: a.Data[start*row : (start+n)*row], kind: a.kind}
	}
	out := &Array{Shape: shape, Data: make([]float64, n*row), kind: a.kind}
	for i := range n {
		from := start + i*step
		copy(out.Data[i*row:(i+1)*row], a.Data[from*row:(from+1)*row])
	}
	return out
}

// Iterate yields a[0], a[1], ...
func (a *Array) Iterate() starlark.Iterator { return &iterator{a: a} }

type iterator struct {
	a *Array
	i int
}

func (it *iterator) Next(p *starlark.Value) bool {
	if it.i >= it.a.Len() {
		return false
	}
	*p = it.a.Index(it.i)
	it.i++
	return true
}

func (it *iterator) Done() {}

// mark is a value of which there is one alone.
type mark string

func (m mark) String() string        { return string(m) }
func (m mark) Type() string          { return string(m) }
func (m mark) Freeze()               {}
func (m mark) Truth() starlark.Bool  { return true }
func (m mark) Hash() (uint32, error) { return 0, errors.New("no key") }

const (
	matmulMark   = mark("@")
	ellipsisMark = mark("...")
)

// halfProduct is `a @` while its right side is missing.
type halfProduct struct{ left *Array }

func (h *halfProduct) String() string        { return "@" }
func (h *halfProduct) Type() string          { return "@" }
func (h *halfProduct) Freeze()               {}
func (h *halfProduct) Truth() starlark.Bool  { return true }
func (h *halfProduct) Hash() (uint32, error) { return 0, errors.New("no key") }

// pair is what max(dim) and sort return: a tuple whose parts also have names.
type pair struct{ values, indices *Array }

func (p *pair) String() string        { return "(values, indices)" }
func (p *pair) Type() string          { return "pair" }
func (p *pair) Freeze()               {}
func (p *pair) Truth() starlark.Bool  { return true }
func (p *pair) Hash() (uint32, error) { return 0, errors.New("no key") }
func (p *pair) Len() int              { return 2 }
func (p *pair) AttrNames() []string   { return []string{"indices", "values"} }

func (p *pair) Index(i int) starlark.Value {
	if i == 0 {
		return p.values
	}
	return p.indices
}

func (p *pair) Iterate() starlark.Iterator { return starlark.Tuple{p.values, p.indices}.Iterate() }

func (p *pair) Attr(name string) (starlark.Value, error) {
	switch name {
	case "values":
		return p.values, nil
	case "indices":
		return p.indices, nil
	default:
		return nil, nil
	}
}

// toArray turns a number, a bool, a tensor or nested lists of numbers into an array.
func toArray(v starlark.Value) (*Array, error) { return toArrayAt(v, 0) }

// maxNesting bounds how deep lists of lists may be, so that a list that contains itself ends in an error.
const maxNesting = 16

func toArrayAt(v starlark.Value, depth int) (*Array, error) {
	switch v := v.(type) {
	case *Array:
		return v, nil
	case starlark.Float:
		return scalar(float64(v), kindFloat), nil
	case starlark.Int:
		f, ok := starlark.AsFloat(v)
		if !ok {
			return nil, fmt.Errorf("%s is too large", v)
		}
		return scalar(f, kindInt), nil
	case starlark.Bool:
		return scalar(truth(bool(v)), kindBool), nil
	case *starlark.List, starlark.Tuple:
		return nested(v.(starlark.Indexable), depth+1)
	default:
		return nil, fmt.Errorf("want a tensor or a number, got a %s", v.Type())
	}
}

func nested(list starlark.Indexable, depth int) (*Array, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("lists are nested more than %d deep", maxNesting)
	}
	var parts []*Array
	for i := range list.Len() {
		a, err := toArrayAt(list.Index(i), depth)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 && !slices.Equal(a.Shape, parts[0].Shape) {
			return nil, errors.New("the rows of a list differ in length")
		}
		parts = append(parts, a)
	}
	if len(parts) == 0 {
		return &Array{Shape: []int{0}}, nil
	}
	return stack(parts, 0)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
