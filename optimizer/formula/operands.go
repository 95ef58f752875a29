package formula

import (
	"go.starlark.net/syntax"
)

// Operands returns the compiled quantities that a constraint compares: for every comparison within and, or and not, each
// side that uses at least two variables; a side of the form `a % b` counts as `a / b`, the number of times b fits. They are
// what a kernel's limits are about (threads, shared memory, work per thread), found without knowing the kernel.
func (s *Scope) Operands(source string) ([]*Formula, error) {
	tree, err := (&syntax.FileOptions{}).ParseExpr("", source, 0)
	if err != nil {
		return nil, err
	}
	var texts []syntax.Expr
	collectOperands(tree, &texts)
	var out []*Formula
	for _, e := range texts {
		start, end := e.Span()
		text := slice(source, start, end)
		if m, ok := unparen(e).(*syntax.BinaryExpr); ok && m.Op == syntax.PERCENT {
			xs, xe := m.X.Span()
			ys, ye := m.Y.Span()
			text = "(" + slice(source, xs, xe) + ") / (" + slice(source, ys, ye) + ")"
		}
		f, err := s.Compile(text)
		if err != nil {
			return nil, err
		}
		if len(f.slots) >= 2 {
			out = append(out, f)
		}
	}
	return out, nil
}

func collectOperands(e syntax.Expr, out *[]syntax.Expr) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		collectOperands(e.X, out)
	case *syntax.UnaryExpr:
		if e.Op == syntax.NOT {
			collectOperands(e.X, out)
		}
	case *syntax.BinaryExpr:
		switch e.Op {
		case syntax.AND, syntax.OR:
			collectOperands(e.X, out)
			collectOperands(e.Y, out)
		case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
			*out = append(*out, e.X, e.Y)
		}
	}
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// slice cuts a span out of a one-line source (columns are 1-based and count bytes of ASCII; other text counts runes).
func slice(source string, start, end syntax.Position) string {
	runes := []rune(source)
	from, to := int(start.Col)-1, int(end.Col)-1
	if start.Line != 1 || end.Line != 1 || from < 0 || to > len(runes) || from > to {
		return source
	}
	return string(runes[from:to])
}
