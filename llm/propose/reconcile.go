package propose

import (
	"regexp"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
)

// reconcile makes header and code agree: kernel names, arguments, declared and used parameters.
func (p *parse) reconcile(h *header, body string) string {
	body = p.dropOwnDefinitions(h, body)
	p.settleLaunch(h, body)
	body = p.export(h, body)
	free, used := freeMacros(body)
	inLaunch := h.exprNames()
	for _, name := range free {
		if h.param(name) == nil && !p.adopt(h, name) {
			p.complain("macro_undeclared", "the code uses %s, which is neither declared under params nor defined: declare it with its values and a default, or #define it", name)
		}
	}
	p.dropUnused(h, used, inLaunch)
	h.settleDefaults(p)
	return body
}

// adopt declares a macro that the code uses as far as its declaration is certain: another spelling of a declared one, a default
// given for it, or a parent's parameter of the same name.
func (p *parse) adopt(h *header, name string) bool {
	for i := range h.params {
		if q := &h.params[i]; strings.EqualFold(q.name, name) || strings.EqualFold(strings.ReplaceAll(q.name, "_", ""), strings.ReplaceAll(name, "_", "")) {
			h.mend(p, "param_spelling")
			h.rename(q.name, name)
			return true
		}
	}
	for _, parent := range p.known.Parents {
		ph, ok := parentHeader(parent.Source)
		if !ok {
			continue
		}
		if q := ph.param(name); q != nil {
			h.mend(p, "param_from_parent")
			h.params = append(h.params, *q)
			if _, has := h.defaults[name]; !has {
				if d, ok := ph.defaults[name]; ok {
					h.defaults[name] = d
				}
			}
			return true
		}
	}
	if d, ok := h.defaults[name]; ok {
		h.mend(p, "param_from_default")
		h.params = append(h.params, param{name, yaml.MapSlice{{Key: "values", Value: []any{d}}}})
		return true
	}
	return false
}

// rename gives a parameter its spelling in the code, everywhere in the header.
func (h *header) rename(from, to string) {
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(from) + `\b`)
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return word.ReplaceAllString(v, to)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case yaml.MapSlice:
			for i := range v {
				v[i].Value = walk(v[i].Value)
			}
		}
		return v
	}
	h.param(from).name = to
	for _, l := range h.launch {
		walk(l)
	}
	walk(h.workspace)
	walk(h.tensorMaps)
	for i, c := range h.constraints {
		h.constraints[i] = word.ReplaceAllString(c, to)
	}
	if d, ok := h.defaults[from]; ok {
		delete(h.defaults, from)
		h.defaults[to] = d
	}
}

// dropUnused removes parameters that nothing uses; where a constraint names one beside others, what was meant is not certain.
func (p *parse) dropUnused(h *header, used, inLaunch map[string]bool) {
	unused := map[string]bool{}
	for _, q := range h.params {
		if _, option := q.field("option"); !option && !used[q.name] && !inLaunch[q.name] {
			unused[q.name] = true
		}
	}
	if len(unused) == 0 {
		return
	}
	var constraints []string
	for _, c := range h.constraints {
		mine, others := 0, 0
		for _, n := range identRE.FindAllString(c, -1) {
			if unused[n] {
				mine++
			} else if h.param(n) != nil {
				others++
			}
		}
		switch {
		case mine > 0 && others > 0:
			p.complain("param_unused", "the constraint %q names a parameter that the code does not use: use it in the code, or take it out of params and constraints", c)
			return
		case mine == 0:
			constraints = append(constraints, c)
		}
	}
	var params []param
	for _, q := range h.params {
		if when, ok := q.field("when"); ok && !unused[q.name] {
			for _, n := range identRE.FindAllString(flow(when), -1) {
				if unused[n] {
					p.complain("param_unused", "params.%s.when names %s, which the code does not use", q.name, n)
				}
			}
		}
		if unused[q.name] {
			delete(h.defaults, q.name)
			continue
		}
		params = append(params, q)
	}
	h.params, h.constraints = params, constraints
	h.mend(p, "param_unused")
}

// parentHeader reads the header of a structure that loads.
func parentHeader(source string) (*header, bool) {
	q := &parse{}
	text, _, found, _ := q.splitHeader(source)
	if !found {
		return nil, false
	}
	h, ok := q.decode(text)
	return h, ok
}

func mapKeys(v any) []string {
	var out []string
	if m, ok := v.(yaml.MapSlice); ok {
		for _, e := range m {
			if s, ok := e.Key.(string); ok {
				out = append(out, s)
			}
		}
	}
	sort.Strings(out)
	return out
}
