package propose

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

var identRE = regexp.MustCompile(`[A-Za-z_]\w*`)

func (h *header) readParams(p *parse, v any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, e := range v {
			h.addParam(p, fmt.Sprint(e.Key), e.Value)
		}
	case []any:
		h.mend(p, "params_list")
		for _, e := range v {
			m, ok := e.(yaml.MapSlice)
			if !ok || len(m) == 0 {
				p.complain("header_field", "params: want a map of names to declarations, e.g. TILE: {values: [16, 32]}")
				return
			}
			h.listedParam(p, m)
		}
	case nil:
	default:
		p.complain("header_field", "params: want a map of names to declarations, e.g. TILE: {values: [16, 32]}")
	}
}

// listedParam reads an entry of a list of parameters: {name: TILE, values: [...]} or {TILE: {values: [...]}}.
func (h *header) listedParam(p *parse, m yaml.MapSlice) {
	for i, e := range m {
		if strings.EqualFold(fmt.Sprint(e.Key), "name") {
			rest := append(append(yaml.MapSlice{}, m[:i]...), m[i+1:]...)
			h.addParam(p, fmt.Sprint(e.Value), rest)
			return
		}
	}
	for _, e := range m {
		h.addParam(p, fmt.Sprint(e.Key), e.Value)
	}
}

// addParam reads one declaration, in any form whose meaning is plain.
func (h *header) addParam(p *parse, name string, v any) {
	if h.param(name) != nil {
		p.complain("header_field", "params: %s is declared twice", name)
		return
	}
	var decl yaml.MapSlice
	switch v := v.(type) {
	case []any:
		h.mend(p, "params_short")
		decl = yaml.MapSlice{{Key: "values", Value: v}}
	case yaml.MapSlice:
		decl = h.declaration(p, name, v)
	case nil:
		p.complain("header_field", "params.%s: say its values, e.g. {values: [16, 32]}", name)
		return
	default:
		h.mend(p, "params_short")
		decl = yaml.MapSlice{{Key: "values", Value: splitList(v)}}
	}
	for i, e := range decl {
		if e.Key == "values" {
			decl[i].Value = h.values(p, name, e.Value)
		}
	}
	h.params = append(h.params, param{name, decl})
}

func (h *header) declaration(p *parse, name string, m yaml.MapSlice) yaml.MapSlice {
	var decl yaml.MapSlice
	for _, e := range m {
		written := fmt.Sprint(e.Key)
		switch key := strings.ToLower(written); key {
		case "value", "options", "choices", "candidates", "domain", "allowed":
			h.mend(p, "params_keys")
			decl = append(decl, yaml.MapItem{Key: "values", Value: e.Value})
		case "range":
			if list, ok := e.Value.([]any); ok && (len(list) == 2 || len(list) == 3) {
				h.mend(p, "params_keys")
				decl = append(decl, yaml.MapItem{Key: "min", Value: list[0]}, yaml.MapItem{Key: "max", Value: list[1]})
				if len(list) == 3 {
					decl = append(decl, yaml.MapItem{Key: "step", Value: list[2]})
				}
				continue
			}
			p.complain("header_field", "params.%s.range: write values: [...], or min and max", name)
		case "default":
			h.mend(p, "params_default")
			h.defaults[name] = e.Value
		case "type":
			decl = append(decl, yaml.MapItem{Key: key, Value: h.typeName(p, fmt.Sprint(e.Value))})
		default:
			if !paramKeys[key] { // description, comment, ...
				h.mend(p, "params_extra_keys")
				continue
			}
			decl = append(decl, yaml.MapItem{Key: key, Value: e.Value})
		}
	}
	return decl
}

func (h *header) typeName(p *parse, s string) string {
	name, ok := map[string]string{"integer": "int", "boolean": "bool", "categorical": "string", "choice": "string", "enum": "string", "str": "string", "double": "float", "number": "float"}[strings.ToLower(s)]
	if !ok {
		return s
	}
	h.mend(p, "params_keys")
	return name
}

// values makes a list of distinct values; numbers written as strings become numbers when all are.
func (h *header) values(p *parse, name string, v any) []any {
	list, ok := v.([]any)
	if !ok {
		h.mend(p, "params_values")
		s := strings.Trim(strings.TrimSpace(fmt.Sprint(v)), "[](){}")
		list = splitList(s)
	}
	numbers := make([]any, len(list))
	strs, all := 0, true
	for i, e := range list {
		numbers[i] = e
		if s, ok := e.(string); ok {
			strs++
			n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			if err != nil {
				all = false
			}
			numbers[i] = n
		}
	}
	if strs > 0 && all {
		h.mend(p, "params_values")
		list = numbers
	}
	seen := map[string]bool{}
	var out []any
	for _, e := range list {
		if seen[fmt.Sprint(e)] {
			h.mend(p, "params_values")
			continue
		}
		seen[fmt.Sprint(e)] = true
		out = append(out, e)
	}
	if len(out) == 0 {
		p.complain("header_field", "params.%s.values: list at least one value", name)
	}
	return out
}

// listed returns a parameter's values, nil when it is a range or a bool.
func (q *param) listed() []any {
	for _, e := range q.decl {
		if e.Key == "values" {
			list, _ := e.Value.([]any)
			return list
		}
	}
	return nil
}

func (q *param) field(key string) (any, bool) {
	for _, e := range q.decl {
		if e.Key == key {
			return e.Value, true
		}
	}
	return nil, false
}

// settleDefaults gives every parameter a default that it may have, and drops defaults of nothing.
func (h *header) settleDefaults(p *parse) {
	for _, name := range sortedNames(h.defaults) {
		if h.param(name) == nil {
			h.mend(p, "default_of_nothing")
			delete(h.defaults, name)
		}
	}
	for i := range h.params {
		q := &h.params[i]
		values := q.listed()
		d, ok := h.defaults[q.name]
		switch {
		case !ok && len(values) > 0:
			h.mend(p, "default_missing")
			h.defaults[q.name] = values[0]
		case !ok:
			if v, has := q.field("min"); has {
				h.mend(p, "default_missing")
				h.defaults[q.name] = v
			} else if t, _ := q.field("type"); t == "bool" {
				h.mend(p, "default_missing")
				h.defaults[q.name] = false
			}
		case len(values) > 0 && !contains(values, d):
			p.complain("default_not_listed", "default: %s is %v, which is not among its values %v: list it, or choose one of them", q.name, d, values)
		}
	}
}

func contains(values []any, v any) bool {
	for _, e := range values {
		if fmt.Sprint(e) == fmt.Sprint(v) {
			return true
		}
	}
	return false
}

// exprNames returns the names in all expressions of launches, workspaces and tensor maps.
func (h *header) exprNames() map[string]bool {
	names := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			for _, n := range identRE.FindAllString(v, -1) {
				names[n] = true
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case yaml.MapSlice:
			for _, e := range v {
				walk(e.Value)
			}
		}
	}
	for _, l := range h.launch {
		walk(l)
	}
	walk(h.workspace)
	walk(h.tensorMaps)
	return names
}

// write returns the header as a structure file has it.
func (h *header) write() string {
	var b strings.Builder
	b.WriteString("/* ridgepoint\n")
	if h.direction != "" {
		fmt.Fprintf(&b, "direction: %s\n", flow(h.direction))
	}
	if len(h.launch) > 0 {
		b.WriteString("launch:\n")
		for _, l := range h.launch {
			fmt.Fprintf(&b, "  - %s\n", flow(l))
		}
	}
	for _, section := range []struct {
		name  string
		value any
	}{{"workspace", h.workspace}, {"tensor_maps", h.tensorMaps}, {"requires", h.requires}} {
		if section.value != nil {
			fmt.Fprintf(&b, "%s: %s\n", section.name, flow(section.value))
		}
	}
	if len(h.params) > 0 {
		b.WriteString("params:\n")
		for _, q := range h.params {
			fmt.Fprintf(&b, "  %s: %s\n", q.name, flow(q.decl))
		}
	}
	if len(h.constraints) > 0 {
		list := make([]any, len(h.constraints))
		for i, c := range h.constraints {
			list[i] = c
		}
		fmt.Fprintf(&b, "constraints: %s\n", flow(list))
	}
	if len(h.defaults) > 0 {
		var m yaml.MapSlice
		for _, q := range h.params {
			if v, ok := h.defaults[q.name]; ok {
				m = append(m, yaml.MapItem{Key: q.name, Value: v})
			}
		}
		fmt.Fprintf(&b, "default: %s\n", flow(m))
	}
	b.WriteString("*/\n")
	return b.String()
}

var (
	plainRE    = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)
	reservedRE = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n|nan|inf)$`)
)

// flow writes a value in YAML's flow style on one line.
func flow(v any) string {
	switch v := v.(type) {
	case yaml.MapSlice:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = flow(fmt.Sprint(e.Key)) + ": " + flow(e.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = flow(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		if plainRE.MatchString(v) && !reservedRE.MatchString(v) {
			return v
		}
		return strconv.Quote(v)
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}
