package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// maxParams bounds a structure's parameters and maxValues the values of one.
const (
	maxParams = 64
	maxValues = 4096
)

func (d *structureDecoder) params(n *node) {
	if n == nil || !d.is(n, kindMap, "params") {
		return
	}
	if len(n.keys) > maxParams {
		d.fail(n, fmt.Sprintf("keep to %d", maxParams), "params: declares %d parameters", len(n.keys))
	}
	for _, k := range n.keys {
		d.freshName(k, "params")
		p := d.param(k)
		if d.err != nil {
			return
		}
		d.s.Params = append(d.s.Params, p)
	}
	for i, k := range n.keys {
		d.checkWhen(d.s.Params[i], k.value)
	}
}

func (d *structureDecoder) param(k key) harness.Param {
	p := harness.Param{Name: k.name}
	what := "params." + k.name
	if k.value.kind == kindList { // short form: WARPS: [1, 2, 4]
		d.values(&p, k.value, what)
		return p
	}
	typ := ""
	d.fields(k.value, what, []string{"values", "min", "max", "step", "log", "type", "when", "option"}, func(name string, v *node) {
		key := what + "." + name
		switch name {
		case "values":
			d.values(&p, v, key)
		case "min":
			p.Min = d.number(v, key)
		case "max":
			p.Max = d.number(v, key)
		case "step":
			p.Step = d.number(v, key)
		case "log":
			p.Log = d.boolean(v, key)
		case "type":
			typ = d.oneOf(v, key, "int", "float", "string", "bool")
		case "when":
			p.When = d.text(v, key)
		case "option":
			p.Option = d.text(v, key)
		}
	})
	if d.err == nil {
		d.settle(&p, typ, k.value, what)
	}
	d.checkOption(p, k.value, what)
	return p
}

// settle brings a parameter into one of its three forms and fills in its type.
func (d *structureDecoder) settle(p *harness.Param, typ string, n *node, what string) {
	ranged := p.Min != nil || p.Max != nil || p.Step != nil || p.Log
	switch {
	case ranged && p.Values != nil || typ == "bool" && ranged:
		d.fail(n, "write either `values: [...]` or `min:` and `max:`", "%s: has both a list and a range", what)
	case ranged:
		d.settleRange(p, typ, n, what)
	case p.Values == nil && typ == "bool":
		p.Type = "bool"
	case p.Values == nil:
		d.fail(n, "write `values: [1, 2, 4]`, `min:` and `max:`, or `type: bool`", "%s: has no values", what)
	case typ != "" && typ != p.Type:
		if typ == "float" && p.Type == "int" {
			p.Type = "float"
			for i, v := range p.Values {
				f, _ := v.AsFloat() // ints always convert
				p.Values[i] = expr.Float(f)
			}
			return
		}
		d.fail(n, "leave type out, or write values of that type", "%s: type is %s, the values are of type %s", what, typ, p.Type)
	}
}

func (d *structureDecoder) settleRange(p *harness.Param, typ string, n *node, what string) {
	if p.Min == nil || p.Max == nil {
		d.fail(n, "write both min and max", "%s: a range needs min and max", what)
		return
	}
	p.Type = "int"
	for _, v := range []*expr.Value{p.Min, p.Max, p.Step} {
		if v != nil && v.Kind() == expr.KindFloat || typ == "float" {
			p.Type = "float"
		}
	}
	low, _ := p.Min.AsFloat() // number has checked that they are numbers
	high, _ := p.Max.AsFloat()
	switch {
	case typ != "" && typ != p.Type:
		d.fail(n, "leave type out", "%s: type is %s, the range is of type %s", what, typ, p.Type)
	case low > high:
		d.fail(n, "write the smaller number as min", "%s: the range from %s to %s is empty", what, p.Min, p.Max)
	case p.Log && low <= 0:
		d.fail(n, "start a log range above 0", "%s: a log range cannot start at %s", what, p.Min)
	case p.Log && p.Step != nil:
		d.fail(n, "leave step out: a log range doubles", "%s: has both log and step", what)
	case p.Step != nil:
		step, _ := p.Step.AsFloat()
		if step <= 0 || (high-low)/step > maxValues {
			d.fail(n, fmt.Sprintf("write a positive step that gives at most %d values", maxValues), "%s: step %s does not fit the range", what, p.Step)
		}
	}
	if p.Type == "float" {
		for _, v := range []**expr.Value{&p.Min, &p.Max, &p.Step} {
			if *v != nil {
				f, _ := (*v).AsFloat()
				x := expr.Float(f)
				*v = &x
			}
		}
	}
}

// values reads a list of values of one type.
func (d *structureDecoder) values(p *harness.Param, n *node, what string) {
	if !d.is(n, kindList, what) {
		return
	}
	if len(n.items) == 0 || len(n.items) > maxValues {
		d.fail(n, fmt.Sprintf("list 1 to %d values", maxValues), "%s: has %d values", what, len(n.items))
	}
	for _, item := range n.items {
		v := d.value(item, what)
		if d.err != nil {
			return
		}
		typ := v.Kind().String()
		if p.Type == "int" && typ == "float" {
			p.Type = "float"
		}
		if p.Type == "" {
			p.Type = typ
		}
		if p.Type != typ && !(p.Type == "float" && typ == "int") {
			d.fail(item, "write values of one type", "%s: %s is a %s among values of type %s", what, v, typ, p.Type)
			return
		}
		if slices.ContainsFunc(p.Values, v.Equal) {
			d.fail(item, "list every value once", "%s: the value %s stands twice", what, v)
			return
		}
		p.Values = append(p.Values, v)
	}
	if p.Type == "float" {
		for i, v := range p.Values {
			f, _ := v.AsFloat()
			p.Values[i] = expr.Float(f)
		}
	}
	if p.Type == "bool" && len(p.Values) == 2 {
		p.Values = nil
	}
}

// value reads one scalar: a quoted text is a string, a plain one an int, a float, a bool or else a string.
func (d *decoder) value(n *node, what string) expr.Value {
	t := d.text(n, what)
	if d.err != nil {
		return expr.Value{}
	}
	if !n.quoted {
		if i, err := strconv.ParseInt(t, 10, 64); err == nil {
			return expr.Int(i)
		}
		if f, err := strconv.ParseFloat(t, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return expr.Float(f)
		}
		if t == "true" || t == "false" {
			return expr.Bool(t == "true")
		}
	}
	if !macroRE.MatchString(t) {
		d.fail(n, "use letters, digits, _, - + . = < > : or nothing", "%s: %q cannot be a macro's value", what, t)
	}
	return expr.String(t)
}

func (d *decoder) number(n *node, what string) *expr.Value {
	v := d.value(n, what)
	if _, ok := v.AsFloat(); !ok && d.err == nil {
		d.fail(n, "write a number", "%s: want a number, got %s", what, v)
	}
	return &v
}

// checkWhen checks that a condition uses other parameters alone.
func (d *structureDecoder) checkWhen(p harness.Param, n *node) {
	if p.When == "" || d.err != nil {
		return
	}
	others := slices.DeleteFunc(paramNames(d.s), func(name string) bool { return name == p.Name })
	d.parse(exprNode{text: p.When, place: n.get("when")}, "params."+p.Name+".when", others)
}

// checkOption checks that the task lets parameters choose the build option, and the values with it.
func (d *structureDecoder) checkOption(p harness.Param, n *node, what string) {
	if p.Option == "" || d.err != nil {
		return
	}
	spec, _ := d.task.Target(d.s.Target) // ParseStructure has checked that there is one
	allowed := optionNames(spec)
	if !slices.Contains(allowed, p.Option) {
		d.fail(n.get("option"), choose(p.Option, allowed)+" (the task file's fast_math: search and search_flags allow more)", "%s: option %q is not the structure's to choose", what, p.Option)
		return
	}
	for _, v := range Values(p) {
		if reason := checkOptionValue(spec, p.Option, v); reason != "" {
			d.fail(n, reason, "%s: %s cannot be %q", what, p.Option, v)
			return
		}
	}
}

func (d *structureDecoder) constraints(n *node) {
	if n == nil {
		return
	}
	list := d.exprs(n, "constraints")
	for _, e := range list {
		d.parse(e, "constraints", d.names)
	}
	d.s.Constraints = exprTexts(list)
}

// defaults reads the default configuration; a parameter that it leaves out takes its first value.
func (d *structureDecoder) defaults(n *node) {
	if d.err != nil {
		return
	}
	d.s.Default = harness.Configuration{}
	for _, p := range d.s.Params {
		d.s.Default[p.Name] = Values(p)[0]
	}
	if n == nil {
		return
	}
	d.fields(n, "default", paramNames(d.s), func(name string, v *node) {
		p := d.s.Params[slices.Index(paramNames(d.s), name)]
		got, ok := allowed(p, d.value(v, "default."+name))
		if !ok && d.err == nil {
			d.fail(v, "write a value that the parameter can take: "+describe(p), "default.%s: %s is not one of its values", name, v.text)
		}
		d.s.Default[name] = got
	})
}

// checkDefaults checks that the default configuration is a valid one that can be planned at every scored size.
func (d *structureDecoder) checkDefaults(root *node, sections map[string]*node) {
	if d.err != nil {
		return
	}
	place := root
	for _, name := range []string{"constraints", "default"} {
		if sections[name] != nil {
			place = sections[name]
		}
	}
	if err := Check(d.task, d.s, d.s.Default); err != nil {
		d.fail(place, "write a `default:` that fits the constraints and limits", "default: %v", err)
		return
	}
	for _, size := range d.task.ScoredSizes(d.s.Target) {
		if _, err := Plan(d.task, d.s, d.s.Default, size); err != nil {
			n := sections["launch"]
			if n == nil {
				n = place
			}
			d.fail(n, "correct the launch plan or the default", "launch: with the default configuration at size %s: %v", size, err)
			return
		}
	}
}
