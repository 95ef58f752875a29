package propose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

var assignRE = regexp.MustCompile("(?m)^[ \t]*(?:[-*•][ \t]+)?[`*\"]*(?:-D[ \t]*)?([A-Za-z_]\\w*)[`*\"]*[ \t]*(?:=|:|->|→)[ \t]*[`*\"]*([-+\\w.]+)[`*\",;]*[ \t]*(?:[(#/].*)?$")
var inlineRE = regexp.MustCompile(`(?:-D[ \t]*|\b)([A-Za-z_]\w*)[ \t]*=[ \t]*([-+]?[\w.]+)`)

// point reads a reply that names values of a known structure's parameters and no code: a configuration to try.
func (p *parse) point(text string, blocks []block) bool {
	texts := make([]string, 0, len(blocks)+1)
	for _, b := range blocks {
		texts = append(texts, b.text)
	}
	texts = append(texts, text)
	for _, t := range texts {
		for _, pairs := range []map[string]string{yamlPairs(t), matchPairs(assignRE, t), matchPairs(inlineRE, t)} {
			if len(pairs) > 0 && p.pointOf(pairs, text) {
				return true
			}
		}
	}
	return false
}

// yamlPairs reads a flat map in YAML or JSON, also inside one more map such as `default:` or `params:`.
func yamlPairs(text string) map[string]string {
	var v any
	t := strings.TrimSpace(text)
	if i := strings.IndexByte(t, '{'); i > 0 && strings.HasSuffix(t, "}") && !strings.Contains(t[:i], ":") {
		t = t[i:]
	}
	if yaml.UnmarshalWithOptions([]byte(t), &v, yaml.UseOrderedMap()) != nil {
		return nil
	}
	m, ok := v.(yaml.MapSlice)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, e := range m {
		switch value := e.Value.(type) {
		case yaml.MapSlice:
			for _, inner := range value {
				if s, ok := scalar(inner.Value); ok {
					out[fmt.Sprint(inner.Key)] = s
				}
			}
		default:
			if s, ok := scalar(value); ok {
				out[fmt.Sprint(e.Key)] = s
			}
		}
	}
	return out
}

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case []any:
		if len(v) == 1 {
			return scalar(v[0])
		}
		return "", false
	case yaml.MapSlice, nil:
		return "", false
	default:
		return fmt.Sprint(v), true
	}
}

func matchPairs(re *regexp.Regexp, text string) map[string]string {
	out := map[string]string{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out[m[1]] = strings.TrimRight(m[2], ".")
	}
	return out
}

// pointOf makes a point of name-value pairs if a parent has parameters of those names. The first parent with the most of them is
// meant, one that the reply names before all others. Pairs of other names (structure, score) are left out; at least one must fit, and
// every fitting value must be one of the parameter's values.
func (p *parse) pointOf(pairs map[string]string, reply string) bool {
	best, bestHits := -1, 0
	var bestHeader *header
	for i, parent := range p.known.Parents {
		h, ok := parentHeader(parent.Source)
		if !ok {
			continue
		}
		hits := 0
		for name := range pairs {
			if h.param(name) != nil {
				hits += 2
			}
		}
		if hits > 0 && mentions(reply, parent.Name) {
			hits++
		}
		if hits > bestHits {
			best, bestHits, bestHeader = i, hits, h
		}
	}
	if best < 0 {
		return false
	}
	point := map[string]string{}
	for _, name := range sortedNames(pairs) {
		q := bestHeader.param(name)
		if q == nil {
			continue
		}
		if values := q.listed(); len(values) > 0 && !contains(values, pairs[name]) {
			p.complain("point_value", "%s of %s is %s; it may be one of %v", name, p.known.Parents[best].Name, pairs[name], values)
			return true
		}
		point[name] = pairs[name]
	}
	p.draft.Kind, p.draft.Of, p.draft.Point = KindPoint, p.known.Parents[best].Name, point
	p.draft.Direction = bestHeader.direction
	return true
}

func mentions(text, name string) bool {
	return name != "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(text)
}
