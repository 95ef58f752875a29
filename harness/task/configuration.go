package task

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// macroRE is what the text of a -D macro may hold: nothing that a shell or a preprocessor line could take for more.
var macroRE = regexp.MustCompile(`^[A-Za-z0-9_+.=<>: -]{0,200}$`)

// Values returns the values that a parameter can take, in order. A float range without a step has no list: its ends and its
// middle stand for it.
func Values(p harness.Param) []expr.Value {
	switch {
	case p.Values != nil:
		return slices.Clone(p.Values)
	case p.Type == "bool":
		return []expr.Value{expr.Bool(false), expr.Bool(true)}
	case p.Type == "int" && p.Log:
		low, _ := p.Min.AsInt()
		high, _ := p.Max.AsInt()
		var out []expr.Value
		for v := low; v <= high && v > 0; v *= 2 {
			out = append(out, expr.Int(v))
		}
		return out
	case p.Type == "int":
		low, _ := p.Min.AsInt()
		high, _ := p.Max.AsInt()
		step := int64(1)
		if p.Step != nil {
			step, _ = p.Step.AsInt()
		}
		var out []expr.Value
		for v := low; v <= high && len(out) < maxValues && step > 0; v += step {
			out = append(out, expr.Int(v))
		}
		return out
	default:
		return floatValues(p)
	}
}

func floatValues(p harness.Param) []expr.Value {
	low, _ := p.Min.AsFloat()
	high, _ := p.Max.AsFloat()
	if p.Step == nil {
		middle := (low + high) / 2
		if p.Log {
			middle = math.Sqrt(low * high)
		}
		return []expr.Value{expr.Float(low), expr.Float(middle), expr.Float(high)}
	}
	step, _ := p.Step.AsFloat()
	var out []expr.Value
	for i := 0; i < maxValues; i++ {
		v := low + float64(i)*step
		if v > high+1e-9*step {
			break
		}
		out = append(out, expr.Float(v))
	}
	return out
}

// allowed reports whether v is a value of the parameter, and returns it in the parameter's own type.
func allowed(p harness.Param, v expr.Value) (expr.Value, bool) {
	if p.Type == "float" && p.Values == nil && p.Step == nil {
		f, ok := v.AsFloat()
		low, _ := p.Min.AsFloat()
		high, _ := p.Max.AsFloat()
		return expr.Float(f), ok && f >= low && f <= high
	}
	for _, w := range Values(p) {
		if w.Equal(v) {
			return w, true
		}
	}
	return v, false
}

func describe(p harness.Param) string {
	var words []string
	for i, v := range Values(p) {
		if i == 12 {
			words = append(words, "...")
			break
		}
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}

// Complete returns config with every parameter that it leaves out at its default, values in the parameters' own types, and
// parameters whose `when` is false at their defaults. An unknown name or a value that the parameter cannot take is an error.
func Complete(s *harness.Structure, config harness.Configuration) (harness.Configuration, error) {
	names := paramNames(s)
	given := slices.Sorted(maps.Keys(config))
	for _, name := range given {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s has no parameter %q; %s", s.Name, name, choose(name, names))
		}
	}
	out := maps.Clone(s.Default)
	if out == nil {
		out = harness.Configuration{}
	}
	for _, p := range s.Params {
		v, ok := config[p.Name]
		if !ok {
			continue
		}
		w, ok := allowed(p, v)
		if !ok {
			return nil, fmt.Errorf("parameter %s of %s cannot be %s; it takes %s", p.Name, s.Name, v, describe(p))
		}
		out[p.Name] = w
	}
	for _, p := range s.Params {
		active, err := holds(p.When, out)
		if err != nil {
			return nil, fmt.Errorf("parameter %s of %s: when: %w", p.Name, s.Name, err)
		}
		if !active {
			out[p.Name] = s.Default[p.Name]
		}
	}
	return out, nil
}

// ParseAssignment reads the value of one parameter from text as it stands on a command line: VEC=4.
func ParseAssignment(s *harness.Structure, assignment string) (name string, v expr.Value, err error) {
	name, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return "", expr.Value{}, fmt.Errorf("parameter %q: write NAME=VALUE", assignment)
	}
	names := paramNames(s)
	i := slices.Index(names, name)
	if i < 0 {
		return "", expr.Value{}, fmt.Errorf("%s has no parameter %q; %s", s.Name, name, choose(name, names))
	}
	for _, w := range Values(s.Params[i]) {
		if w.String() == text {
			return name, w, nil
		}
	}
	d := &decoder{}
	v, ok = allowed(s.Params[i], d.value(&node{kind: kindScalar, text: text}, name))
	if d.err != nil || !ok {
		return "", expr.Value{}, fmt.Errorf("parameter %s of %s cannot be %q; it takes %s", name, s.Name, text, describe(s.Params[i]))
	}
	return name, v, nil
}

// Check reports why a complete configuration of a structure is not valid for a task: the first constraint that does not
// hold at some scored size. nil when it is valid.
func Check(t *harness.Task, s *harness.Structure, config harness.Configuration) error {
	for _, c := range s.Constraints {
		x, err := expr.Cached(c)
		if err != nil {
			return err
		}
		sizes := t.ScoredSizes(s.Target)
		if !usesAny(x, t.Dims) {
			sizes = sizes[:min(1, len(sizes))]
		}
		for _, size := range sizes {
			v, err := x.Eval(environment(size, config))
			if err != nil {
				return fmt.Errorf("constraint %w", err)
			}
			ok, isBool := v.AsBool()
			if !isBool {
				return fmt.Errorf("constraint %q is %s, want true or false", c, v)
			}
			if !ok && usesAny(x, t.Dims) {
				return fmt.Errorf("constraint %q does not hold at size %s", c, size)
			}
			if !ok {
				return fmt.Errorf("constraint %q does not hold", c)
			}
		}
	}
	return nil
}

func usesAny(x *expr.Expr, names []string) bool {
	return slices.ContainsFunc(x.Names(), func(n string) bool { return slices.Contains(names, n) })
}

// holds evaluates a condition over a configuration; an empty one holds.
func holds(condition string, config harness.Configuration) (bool, error) {
	if condition == "" {
		return true, nil
	}
	x, err := expr.Cached(condition)
	if err != nil {
		return false, err
	}
	v, err := x.Eval(environment(nil, config))
	if err != nil {
		return false, err
	}
	b, ok := v.AsBool()
	if !ok {
		return false, fmt.Errorf("%q is %s, want true or false", condition, v)
	}
	return b, nil
}

// environment joins a size and a configuration.
func environment(size harness.Size, config harness.Configuration) expr.Env {
	e := size.Env(make(expr.Env, len(size)+len(config)))
	maps.Copy(e, config)
	return e
}

// Macros returns the -D macros of a configuration as NAME=VALUE, in the order of the structure's parameters; bools are 1 and
// 0, and parameters that set a build option are left out.
func Macros(s *harness.Structure, config harness.Configuration) []string {
	var out []string
	for _, p := range s.Params {
		v, ok := config[p.Name]
		if !ok || p.Option != "" {
			continue
		}
		text := v.String()
		if b, isBool := v.AsBool(); isBool {
			text = map[bool]string{true: "1", false: "0"}[b]
		}
		out = append(out, p.Name+"="+text)
	}
	return out
}
