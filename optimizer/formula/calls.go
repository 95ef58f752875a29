package formula

import (
	"math"

	"go.starlark.net/syntax"

	"ridgepoint/configs/expr"
)

// compileCall compiles the functions that constraints use; others are Starlark's.
func (s *Scope) compileCall(e *syntax.CallExpr) (node, bool) {
	name, ok := e.Fn.(*syntax.Ident)
	if !ok || s.shadowed(name.Name) {
		return node{}, false
	}
	args := make([]node, len(e.Args))
	for i, a := range e.Args {
		if args[i], ok = s.compile(a); !ok {
			return node{}, false
		}
	}
	switch name.Name {
	case "min", "max":
		return compileExtreme(args, name.Name == "max")
	case "abs":
		return compileAbs(args)
	case "ceil_div":
		return compileCeilDiv(args)
	case "next_pow2":
		return compileNextPow2(args)
	default:
		return node{}, false
	}
}

func (s *Scope) shadowed(name string) bool {
	_, variable := s.slots[name]
	_, fixed := s.constants[name]
	return variable || fixed
}

// compileExtreme compiles min and max of two or more ints (or floats): of mixed kinds the result keeps its operand's kind,
// which no static type has.
func compileExtreme(args []node, largest bool) (node, bool) {
	if len(args) < 2 {
		return node{}, false
	}
	for _, a := range args {
		if a.kind != args[0].kind {
			return node{}, false
		}
	}
	n := node{kind: args[0].kind}
	switch n.kind {
	case expr.KindInt:
		n.ints = func(f *Frame) int64 {
			best := args[0].ints(f)
			for _, a := range args[1:] {
				if v := a.ints(f); (v > best) == largest && v != best {
					best = v
				}
			}
			return best
		}
	case expr.KindFloat:
		n.floats = func(f *Frame) float64 {
			best := checked(f, args[0].floats(f))
			for _, a := range args[1:] {
				if v := checked(f, a.floats(f)); (v > best) == largest && v != best {
					best = v
				}
			}
			return best
		}
	default:
		return node{}, false
	}
	return n, true
}

func compileAbs(args []node) (node, bool) {
	if len(args) != 1 {
		return node{}, false
	}
	x := args[0]
	switch x.kind {
	case expr.KindInt:
		return node{kind: expr.KindInt, ints: func(f *Frame) int64 {
			if v := x.ints(f); v >= 0 {
				return v
			} else {
				return negInt(f, v)
			}
		}}, true
	case expr.KindFloat:
		return node{kind: expr.KindFloat, floats: func(f *Frame) float64 { return math.Abs(x.floats(f)) }}, true
	default:
		return node{}, false
	}
}

func compileCeilDiv(args []node) (node, bool) {
	if len(args) != 2 || args[0].kind != expr.KindInt || args[1].kind != expr.KindInt {
		return node{}, false
	}
	x, y := args[0].ints, args[1].ints
	return node{kind: expr.KindInt, ints: func(f *Frame) int64 {
		den := y(f)
		if den <= 0 {
			f.bad = true
			return 0
		}
		q, r := divInt(f, x(f), den)
		if r > 0 {
			q++
		}
		return q
	}}, true
}

func compileNextPow2(args []node) (node, bool) {
	if len(args) != 1 || args[0].kind != expr.KindInt {
		return node{}, false
	}
	x := args[0].ints
	return node{kind: expr.KindInt, ints: func(f *Frame) int64 {
		n := x(f)
		if n > 1<<62 {
			f.bad = true
			return 0
		}
		p := int64(1)
		for p < n {
			p <<= 1
		}
		return p
	}}, true
}
