package formula

import (
	"sort"

	"go.starlark.net/syntax"

	"ridgepoint/configs/expr"
)

// node is a compiled subexpression: its static kind and the closure of that kind. Bools use truths.
type node struct {
	kind   expr.Kind
	ints   func(*Frame) int64
	floats func(*Frame) float64
	texts  func(*Frame) string
	truths func(*Frame) bool
}

// number returns the node as float64, or nil when it is no number.
func (n node) number() func(*Frame) float64 {
	switch n.kind {
	case expr.KindInt:
		ints := n.ints
		return func(f *Frame) float64 { return floatOf(f, ints(f)) }
	case expr.KindFloat:
		return n.floats
	default:
		return nil
	}
}

// truth returns the node's truth value as Starlark sees it.
func (n node) truth() func(*Frame) bool {
	switch n.kind {
	case expr.KindBool:
		return n.truths
	case expr.KindInt:
		ints := n.ints
		return func(f *Frame) bool { return ints(f) != 0 }
	case expr.KindFloat:
		floats := n.floats
		return func(f *Frame) bool { return floats(f) != 0 }
	case expr.KindString:
		texts := n.texts
		return func(f *Frame) bool { return texts(f) != "" }
	default:
		return nil
	}
}

// compile returns the closure of a value; ok is false where only Starlark can decide.
func (s *Scope) compile(e syntax.Expr) (n node, ok bool) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return s.compile(e.X)
	case *syntax.Ident:
		return s.compileName(e.Name)
	case *syntax.Literal:
		return compileLiteral(e)
	case *syntax.UnaryExpr:
		return s.compileUnary(e)
	case *syntax.BinaryExpr:
		return s.compileBinary(e)
	case *syntax.CondExpr:
		return s.compileCond(e)
	case *syntax.CallExpr:
		return s.compileCall(e)
	default:
		return node{}, false
	}
}

func (s *Scope) compileName(name string) (node, bool) {
	if v, ok := s.constants[name]; ok {
		return constant(v), true
	}
	slot, ok := s.slots[name]
	if !ok {
		switch name {
		case "True", "False":
			return constant(expr.Bool(name == "True")), true
		default:
			return node{}, false
		}
	}
	n := node{kind: s.variables[slot].Kind}
	switch n.kind {
	case expr.KindInt:
		n.ints = func(f *Frame) int64 { return f.ints[slot] }
	case expr.KindFloat:
		n.floats = func(f *Frame) float64 { return f.floats[slot] }
	case expr.KindString:
		n.texts = func(f *Frame) string { return f.texts[slot] }
	case expr.KindBool:
		n.truths = func(f *Frame) bool { return f.ints[slot] != 0 }
	default:
		return node{}, false
	}
	return n, true
}

func constant(v expr.Value) node {
	n := node{kind: v.Kind()}
	switch n.kind {
	case expr.KindInt:
		x, _ := v.AsInt()
		n.ints = func(*Frame) int64 { return x }
	case expr.KindFloat:
		x, _ := v.AsFloat()
		n.floats = func(*Frame) float64 { return x }
	case expr.KindString:
		x, _ := v.AsString()
		n.texts = func(*Frame) string { return x }
	case expr.KindBool:
		x, _ := v.AsBool()
		n.truths = func(*Frame) bool { return x }
	default:
		panic("formula: an invalid constant")
	}
	return n
}

func compileLiteral(e *syntax.Literal) (node, bool) {
	switch x := e.Value.(type) {
	case int64:
		return constant(expr.Int(x)), true
	case float64:
		return constant(expr.Float(x)), true
	case string:
		return constant(expr.String(x)), true
	default:
		return node{}, false
	}
}

// compileTruth compiles e where only its truth matters, so that `a % 2 and b` needs no common type.
func (s *Scope) compileTruth(e syntax.Expr) (func(*Frame) bool, bool) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return s.compileTruth(e.X)
	case *syntax.UnaryExpr:
		if e.Op == syntax.NOT {
			x, ok := s.compileTruth(e.X)
			if !ok {
				return nil, false
			}
			return func(f *Frame) bool { return !x(f) }, true
		}
	case *syntax.BinaryExpr:
		if e.Op != syntax.AND && e.Op != syntax.OR {
			break
		}
		x, okx := s.compileTruth(e.X)
		y, oky := s.compileTruth(e.Y)
		if !okx || !oky {
			return nil, false
		}
		if e.Op == syntax.AND {
			return func(f *Frame) bool { return x(f) && !f.bad && y(f) }, true
		}
		return func(f *Frame) bool { return x(f) || (!f.bad && y(f)) }, true
	}
	n, ok := s.compile(e)
	if !ok {
		return nil, false
	}
	return n.truth(), true
}

func (s *Scope) compileUnary(e *syntax.UnaryExpr) (node, bool) {
	if e.Op == syntax.NOT {
		x, ok := s.compileTruth(e.X)
		if !ok {
			return node{}, false
		}
		return node{kind: expr.KindBool, truths: func(f *Frame) bool { return !x(f) }}, true
	}
	n, ok := s.compile(e.X)
	if !ok || e.X == nil {
		return node{}, false
	}
	switch {
	case e.Op == syntax.PLUS && n.number() != nil:
		return n, true
	case e.Op == syntax.MINUS && n.kind == expr.KindInt:
		x := n.ints
		return node{kind: expr.KindInt, ints: func(f *Frame) int64 { return subInt(f, 0, x(f)) }}, true
	case e.Op == syntax.MINUS && n.kind == expr.KindFloat:
		x := n.floats
		return node{kind: expr.KindFloat, floats: func(f *Frame) float64 { return -x(f) }}, true
	default:
		return node{}, false
	}
}

// compileCond compiles `a if c else b` when both branches have one kind.
func (s *Scope) compileCond(e *syntax.CondExpr) (node, bool) {
	c, okc := s.compileTruth(e.Cond)
	x, okx := s.compile(e.True)
	y, oky := s.compile(e.False)
	if !okc || !okx || !oky || x.kind != y.kind {
		return node{}, false
	}
	n := node{kind: x.kind}
	switch n.kind {
	case expr.KindInt:
		n.ints = func(f *Frame) int64 {
			if c(f) {
				return x.ints(f)
			}
			return y.ints(f)
		}
	case expr.KindFloat:
		n.floats = func(f *Frame) float64 {
			if c(f) {
				return x.floats(f)
			}
			return y.floats(f)
		}
	case expr.KindBool:
		n.truths = func(f *Frame) bool {
			if c(f) {
				return x.truths(f)
			}
			return y.truths(f)
		}
	default:
		return node{}, false
	}
	return n, true
}

func sortInts(x []int)       { sort.Ints(x) }
func sortStrings(x []string) { sort.Strings(x) }
