package formula

import (
	"math"
	"math/bits"

	"go.starlark.net/syntax"

	"ridgepoint/configs/expr"
)

func (s *Scope) compileBinary(e *syntax.BinaryExpr) (node, bool) {
	switch e.Op {
	case syntax.AND, syntax.OR:
		return s.compileLogic(e)
	case syntax.IN, syntax.NOT_IN:
		return s.compileIn(e)
	}
	x, okx := s.compile(e.X)
	y, oky := s.compile(e.Y)
	if !okx || !oky {
		return node{}, false
	}
	switch e.Op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		return compileCompare(e.Op, x, y)
	case syntax.SLASH:
		return compileDivide(x, y)
	}
	if x.kind == expr.KindInt && y.kind == expr.KindInt {
		return compileInts(e.Op, x.ints, y.ints)
	}
	if x.number() != nil && y.number() != nil {
		return compileFloats(e.Op, x.number(), y.number())
	}
	return node{}, false
}

// compileLogic compiles `and` and `or` of two bools; of other types the value is one of the operands, which only a truth
// context can use (compileTruth).
func (s *Scope) compileLogic(e *syntax.BinaryExpr) (node, bool) {
	x, okx := s.compile(e.X)
	y, oky := s.compile(e.Y)
	if !okx || !oky || x.kind != expr.KindBool || y.kind != expr.KindBool {
		return node{}, false
	}
	if e.Op == syntax.AND {
		return node{kind: expr.KindBool, truths: func(f *Frame) bool { return x.truths(f) && !f.bad && y.truths(f) }}, true
	}
	return node{kind: expr.KindBool, truths: func(f *Frame) bool { return x.truths(f) || (!f.bad && y.truths(f)) }}, true
}

// compileIn compiles `x in [a, b]` as x == a or x == b.
func (s *Scope) compileIn(e *syntax.BinaryExpr) (node, bool) {
	var list []syntax.Expr
	y := e.Y
	if p, ok := y.(*syntax.ParenExpr); ok {
		y = p.X
	}
	switch l := y.(type) {
	case *syntax.ListExpr:
		list = l.List
	case *syntax.TupleExpr:
		list = l.List
	default:
		return node{}, false
	}
	x, ok := s.compile(e.X)
	if !ok {
		return node{}, false
	}
	tests := make([]func(*Frame) bool, 0, len(list))
	for _, item := range list {
		v, ok := s.compile(item)
		if !ok {
			return node{}, false
		}
		n, ok := compileCompare(syntax.EQL, x, v)
		if !ok {
			return node{}, false
		}
		tests = append(tests, n.truths)
	}
	want := e.Op == syntax.IN
	return node{kind: expr.KindBool, truths: func(f *Frame) bool {
		for _, test := range tests {
			if test(f) {
				return want
			}
		}
		return !want
	}}, true
}

func compileCompare(op syntax.Token, x, y node) (node, bool) {
	switch {
	case x.kind == expr.KindInt && y.kind == expr.KindInt:
		return compareNode(op, func(f *Frame) int { return cmp(x.ints(f), y.ints(f)) })
	case x.number() != nil && y.number() != nil:
		a, b := x.number(), y.number()
		return compareNode(op, func(f *Frame) int { return cmp(checked(f, a(f)), checked(f, b(f))) })
	case x.kind == expr.KindString && y.kind == expr.KindString:
		return compareNode(op, func(f *Frame) int { return cmp(x.texts(f), y.texts(f)) })
	case op != syntax.EQL && op != syntax.NEQ:
		return node{}, false
	case x.kind == expr.KindBool && y.kind == expr.KindBool:
		want := op == syntax.EQL
		return node{kind: expr.KindBool, truths: func(f *Frame) bool { return (x.truths(f) == y.truths(f)) == want }}, true
	default:
		return node{}, false
	}
}

func compareNode(op syntax.Token, order func(*Frame) int) (node, bool) {
	n := node{kind: expr.KindBool}
	switch op {
	case syntax.EQL:
		n.truths = func(f *Frame) bool { return order(f) == 0 }
	case syntax.NEQ:
		n.truths = func(f *Frame) bool { return order(f) != 0 }
	case syntax.LT:
		n.truths = func(f *Frame) bool { return order(f) < 0 }
	case syntax.LE:
		n.truths = func(f *Frame) bool { return order(f) <= 0 }
	case syntax.GT:
		n.truths = func(f *Frame) bool { return order(f) > 0 }
	case syntax.GE:
		n.truths = func(f *Frame) bool { return order(f) >= 0 }
	default:
		return node{}, false
	}
	return n, true
}

func cmp[T int64 | float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func compileDivide(x, y node) (node, bool) {
	a, b := x.number(), y.number()
	if a == nil || b == nil {
		return node{}, false
	}
	return node{kind: expr.KindFloat, floats: func(f *Frame) float64 {
		den := b(f)
		if den == 0 {
			f.bad = true
			return 0
		}
		return checked(f, a(f)/den)
	}}, true
}

func compileInts(op syntax.Token, x, y func(*Frame) int64) (node, bool) {
	n := node{kind: expr.KindInt}
	switch op {
	case syntax.PLUS:
		n.ints = func(f *Frame) int64 { return subInt(f, x(f), negInt(f, y(f))) }
	case syntax.MINUS:
		n.ints = func(f *Frame) int64 { return subInt(f, x(f), y(f)) }
	case syntax.STAR:
		n.ints = func(f *Frame) int64 { return mulInt(f, x(f), y(f)) }
	case syntax.SLASHSLASH:
		n.ints = func(f *Frame) int64 { q, _ := divInt(f, x(f), y(f)); return q }
	case syntax.PERCENT:
		n.ints = func(f *Frame) int64 { _, r := divInt(f, x(f), y(f)); return r }
	case syntax.AMP:
		n.ints = func(f *Frame) int64 { return x(f) & y(f) }
	case syntax.PIPE:
		n.ints = func(f *Frame) int64 { return x(f) | y(f) }
	case syntax.CIRCUMFLEX:
		n.ints = func(f *Frame) int64 { return x(f) ^ y(f) }
	default:
		return node{}, false
	}
	return n, true
}

func compileFloats(op syntax.Token, x, y func(*Frame) float64) (node, bool) {
	n := node{kind: expr.KindFloat}
	switch op {
	case syntax.PLUS:
		n.floats = func(f *Frame) float64 { return checked(f, x(f)+y(f)) }
	case syntax.MINUS:
		n.floats = func(f *Frame) float64 { return checked(f, x(f)-y(f)) }
	case syntax.STAR:
		n.floats = func(f *Frame) float64 { return checked(f, x(f)*y(f)) }
	case syntax.SLASHSLASH:
		n.floats = func(f *Frame) float64 {
			den := y(f)
			if den == 0 {
				f.bad = true
				return 0
			}
			return checked(f, math.Floor(x(f)/den))
		}
	case syntax.PERCENT:
		n.floats = func(f *Frame) float64 {
			den := y(f)
			if den == 0 {
				f.bad = true
				return 0
			}
			rem := math.Mod(x(f), den)
			if rem != 0 && (den < 0) != (rem < 0) {
				rem += den
			}
			return checked(f, rem)
		}
	default:
		return node{}, false
	}
	return n, true
}

func negInt(f *Frame, x int64) int64 {
	if x == math.MinInt64 {
		f.bad = true
	}
	return -x
}

func subInt(f *Frame, x, y int64) int64 {
	d := x - y
	if (x < 0) != (y < 0) && (d < 0) != (x < 0) {
		f.bad = true
	}
	return d
}

func mulInt(f *Frame, x, y int64) int64 {
	if hi, lo := bits.Mul64(magnitude(x), magnitude(y)); hi != 0 || lo > math.MaxInt64 {
		f.bad = true
	}
	return x * y
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// divInt is floored division, as `//` and `%` are.
func divInt(f *Frame, x, y int64) (q, r int64) {
	if y == 0 || (y == -1 && x == math.MinInt64) {
		f.bad = true
		return 0, 0
	}
	q, r = x/y, x%y
	if r != 0 && (r < 0) != (y < 0) {
		q--
		r += y
	}
	return q, r
}
