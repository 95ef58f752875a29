package optimizer

import (
	"fmt"
	"math"

	"ridgepoint/configs/expr"
)

// Param declares one parameter as a structure file writes it. Exactly one of Values, (Min, Max) and Type "bool" is used.
type Param struct {
	Name   string       `json:"name"`
	Type   string       `json:"type,omitempty"` // int, float, string (categorical) or bool; empty: the type of Values
	Values []expr.Value `json:"values,omitempty"`
	Min    *expr.Value  `json:"min,omitempty"`
	Max    *expr.Value  `json:"max,omitempty"`
	Step   *expr.Value  `json:"step,omitempty"` // of a range: the difference, or with Log the factor (default 2)
	Log    bool         `json:"log,omitempty"`
	When   string       `json:"when,omitempty"` // false: the parameter is inactive and stays at its default
}

// maxValues bounds the values of one parameter: indices are 16 bits wide.
const maxValues = 1 << 16

// expand lists the values of the parameter in order and gives their one kind.
func (p *Param) expand() ([]expr.Value, expr.Kind, error) {
	values := p.Values
	switch {
	case p.Type == "bool" && len(values) == 0:
		values = []expr.Value{expr.Bool(false), expr.Bool(true)}
	case len(values) > 0 && (p.Min != nil || p.Max != nil):
		return nil, 0, fmt.Errorf("parameter %q: has both values and a range: keep one", p.Name)
	case p.Min != nil && p.Max != nil:
		var err error
		if values, err = p.expandRange(); err != nil {
			return nil, 0, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
	case len(values) == 0:
		return nil, 0, fmt.Errorf("parameter %q: has no values: write `values: [...]`, `min` and `max`, or `type: bool`", p.Name)
	}
	if len(values) > maxValues {
		return nil, 0, fmt.Errorf("parameter %q: has %d values, at most %d can be searched: use a larger step or `log: true`", p.Name, len(values), maxValues)
	}
	values, kind, err := oneKind(values, p.Type)
	if err != nil {
		return nil, 0, fmt.Errorf("parameter %q: %w", p.Name, err)
	}
	seen := make(map[expr.Value]bool, len(values))
	for _, v := range values {
		if seen[v] {
			return nil, 0, fmt.Errorf("parameter %q: value %s is listed twice: remove one", p.Name, v)
		}
		seen[v] = true
	}
	return values, kind, nil
}

// oneKind brings a list of values to the declared type, or to the type they share.
func oneKind(values []expr.Value, declared string) ([]expr.Value, expr.Kind, error) {
	want, ok := map[string]expr.Kind{"int": expr.KindInt, "float": expr.KindFloat, "string": expr.KindString, "bool": expr.KindBool}[declared]
	if !ok {
		if declared != "" {
			return nil, 0, fmt.Errorf("type %q is unknown: write int, float, string or bool", declared)
		}
		want = values[0].Kind()
		for _, v := range values {
			if want == expr.KindInt && v.Kind() == expr.KindFloat {
				want = expr.KindFloat
			}
		}
	}
	out := make([]expr.Value, len(values))
	for i, v := range values {
		switch {
		case v.Kind() == want:
			out[i] = v
		case want == expr.KindFloat && v.Kind() == expr.KindInt:
			f, _ := v.AsFloat()
			out[i] = expr.Float(f)
		case want == expr.KindString && v.IsValid():
			out[i] = expr.String(v.String())
		default:
			return nil, 0, fmt.Errorf("value %s is a %s among %ss: use one type", v, v.Kind(), want)
		}
		if f, ok := out[i].AsFloat(); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, 0, fmt.Errorf("value %s is not finite", v)
		}
	}
	return out, want, nil
}

// expandRange lists min, min+step, ... or, with Log, min, min*step, ... up to max.
func (p *Param) expandRange() ([]expr.Value, error) {
	low, okl := p.Min.AsFloat()
	high, okh := p.Max.AsFloat()
	if !okl || !okh || !(low <= high) || math.IsInf(high-low, 0) {
		return nil, fmt.Errorf("the range %s to %s is none: min and max are finite numbers, min at most max", *p.Min, *p.Max)
	}
	integer := p.Type == "int" || (p.Type == "" && p.Min.Kind() == expr.KindInt && p.Max.Kind() == expr.KindInt)
	if integer && math.Max(math.Abs(low), math.Abs(high)) > maxRangeInt {
		return nil, fmt.Errorf("the range %s to %s goes beyond ±2^53, where steps are not exact: list the values", *p.Min, *p.Max)
	}
	step := 1.0
	switch {
	case p.Step != nil:
		s, ok := p.Step.AsFloat()
		if !ok {
			return nil, fmt.Errorf("step %s is not a number", *p.Step)
		}
		step = s
	case p.Log:
		step = 2
	case !integer:
		return nil, fmt.Errorf("a range of floats needs a `step`, or `log: true`")
	}
	if !(step > 0) || math.IsInf(step, 0) || (p.Log && (!(step > 1) || !(low > 0))) {
		return nil, fmt.Errorf("step %g does not go from %g to %g: a step is positive; with `log: true` it is a factor above 1 and min is positive", step, low, high)
	}
	return rangeValues(low, high, step, p.Log, integer)
}

// maxRangeInt bounds ranges of ints, whose steps are worked out as float64.
const maxRangeInt = 1 << 53

func rangeValues(low, high, step float64, log, integer bool) ([]expr.Value, error) {
	var out []expr.Value
	slack := 1e-9 * math.Max(step, math.Abs(high)) // a float range ends at max although its steps round
	for i := 0; ; i++ {
		v := low + float64(i)*step
		if log {
			v = low * math.Pow(step, float64(i))
		}
		if v > high+slack {
			return out, nil
		}
		if i >= maxValues { // of ints, many steps may round to one value
			return nil, fmt.Errorf("the range has more than %d steps: use a larger step or `log: true`", maxValues)
		}
		if !integer {
			out = append(out, expr.Float(math.Min(v, high)))
			continue
		}
		n := int64(math.Round(v))
		if len(out) == 0 || !out[len(out)-1].Equal(expr.Int(n)) {
			out = append(out, expr.Int(n))
		}
	}
}
