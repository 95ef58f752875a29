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

	"go.starlark.net/resolve"
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
	source  string
	names   []string
	columns map[string]int // where each name first stands
	fn      *starlark.Function
	guarded *starlark.Function // fn with multiplication refusing all but numbers; nil when there is none to guard
	always  bool               // lists or strings stand in the text itself: only guarded may run
}

// maxSourceBytes bounds an expression's text.
const maxSourceBytes = 16 << 10

// Parse reads one Starlark expression. Names that are not built in (ceil_div, min, max, next_pow2, abs, ...) are free
// and must be given a value by Eval's Env. A wrong expression is an *Error with its column.
func Parse(source string) (*Expr, error) {
	if len(source) > maxSourceBytes {
		return nil, &Error{Source: source[:40] + "...", Reason: fmt.Sprintf("is over %d bytes long", maxSourceBytes)}
	}
	tree, err := options.ParseExpr("", source, 0)
	if err != nil {
		return nil, parseError(source, err)
	}
	e := &Expr{source: source, columns: map[string]int{}}
	w := &walker{bound: map[string]int{}}
	w.visit(tree)
	for _, id := range w.free {
		if _, ok := e.columns[id.Name]; !ok {
			e.names = append(e.names, id.Name)
			e.columns[id.Name] = e.column(id.NamePos)
		}
	}
	sort.Strings(e.names)
	if e.fn, err = e.compile(tree); err != nil {
		return nil, err
	}
	if w.multiplies {
		e.always = w.collects
		if tree, err = options.ParseExpr("", source, 0); err != nil { // a tree can be compiled once
			return nil, parseError(source, err)
		}
		guard(&tree)
		if e.guarded, err = e.compile(tree); err != nil {
			return nil, err
		}
	}
	return e, nil
}

var options = &syntax.FileOptions{}

// compile makes a function of the expression, its parameters the free names.
func (e *Expr) compile(tree syntax.Expr) (*starlark.Function, error) {
	lambda := &syntax.LambdaExpr{Body: tree}
	start, _ := tree.Span()
	lambda.Lambda = start
	for _, name := range e.names {
		lambda.Params = append(lambda.Params, &syntax.Ident{Name: name, NamePos: start})
	}
	value, err := starlark.EvalExprOptions(options, &starlark.Thread{Name: "expr"}, lambda, builtins)
	if err != nil {
		return nil, e.resolveError(err)
	}
	return value.(*starlark.Function), nil
}

// Source returns the expression's text.
func (e *Expr) Source() string { return e.source }

// Names returns the free names of the expression, sorted.
func (e *Expr) Names() []string { return append([]string(nil), e.names...) }

// Column returns where a free name first stands, 1-based; 0 when it does not.
func (e *Expr) Column(name string) int { return e.columns[name] }

// Eval evaluates the expression. A free name without a value, a division by zero, a type clash or a result that is not
// a finite number, a string or a bool is an *Error.
func (e *Expr) Eval(env Env) (Value, error) {
	args := make(starlark.Tuple, len(e.names))
	text := false
	for i, name := range e.names {
		v, ok := env[name]
		if !ok {
			return Value{}, e.unknown(name, env)
		}
		args[i] = toStarlark(v)
		text = text || v.kind == KindString
	}
	return e.call(args, text)
}

func (e *Expr) unknown(name string, env Env) error {
	return &Error{Source: e.source, Column: e.columns[name], Reason: fmt.Sprintf("name %q is not known here; known: %s", name, known(env))}
}

// call runs the function; collections says that an argument is a string or a list, which * would repeat.
func (e *Expr) call(args starlark.Tuple, collections bool) (Value, error) {
	thread := &starlark.Thread{Name: "expr", Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(maxSteps)
	fn := e.fn
	if e.guarded != nil && (collections || e.always) {
		fn = e.guarded
	}
	out, err := starlark.Call(thread, fn, args, nil)
	if err != nil {
		return Value{}, e.evalError(err)
	}
	v, reason := fromStarlark(out)
	if reason != "" {
		return Value{}, &Error{Source: e.source, Reason: reason}
	}
	return v, nil
}

func (e *Expr) evalError(err error) error {
	var ee *starlark.EvalError
	if errors.As(err, &ee) {
		for i := len(ee.CallStack) - 1; i >= 0; i-- {
			if pos := ee.CallStack[i].Pos; pos.IsValid() && pos.Col > 0 {
				return &Error{Source: e.source, Column: e.column(pos), Reason: ee.Msg}
			}
		}
	}
	return &Error{Source: e.source, Reason: err.Error()}
}

// column is a place as an offset into the source, 1-based; the lines of a longer expression count on.
func (e *Expr) column(pos syntax.Position) int { return column(e.source, pos) }

func column(source string, pos syntax.Position) int {
	at := 0
	for range pos.Line - 1 {
		n := strings.IndexByte(source[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return min(at+int(pos.Col), len(source)+1)
}

func (e *Expr) resolveError(err error) error {
	var list resolve.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return &Error{Source: e.source, Column: e.column(list[0].Pos), Reason: list[0].Msg}
	}
	return &Error{Source: e.source, Reason: err.Error()}
}

func parseError(source string, err error) error {
	var se syntax.Error
	if errors.As(err, &se) {
		return &Error{Source: source, Column: column(source, se.Pos), Reason: se.Msg}
	}
	return &Error{Source: source, Reason: err.Error()}
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
