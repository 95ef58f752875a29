// Package expr is the one expression evaluator: work, constraints, grids, rewards and conditions are all written in
// Starlark expressions and evaluated here. It reads no file, no clock and no environment, and every evaluation is
// bounded in steps. It is a leaf that every area may import.
//
// `/` is exact (float) division, `//` and `%` floor; division by zero, an unknown name and a type clash are errors that
// carry a column.
package expr

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxSteps bounds one evaluation. The longest shipped expression needs under 200 Starlark steps.
const maxSteps = 1_000_000

// Env gives names their values.
type Env map[string]Value

// Error is a wrong expression or a failed evaluation.
type Error struct {
	Source string // the expression
	Column int    // 1-based; 0 when the failure has no place
	Reason string // what is wrong and what to write instead
}

// Error returns the reason with the expression and the column.
func (e *Error) Error() string {
	if e.Column > 0 {
		return fmt.Sprintf("expression %q, column %d: %s", e.Source, e.Column, e.Reason)
	}
	return fmt.Sprintf("expression %q: %s", e.Source, e.Reason)
}

// Expr is a parsed expression, safe for concurrent use.
type Expr struct {
	source string
	names  []string
	fn     *starlark.Function
	offset int // columns that the wrapping lambda adds
}

// Parse reads one Starlark expression. Names that are not built in (ceil_div, min, max, next_pow2, abs, ...) are free
// and must be given a value by Eval's Env.
func Parse(source string) (*Expr, error) {
	opts := &syntax.FileOptions{}
	tree, err := opts.ParseExpr("", source, 0)
	if err != nil {
		return nil, parseError(source, err)
	}
	names := freeNames(tree)
	prefix := "lambda " + strings.Join(names, ", ") + ": ("
	thread := &starlark.Thread{Name: "expr"}
	value, err := starlark.EvalOptions(opts, thread, "", prefix+source+"\n)", builtins)
	if err != nil {
		return nil, parseError(source, err)
	}
	return &Expr{source: source, names: names, fn: value.(*starlark.Function), offset: len(prefix)}, nil
}

// Source returns the expression's text.
func (e *Expr) Source() string { return e.source }

// Names returns the free names of the expression, sorted.
func (e *Expr) Names() []string { return append([]string(nil), e.names...) }

// Eval evaluates the expression. A free name without a value, a division by zero, a type clash or a result that is not
// an int, float, string or bool is an *Error.
func (e *Expr) Eval(env Env) (Value, error) {
	args := make(starlark.Tuple, len(e.names))
	for i, name := range e.names {
		v, ok := env[name]
		if !ok {
			return Value{}, &Error{Source: e.source, Reason: fmt.Sprintf("name %q is not known here; known: %s", name, known(env))}
		}
		args[i] = toStarlark(v)
	}
	return e.call(args)
}

func (e *Expr) call(args starlark.Tuple) (Value, error) {
	thread := &starlark.Thread{Name: "expr"}
	thread.SetMaxExecutionSteps(maxSteps)
	out, err := starlark.Call(thread, e.fn, args, nil)
	if err != nil {
		return Value{}, e.evalError(err)
	}
	v, ok := fromStarlark(out)
	if !ok {
		return Value{}, &Error{Source: e.source, Reason: fmt.Sprintf("gives a %s; want an int, a float, a string or a bool", out.Type())}
	}
	return v, nil
}

func (e *Expr) evalError(err error) error {
	var ee *starlark.EvalError
	if errors.As(err, &ee) {
		for i := len(ee.CallStack) - 1; i >= 0; i-- {
			if pos := ee.CallStack[i].Pos; pos.IsValid() && int(pos.Col) > e.offset {
				return &Error{Source: e.source, Column: int(pos.Col) - e.offset, Reason: ee.Msg}
			}
		}
	}
	return &Error{Source: e.source, Reason: err.Error()}
}

func parseError(source string, err error) error {
	var se syntax.Error
	if errors.As(err, &se) {
		return &Error{Source: source, Column: int(se.Pos.Col), Reason: se.Msg}
	}
	return &Error{Source: source, Reason: err.Error()}
}

// freeNames returns the sorted free identifiers of tree that are neither built in nor bound by a comprehension or lambda
// within it.
func freeNames(tree syntax.Expr) []string {
	bound := map[string]bool{}
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ForClause:
			syntax.Walk(n.Vars, func(m syntax.Node) bool {
				if id, ok := m.(*syntax.Ident); ok {
					bound[id.Name] = true
				}
				return true
			})
		case *syntax.LambdaExpr:
			for _, p := range n.Params {
				if id, ok := p.(*syntax.Ident); ok {
					bound[id.Name] = true
				}
			}
		}
		return true
	})
	seen := map[string]bool{}
	var names []string
	var visit func(n syntax.Node) bool
	visit = func(n syntax.Node) bool {
		if dot, ok := n.(*syntax.DotExpr); ok {
			syntax.Walk(dot.X, visit)
			return false
		}
		id, ok := n.(*syntax.Ident)
		if !ok || bound[id.Name] || seen[id.Name] || builtins.Has(id.Name) || starlark.Universe.Has(id.Name) {
			return true
		}
		seen[id.Name] = true
		names = append(names, id.Name)
		return true
	}
	syntax.Walk(tree, visit)
	sort.Strings(names)
	return names
}

func known(env Env) string {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// maxCached bounds the shared cache: more than a campaign's structures have expressions.
const maxCached = 4096

var cache struct {
	mu    sync.Mutex
	exprs map[string]*Expr
}

// Cached is Parse with a shared cache: launch plans and constraints are evaluated over and over.
func Cached(source string) (*Expr, error) {
	cache.mu.Lock()
	e, ok := cache.exprs[source]
	cache.mu.Unlock()
	if ok {
		return e, nil
	}
	e, err := Parse(source)
	if err != nil {
		return nil, err
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.exprs == nil || len(cache.exprs) >= maxCached {
		cache.exprs = map[string]*Expr{}
	}
	cache.exprs[source] = e
	return e, nil
}
