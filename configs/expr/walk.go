package expr

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// walker finds the free names of an expression: those that are neither built in nor bound around them by a comprehension or
// a lambda.
type walker struct {
	bound      map[string]int // how many scopes around here bind the name
	free       []*syntax.Ident
	multiplies bool // has a *
	collects   bool // has a list, tuple, dict, string or comprehension
}

func (w *walker) bind(n syntax.Node, by int) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			w.bound[id.Name] += by
		}
		return true
	})
}

func (w *walker) visit(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Ident:
		if w.bound[e.Name] == 0 && !builtins.Has(e.Name) && !starlark.Universe.Has(e.Name) {
			w.free = append(w.free, e)
		}
	case *syntax.Literal:
		w.collects = w.collects || e.Token == syntax.STRING || e.Token == syntax.BYTES
	case *syntax.BinaryExpr:
		w.multiplies = w.multiplies || e.Op == syntax.STAR
		w.visit(e.X)
		w.visit(e.Y)
	case *syntax.CallExpr:
		w.collects = true // list(...), range(...), str(...) and methods give collections
		w.call(e)
	case *syntax.Comprehension:
		w.collects = true
		w.comprehension(e)
	case *syntax.LambdaExpr:
		w.collects = true
		for _, p := range e.Params {
			w.bind(p, 1)
		}
		w.visit(e.Body)
		for _, p := range e.Params {
			w.bind(p, -1)
		}
	case *syntax.ListExpr:
		w.collects = true
		w.all(e.List)
	case *syntax.TupleExpr:
		w.collects = true
		w.all(e.List)
	case *syntax.DictExpr:
		w.collects = true
		w.all(e.List)
	case *syntax.DictEntry:
		w.visit(e.Key)
		w.visit(e.Value)
	case *syntax.CondExpr:
		w.visit(e.Cond)
		w.visit(e.True)
		w.visit(e.False)
	case *syntax.DotExpr:
		w.visit(e.X)
	case *syntax.IndexExpr:
		w.visit(e.X)
		w.visit(e.Y)
	case *syntax.ParenExpr:
		w.visit(e.X)
	case *syntax.SliceExpr:
		w.all([]syntax.Expr{e.X, e.Lo, e.Hi, e.Step})
	case *syntax.UnaryExpr:
		w.visit(e.X)
	}
}

func (w *walker) all(list []syntax.Expr) {
	for _, e := range list {
		if e != nil {
			w.visit(e)
		}
	}
}

// numeric are the functions whose result is a number whatever they are given, or the largest of numbers.
var numeric = map[string]bool{"ceil_div": true, "next_pow2": true, "sqrt": true, "log2": true, "log": true, "exp": true, "pow": true, "abs": true, "int": true, "float": true, "len": true,
	"sum": true, "mean": true, "std": true, "geomean": true}

// call visits the arguments; the name of a named one is no name of the expression.
func (w *walker) call(e *syntax.CallExpr) {
	collects := w.collects
	w.visit(e.Fn)
	for _, a := range e.Args {
		if named, ok := a.(*syntax.BinaryExpr); ok && named.Op == syntax.EQ {
			a = named.Y
		}
		w.visit(a)
	}
	if id, ok := e.Fn.(*syntax.Ident); ok && numeric[id.Name] {
		w.collects = collects
	}
}

func (w *walker) comprehension(e *syntax.Comprehension) {
	var binders []syntax.Expr
	for _, c := range e.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			w.visit(c.X)
			w.bind(c.Vars, 1)
			binders = append(binders, c.Vars)
		case *syntax.IfClause:
			w.visit(c.Cond)
		}
	}
	w.visit(e.Body)
	for _, b := range binders {
		w.bind(b, -1)
	}
}

// guardName is the function that stands for * where an operand may be a string or a list.
const guardName = "__multiply__"

// guard replaces every a * b by a call that refuses to repeat strings and lists: "x" * 1000000000 is a gigabyte.
func guard(e *syntax.Expr) {
	if *e == nil {
		return
	}
	switch x := (*e).(type) {
	case *syntax.BinaryExpr:
		guard(&x.X)
		guard(&x.Y)
		if x.Op == syntax.STAR {
			*e = &syntax.CallExpr{Fn: &syntax.Ident{Name: guardName, NamePos: x.OpPos}, Lparen: x.OpPos, Args: []syntax.Expr{x.X, x.Y}, Rparen: x.OpPos}
		}
	case *syntax.CallExpr:
		guard(&x.Fn)
		for i, a := range x.Args {
			if named, ok := a.(*syntax.BinaryExpr); ok && named.Op == syntax.EQ {
				guard(&named.Y)
				continue
			}
			guard(&x.Args[i])
		}
	case *syntax.Comprehension:
		guard(&x.Body)
		for _, c := range x.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				guard(&c.X)
			case *syntax.IfClause:
				guard(&c.Cond)
			}
		}
	case *syntax.CondExpr:
		guard(&x.Cond)
		guard(&x.True)
		guard(&x.False)
	case *syntax.DictEntry:
		guard(&x.Key)
		guard(&x.Value)
	case *syntax.DictExpr:
		guardAll(x.List)
	case *syntax.DotExpr:
		guard(&x.X)
	case *syntax.IndexExpr:
		guard(&x.X)
		guard(&x.Y)
	case *syntax.LambdaExpr:
		guard(&x.Body)
	case *syntax.ListExpr:
		guardAll(x.List)
	case *syntax.ParenExpr:
		guard(&x.X)
	case *syntax.SliceExpr:
		guard(&x.X)
		guard(&x.Lo)
		guard(&x.Hi)
		guard(&x.Step)
	case *syntax.TupleExpr:
		guardAll(x.List)
	case *syntax.UnaryExpr:
		guard(&x.X)
	}
}

func guardAll(list []syntax.Expr) {
	for i := range list {
		guard(&list[i])
	}
}

func multiply(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	for _, a := range args {
		switch a.(type) {
		case starlark.Int, starlark.Float:
		default:
			return nil, fmt.Errorf("* takes numbers, got a %s", a.Type())
		}
	}
	return starlark.Binary(syntax.STAR, args[0], args[1])
}

// maxRange bounds range: what walks over one (list, sorted, max, ...) counts as a single step.
const maxRange = 100_000

func boundedRange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(r); n > maxRange {
		return nil, fmt.Errorf("range of %d numbers: over %d", n, maxRange)
	}
	return r, nil
}
