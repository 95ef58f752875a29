// Package formula compiles the expressions of a parameter space (constraints, conditions, their operands) to closures over
// typed slots, because an enumeration evaluates them millions of times. It gives exactly what configs/expr gives: whatever the
// closures cannot do in int64 and float64 (an overflow, a division by zero, a clash of types) is evaluated by Starlark
// itself, which also words the errors. It does no I/O.
package formula

import (
	"fmt"
	"math"

	"go.starlark.net/syntax"

	"ridgepoint/configs/expr"
)

// Variable is a name that formulas may use. Every value it takes has this kind.
type Variable struct {
	Name string
	Kind expr.Kind
}

// Scope is the ordered set of variables of a space and the constants beside them.
type Scope struct {
	variables []Variable
	slots     map[string]int
	constants map[string]expr.Value
}

// NewScope returns a scope of variables and constants. A name may appear once.
func NewScope(variables []Variable, constants map[string]expr.Value) (*Scope, error) {
	s := &Scope{variables: variables, slots: make(map[string]int, len(variables)), constants: constants}
	for i, v := range variables {
		if _, twice := s.slots[v.Name]; twice {
			return nil, fmt.Errorf("parameter %q is declared twice: give each its own name", v.Name)
		}
		if _, clash := constants[v.Name]; clash {
			return nil, fmt.Errorf("parameter %q has the name of a fixed value: rename one", v.Name)
		}
		s.slots[v.Name] = i
	}
	return s, nil
}

// Frame holds the present value of each variable of a scope. It is not safe for concurrent use.
type Frame struct {
	values []expr.Value
	ints   []int64
	floats []float64
	texts  []string
	bad    bool // a closure met something that only Starlark can decide
}

// NewFrame returns a frame for the variables of the scope, all unset.
func (s *Scope) NewFrame() *Frame {
	n := len(s.variables)
	return &Frame{values: make([]expr.Value, n), ints: make([]int64, n), floats: make([]float64, n), texts: make([]string, n)}
}

// Set gives variable slot its value.
func (f *Frame) Set(slot int, v expr.Value) {
	f.values[slot] = v
	switch v.Kind() {
	case expr.KindInt:
		f.ints[slot], _ = v.AsInt()
		f.floats[slot], _ = v.AsFloat()
	case expr.KindFloat:
		f.floats[slot], _ = v.AsFloat()
	case expr.KindString:
		f.texts[slot], _ = v.AsString()
	case expr.KindBool:
		f.ints[slot] = 0
		if b, _ := v.AsBool(); b {
			f.ints[slot] = 1
		}
	default:
		panic("formula: an invalid value was set")
	}
}

// Formula is one compiled expression of a scope.
type Formula struct {
	source string
	scope  *Scope
	slots  []int // of the variables it uses, ascending
	exact  *expr.Expr
	truth  func(*Frame) bool
	number func(*Frame) float64
}

// Compile reads an expression. A name that is neither a variable nor a constant of the scope is an error.
func (s *Scope) Compile(source string) (*Formula, error) {
	exact, err := expr.Parse(source)
	if err != nil {
		return nil, err
	}
	f := &Formula{source: source, scope: s, exact: exact}
	for _, name := range exact.Names() {
		if slot, ok := s.slots[name]; ok {
			f.slots = append(f.slots, slot)
		} else if _, ok := s.constants[name]; !ok {
			return nil, fmt.Errorf("expression %q: %q is no parameter or fixed value here; known: %s", source, name, s.known())
		}
	}
	sortInts(f.slots)
	tree, err := (&syntax.FileOptions{}).ParseExpr("", source, 0)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", source, err)
	}
	s.attach(f, tree)
	return f, nil
}

// attach compiles the tree's closures; a tree that cannot be compiled keeps Starlark alone.
func (s *Scope) attach(f *Formula, tree syntax.Expr) {
	if n, ok := s.compile(tree); ok {
		f.truth, f.number = n.truth(), n.number()
	}
	if f.truth == nil {
		if t, ok := s.compileTruth(tree); ok {
			f.truth = t
		}
	}
}

// Source returns the expression's text.
func (f *Formula) Source() string { return f.source }

// Slots returns the slots of the variables that the formula uses, ascending. The caller must not change them.
func (f *Formula) Slots() []int { return f.slots }

// Compiled reports whether the truth value comes from closures (Starlark still decides what they cannot).
func (f *Formula) Compiled() bool { return f.truth != nil }

// Truth returns whether the formula holds: its value as Starlark's bool() sees it.
func (f *Formula) Truth(frame *Frame) (bool, error) {
	if f.truth != nil {
		frame.bad = false
		if t := f.truth(frame); !frame.bad {
			return t, nil
		}
	}
	v, err := f.exactValue(frame)
	if err != nil {
		return false, err
	}
	return truthOf(v), nil
}

// Number returns the formula's value as a float64; a value that is not a number is an error.
func (f *Formula) Number(frame *Frame) (float64, error) {
	if f.number != nil {
		frame.bad = false
		if x := f.number(frame); !frame.bad {
			return x, nil
		}
	}
	v, err := f.exactValue(frame)
	if err != nil {
		return 0, err
	}
	x, ok := v.AsFloat()
	if !ok {
		return 0, fmt.Errorf("expression %q gives a %s; want a number", f.source, v.Kind())
	}
	return x, nil
}

func (f *Formula) exactValue(frame *Frame) (expr.Value, error) {
	env := make(expr.Env, len(f.slots)+len(f.scope.constants))
	for name, v := range f.scope.constants {
		env[name] = v
	}
	for _, slot := range f.slots {
		env[f.scope.variables[slot].Name] = frame.values[slot]
	}
	return f.exact.Eval(env)
}

func truthOf(v expr.Value) bool {
	switch v.Kind() {
	case expr.KindBool:
		b, _ := v.AsBool()
		return b
	case expr.KindInt, expr.KindFloat:
		x, _ := v.AsFloat()
		return x != 0
	case expr.KindString:
		s, _ := v.AsString()
		return s != ""
	default:
		panic("formula: an expression gave an invalid value")
	}
}

func (s *Scope) known() string {
	out := ""
	for _, v := range s.variables {
		out += v.Name + ", "
	}
	names := make([]string, 0, len(s.constants))
	for name := range s.constants {
		names = append(names, name)
	}
	sortStrings(names)
	for _, name := range names {
		out += name + ", "
	}
	if out == "" {
		return "none"
	}
	return out[:len(out)-2]
}

// exactFloat is the largest integer magnitude below which int64 to float64 loses nothing.
const exactFloat = 1 << 53

func floatOf(f *Frame, x int64) float64 {
	if x > exactFloat || x < -exactFloat {
		f.bad = true
	}
	return float64(x)
}

func checked(f *Frame, x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		f.bad = true
	}
	return x
}

// Uses reports whether the formula names one of the given constants.
func (f *Formula) Uses(names map[string]expr.Value) bool {
	for _, name := range f.exact.Names() {
		if _, ok := names[name]; ok {
			return true
		}
	}
	return false
}
