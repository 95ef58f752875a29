package torch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxSteps bounds one run: the shipped nbody reference needs 60 000 at its largest size.
const maxSteps = 5_000_000

// Program is a parsed reference: an expression over the inputs, a text that defines one function whose parameters name
// inputs, or statements that assign the outputs. It is safe for concurrent use.
type Program struct {
	source   *rewritten
	prefix   int // columns that stand before the first line's text
	program  *starlark.Program
	names    []string // what it may use
	function string   // the def to call; "" for an expression or statements
	params   []string
}

const (
	fileName   = "reference"
	resultName = "__rp_result__"
)

var options = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}

// Parse reads a reference that may use the names of inputs, scalars and dims. An unknown name or operator, at any place
// of the text, is an *Error that says what is nearest.
func Parse(text string, names []string) (*Program, error) {
	source, err := rewrite(text)
	if err != nil {
		return nil, err
	}
	p := &Program{source: source, names: names}
	file, err := p.parse()
	if err != nil {
		return nil, err
	}
	if err := p.findFunction(file); err != nil {
		return nil, err
	}
	if err := p.check(file); err != nil {
		return nil, err
	}
	for _, s := range file.Stmts {
		transformStmt(s)
	}
	known := p.predeclared()
	p.program, err = starlark.FileProgram(file, func(name string) bool { return known[name] })
	if err != nil {
		return nil, p.fail(err)
	}
	return p, nil
}

// parse tries the text as an expression, then as statements.
func (p *Program) parse() (*syntax.File, error) {
	prefix := resultName + " = ("
	p.prefix = len(prefix)
	file, err := options.Parse(fileName, prefix+p.source.text+"\n)", 0)
	if err == nil {
		return file, nil
	}
	statements := strings.Contains(p.source.text, "def ") || strings.Contains(strings.TrimSpace(p.source.text), "\n")
	if !statements {
		return nil, p.fail(err)
	}
	p.prefix = 0
	if file, err = options.Parse(fileName, p.source.text+"\n", 0); err != nil {
		return nil, p.fail(err)
	}
	return file, nil
}

// findFunction picks the function to call: the one named reference, else the last one defined.
func (p *Program) findFunction(file *syntax.File) error {
	var def *syntax.DefStmt
	for _, s := range file.Stmts {
		if d, ok := s.(*syntax.DefStmt); ok && (def == nil || def.Name.Name != "reference") {
			def = d
		}
	}
	if def == nil {
		return nil
	}
	p.function = def.Name.Name
	for _, param := range def.Params {
		id, ok := param.(*syntax.Ident)
		if !ok {
			return p.errorAt(def.Def, "the parameters of "+p.function+" must be plain names of inputs")
		}
		if !slices.Contains(p.names, id.Name) {
			return p.errorAt(id.NamePos, fmt.Sprintf("parameter %q names no input; %s", id.Name, suggest(id.Name, p.names)))
		}
		p.params = append(p.params, id.Name)
	}
	return nil
}

func (p *Program) predeclared() map[string]bool {
	known := map[string]bool{}
	for name := range globals {
		known[name] = true
	}
	for _, name := range p.names {
		known[name] = true
	}
	return known
}

// check looks up every operator that the text names, so that a misspelt one fails when the task is loaded.
func (p *Program) check(file *syntax.File) error {
	var found error
	shadowed := map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if found != nil {
			return false
		}
		dot, ok := n.(*syntax.DotExpr)
		if !ok {
			return true
		}
		name, known := dot.Name.Name, methodNames
		if id, ok := dot.X.(*syntax.Ident); ok && modules[id.Name] != nil && !shadowed[id.Name] {
			known = modules[id.Name].names()
			name = id.Name + "." + name
		} else if inner, ok := dot.X.(*syntax.DotExpr); ok && (inner.Name.Name == "nn" || inner.Name.Name == "functional" || inner.Name.Name == "linalg" || inner.Name.Name == "special") {
			known = append(modules["torch"].names(), "functional")
			name = inner.Name.Name + "." + name
		}
		if !slices.Contains(known, dot.Name.Name) {
			found = p.errorAt(dot.Name.NamePos, fmt.Sprintf("%s is not an operator here; %s", name, suggest(dot.Name.Name, known)))
		}
		return true
	})
	return found
}

func (p *Program) errorAt(pos syntax.Position, reason string) *Error {
	line, column := int(pos.Line), int(pos.Col)
	if line == 1 {
		column -= p.prefix
	}
	line, column = p.source.place(line, column)
	return &Error{Line: line, Column: column, Reason: reason}
}

// fail places an error of Starlark in the original text.
func (p *Program) fail(err error) error {
	var se syntax.Error
	if errors.As(err, &se) {
		if p.prefix > 0 && int(se.Pos.Line) > len(p.source.maps) {
			return p.errorAt(se.Pos, "the expression ends too early")
		}
		return p.errorAt(se.Pos, se.Msg)
	}
	var ee *starlark.EvalError
	if errors.As(err, &ee) {
		for i := len(ee.CallStack) - 1; i >= 0; i-- {
			if pos := ee.CallStack[i].Pos; pos.IsValid() && pos.Filename() == fileName {
				return p.errorAt(pos, ee.Msg)
			}
		}
		return &Error{Reason: ee.Msg}
	}
	return p.failResolve(err)
}

// Values gives the names that a program may use their values: *Array for tensors, float64 for scalars, int64 for dims.
type Values map[string]any

// Run evaluates the program and returns its result: one array, several from a tuple or list in its order, or by the names
// of outputs from a dict or from statements. A fault of the text is an *Error; ctx ends the run early.
func (p *Program) Run(ctx context.Context, values Values, outputs []string) ([]*Array, error) {
	env := maps.Clone(globals)
	for name, v := range values {
		switch v := v.(type) {
		case *Array:
			env[name] = v
		case float64:
			env[name] = starlark.Float(v)
		case int64:
			env[name] = starlark.MakeInt64(v)
		default:
			return nil, fmt.Errorf("value of %s: a %T cannot be used in a reference", name, v)
		}
	}
	thread := &starlark.Thread{Name: fileName, Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(maxSteps)
	stop := context.AfterFunc(ctx, func() { thread.Cancel(context.Cause(ctx).Error()) })
	defer stop()
	result, err := p.call(thread, env)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, p.fail(err)
	}
	return arrays(result, outputs)
}

func (p *Program) call(thread *starlark.Thread, env starlark.StringDict) (starlark.Value, error) {
	out, err := p.program.Init(thread, env)
	if err != nil {
		return nil, err
	}
	switch {
	case p.function != "":
		var args starlark.Tuple
		for _, name := range p.params {
			args = append(args, env[name])
		}
		return starlark.Call(thread, out[p.function], args, nil)
	case out.Has(resultName):
		return out[resultName], nil
	}
	d := starlark.NewDict(len(out))
	for name, v := range out {
		if err := d.SetKey(starlark.String(name), v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// arrays turns a result into one array per output.
func arrays(result starlark.Value, outputs []string) ([]*Array, error) {
	var values []starlark.Value
	switch r := result.(type) {
	case *starlark.Dict:
		for _, name := range outputs {
			v, found, err := r.Get(starlark.String(name))
			if err != nil || !found {
				return nil, &Error{Reason: fmt.Sprintf("gives no value for the output %q", name)}
			}
			values = append(values, v)
		}
	case starlark.Tuple:
		values = r
	case *starlark.List:
		for i := range r.Len() {
			values = append(values, r.Index(i))
		}
	default:
		values = []starlark.Value{r}
	}
	if len(values) != len(outputs) {
		return nil, &Error{Reason: fmt.Sprintf("gives %d values; the task has the outputs %s", len(values), strings.Join(outputs, ", "))}
	}
	out := make([]*Array, len(values))
	for i, v := range values {
		a, err := toArray(v)
		if err != nil {
			return nil, &Error{Reason: fmt.Sprintf("output %s: %v", outputs[i], err)}
		}
		out[i] = a
	}
	return out, nil
}
