package propose

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
)

// header is the YAML of a structure file, in a form that is easy to mend.
type header struct {
	direction   string
	launch      []yaml.MapSlice
	workspace   any
	tensorMaps  any
	requires    any
	params      []param
	constraints []string
	defaults    map[string]any
	changed     bool // it must be written anew
}

type param struct {
	name string
	decl yaml.MapSlice
}

var (
	headerOpenRE = regexp.MustCompile(`(?i)/\*[*!]?[\s*]*ridgepoint\b[:\-]*`)
	headerLineRE = regexp.MustCompile(`(?im)^[ \t]*//[/!]?[ \t]*ridgepoint\b.*\n(?:[ \t]*//.*\n?)+`)
	headerExact  = regexp.MustCompile(`/\*[ \t]*ridgepoint[ \t]*\n`)
	frontRE      = regexp.MustCompile(`(?s)\A\s*---[ \t]*(?:ridgepoint)?\n(.*?)\n---[ \t]*\n`)
	headerKeyRE  = regexp.MustCompile(`(?im)^[ \t*]*"?(launch|launches|params|parameters|default|defaults|tunables)"?[ \t]*:`)
	commentRE    = regexp.MustCompile(`(?s)/\*.*?\*/`)
	codeStartRE  = regexp.MustCompile(`(?m)^(#[ \t]*(include|define|pragma|if)|extern\b|static\b|void\b|__global__|__device__|template[ \t]*<|typedef\b|inline\b|float\b|int\b|struct\b|const\b)`)
)

// splitHeader takes the header's YAML out of a source. exact says that it stands as a structure file has it.
func (p *parse) splitHeader(src string) (head, body string, found, exact bool) {
	if at := headerOpenRE.FindStringIndex(src); at != nil {
		rest := src[at[1]:]
		closed := strings.Index(rest, "*/")
		code := codeStartRE.FindStringIndex(rest)
		if closed < 0 || (code != nil && code[0] < closed) {
			p.repaired("header_unclosed")
			if code == nil {
				return rest, src[:at[0]], true, false
			}
			return rest[:code[0]], src[:at[0]] + rest[code[0]:], true, false
		}
		return rest[:closed], src[:at[0]] + strings.TrimLeft(rest[closed+2:], "\n"), true, headerExact.FindStringIndex(src[at[0]:]) != nil
	}
	if at := headerLineRE.FindStringIndex(src); at != nil {
		p.repaired("header_line_comments")
		var lines []string
		for _, line := range strings.Split(strings.TrimRight(src[at[0]:at[1]], "\n"), "\n")[1:] {
			line = strings.TrimLeft(strings.TrimLeft(line, " \t"), "/!")
			lines = append(lines, strings.TrimPrefix(line, " "))
		}
		return strings.Join(lines, "\n"), src[:at[0]] + src[at[1]:], true, false
	}
	if m := frontRE.FindStringSubmatchIndex(src); m != nil && headerKeyRE.MatchString(src[m[2]:m[3]]) {
		p.repaired("header_front_matter")
		return src[m[2]:m[3]], src[m[1]:], true, false
	}
	for _, at := range commentRE.FindAllStringIndex(src, -1) {
		if inner := src[at[0]+2 : at[1]-2]; len(headerKeyRE.FindAllString(inner, 2)) == 2 {
			p.repaired("header_untagged")
			return inner, src[:at[0]] + strings.TrimLeft(src[at[1]:], "\n"), true, false
		}
	}
	return "", src, false, false
}

// alias maps other spellings of the header's keys to the right ones.
var alias = map[string]string{
	"parameters": "params", "param": "params", "tunables": "params", "tunable": "params", "tunable_params": "params", "tunable_parameters": "params", "tuning": "params",
	"defaults": "default", "default_config": "default", "default_params": "default", "launches": "launch", "kernel_launch": "launch",
	"constraint": "constraints", "restrictions": "constraints", "idea": "direction", "approach": "direction",
	"workspaces": "workspace", "scratch": "workspace", "tensormaps": "tensor_maps", "tensormap": "tensor_maps",
}

var launchAlias = map[string]string{
	"name": "kernel", "function": "kernel", "entry": "kernel", "arguments": "args", "params": "args", "block_size": "block", "blockdim": "block", "threads": "block",
	"block_dim": "block", "griddim": "grid", "grid_dim": "grid", "grid_size": "grid", "blocks": "grid", "shared": "shared_bytes", "smem": "shared_bytes", "shared_mem": "shared_bytes",
	"shared_memory": "shared_bytes", "dynamic_smem": "shared_bytes", "smem_bytes": "shared_bytes", "dynamic_shared": "shared_bytes",
}

var (
	headerKeys = nameSet("direction launch workspace tensor_maps requires params constraints default")
	launchKeys = nameSet("kernel grid block shared_bytes cluster cooperative args")
	paramKeys  = nameSet("type values min max step log when option")
)

// decode reads a header's YAML, mending its text as far as needed. On failure it complains.
func (p *parse) decode(text string) (*header, bool) {
	var root yaml.MapSlice
	var err error
	for i, version := range mendings(text) {
		var v any
		if e := yaml.UnmarshalWithOptions([]byte(version.text), &v, yaml.UseOrderedMap()); e != nil {
			if i == 0 {
				err = e
			}
			continue
		}
		m, ok := v.(yaml.MapSlice)
		if !ok || !known(m) {
			continue
		}
		root = unnest(m)
		if len(root) != len(m) {
			p.repaired("header_nested")
		}
		if version.code != "" {
			p.repaired(version.code)
		}
		return p.build(root, i > 0 || len(root) != len(m))
	}
	reason := "it is not a map with launch, params and default"
	if err != nil {
		reason = strings.SplitN(err.Error(), "\n", 2)[0]
	}
	p.complain("header_syntax", "the header's YAML cannot be read: %s. Send it as in the example, with spaces for indentation", reason)
	return nil, false
}

// known says whether a map has any key of a header.
func known(m yaml.MapSlice) bool {
	for _, e := range unnest(m) {
		if headerKeys[headerKey(fmt.Sprint(e.Key))] {
			return true
		}
	}
	return false
}

// unnest takes the inside of a single `ridgepoint:` key.
func unnest(m yaml.MapSlice) yaml.MapSlice {
	if len(m) == 1 && strings.EqualFold(fmt.Sprint(m[0].Key), "ridgepoint") {
		if inner, ok := m[0].Value.(yaml.MapSlice); ok {
			return inner
		}
	}
	return m
}

func headerKey(k string) string {
	k = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(k)), "-", "_")
	if a, ok := alias[k]; ok {
		return a
	}
	return k
}

type mending struct{ code, text string }

var (
	starRE     = regexp.MustCompile(`(?m)^[ \t]*\*(?: |$)`)
	slashRE    = regexp.MustCompile(`(?m)^[ \t]*//[ ]?`)
	spaceRE    = regexp.MustCompile(`([A-Za-z_]\w*):([\[{])`)
	keyRE      = regexp.MustCompile(`(?m)^(\s*(?:- )?(?:direction|launch|params|default|constraints|kernel|grid|block|shared_bytes|args|values|workspace|type|min|max|step))[ \t]*[:=][ \t]*(\S)`)
	pythonRE   = regexp.MustCompile(`\b(True|False|None)\b`)
	trailingRE = regexp.MustCompile(`,(\s*)(\n|$)`)
	jsonTailRE = regexp.MustCompile(`,(\s*[\]}])`)
	lineKeyRE  = regexp.MustCompile(`^\s*(?:- )?["\w]+\s*:`)
)

// mendings returns the text of a header as it is, and then with more and more mended.
func mendings(text string) []mending {
	text = strings.Trim(text, "\n")
	out := []mending{{"", dedent(text)}}
	add := func(code, t string) { out = append(out, mending{code, dedent(t)}) }
	if strings.Contains(text, "\t") {
		text = strings.ReplaceAll(text, "\t", "  ")
		add("header_tabs", text)
	}
	if starRE.MatchString(text) {
		text = starRE.ReplaceAllString(text, "")
		add("header_stars", text)
	}
	if slashRE.MatchString(text) {
		text = slashRE.ReplaceAllString(text, "")
		add("header_slashes", text)
	}
	text = jsonTailRE.ReplaceAllString(text, "$1")
	add("header_trailing_comma", text)
	text = keyRE.ReplaceAllString(spaceRE.ReplaceAllString(text, "$1: $2"), "$1: $2")
	add("header_colons", text)
	text = pythonRE.ReplaceAllStringFunc(text, func(s string) string {
		return map[string]string{"True": "true", "False": "false", "None": "null"}[s]
	})
	text = closeBrackets(text)
	add("header_brackets", text)
	add("header_trailing_comma", trailingRE.ReplaceAllString(text, "$1$2"))
	return out
}

// closeBrackets closes brackets that a line leaves open although the next line begins a new key.
func closeBrackets(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i+1 < len(lines) && !lineKeyRE.MatchString(lines[i+1]) {
			continue
		}
		var open []byte
		quote := byte(0)
		for j := range len(line) {
			switch c := line[j]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '[':
				open = append(open, ']')
			case c == '{':
				open = append(open, '}')
			case (c == ']' || c == '}') && len(open) > 0:
				open = open[:len(open)-1]
			}
		}
		for j := len(open) - 1; j >= 0; j-- {
			lines[i] += string(open[j])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// build reads the fields of a header.
func (p *parse) build(root yaml.MapSlice, changed bool) (*header, bool) {
	h := &header{defaults: map[string]any{}, changed: changed}
	for _, e := range root {
		written := fmt.Sprint(e.Key)
		key := headerKey(written)
		if key != written {
			h.mend(p, "header_keys")
		}
		switch key {
		case "direction":
			h.setDirection(p, fmt.Sprint(e.Value))
		case "launch":
			h.readLaunch(p, e.Value)
		case "workspace":
			h.workspace = e.Value
		case "tensor_maps":
			h.tensorMaps = e.Value
		case "requires":
			h.requires = e.Value
		case "params":
			h.readParams(p, e.Value)
		case "constraints":
			h.readConstraints(p, e.Value)
		case "default":
			h.readDefaults(p, e.Value)
		default:
			h.mend(p, "header_extra_keys")
		}
	}
	return h, len(p.faults) == 0
}

func (h *header) mend(p *parse, code string) {
	h.changed = true
	p.repaired(code)
}

var notNameRE = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

func (h *header) setDirection(p *parse, s string) {
	name := directionName(s)
	if name != s {
		h.mend(p, "direction_name")
	}
	h.direction = name
}

// directionName makes a name of up to 64 letters, digits, "_", "-" and "." of any words.
func directionName(s string) string {
	name := strings.Trim(notNameRE.ReplaceAllString(strings.TrimSpace(s), "-"), "-.")
	if len(name) > 64 {
		name = strings.Trim(name[:64], "-.")
	}
	return name
}

func (h *header) readLaunch(p *parse, v any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		h.launch = append(h.launch, h.oneLaunch(p, v))
	case string:
		h.mend(p, "launch_form")
		h.launch = append(h.launch, yaml.MapSlice{{Key: "kernel", Value: v}})
	case []any:
		for _, e := range v {
			switch e := e.(type) {
			case yaml.MapSlice:
				h.launch = append(h.launch, h.oneLaunch(p, e))
			case string:
				h.mend(p, "launch_form")
				h.launch = append(h.launch, yaml.MapSlice{{Key: "kernel", Value: e}})
			default:
				p.complain("header_field", "launch: each entry is a map with kernel and args")
			}
		}
	case nil:
	default:
		p.complain("header_field", "launch: want a list of maps with kernel and args")
	}
}

func (h *header) oneLaunch(p *parse, m yaml.MapSlice) yaml.MapSlice {
	if len(m) == 1 && !launchKeys[fmt.Sprint(m[0].Key)] && launchAlias[strings.ToLower(fmt.Sprint(m[0].Key))] == "" {
		if inner, ok := m[0].Value.(yaml.MapSlice); ok { // the kernel's name as key
			h.mend(p, "launch_form")
			m = append(yaml.MapSlice{{Key: "kernel", Value: m[0].Key}}, inner...)
		}
	}
	var out yaml.MapSlice
	for _, e := range m {
		written := fmt.Sprint(e.Key)
		key := strings.ToLower(written)
		if a, ok := launchAlias[key]; ok {
			key = a
		}
		if key != written {
			h.mend(p, "launch_keys")
		}
		switch {
		case !launchKeys[key]:
			h.mend(p, "launch_extra_keys")
			continue
		case p.known.cpu() && key != "kernel" && key != "args":
			h.mend(p, "launch_gpu_fields")
			continue
		case key == "grid" || key == "block" || key == "args":
			if s, ok := e.Value.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "(") {
				e.Value = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(s), "("), ")")
				h.mend(p, "launch_lists")
			}
			if _, list := e.Value.([]any); !list {
				h.mend(p, "launch_lists")
				e.Value = splitList(e.Value)
			}
		}
		out = append(out, yaml.MapItem{Key: key, Value: e.Value})
	}
	return out
}

// splitList makes a list of a scalar: "a, b" is two entries unless the comma is inside parentheses.
func splitList(v any) []any {
	s, ok := v.(string)
	if !ok {
		return []any{v}
	}
	var out []any
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

func (h *header) readConstraints(p *parse, v any) {
	list, ok := v.([]any)
	if !ok {
		if v == nil {
			return
		}
		list = []any{v}
		h.mend(p, "constraints_list")
	}
	for _, e := range list {
		if m, ok := e.(yaml.MapSlice); ok && len(m) == 1 {
			e = m[0].Value
			h.mend(p, "constraints_list")
		}
		s := fmt.Sprint(e)
		if python := cOperators(s); python != s {
			h.mend(p, "constraint_operators")
			s = python
		}
		h.constraints = append(h.constraints, s)
	}
}

var notRE = regexp.MustCompile(`!([^=])`)

// cOperators writes C's logical operators as the expression language has them.
func cOperators(s string) string {
	s = strings.NewReplacer("&&", " and ", "||", " or ").Replace(s)
	s = notRE.ReplaceAllString(s, "not $1")
	return strings.Join(strings.Fields(s), " ")
}

func (h *header) readDefaults(p *parse, v any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, e := range v {
			h.defaults[fmt.Sprint(e.Key)] = e.Value
		}
	case []any: // [{A: 1}, {B: 2}]
		for _, e := range v {
			m, ok := e.(yaml.MapSlice)
			if !ok {
				p.complain("header_field", "default: want a map of every parameter to its value, e.g. {TILE: 32}")
				return
			}
			for _, x := range m {
				h.defaults[fmt.Sprint(x.Key)] = x.Value
			}
		}
		h.mend(p, "default_form")
	case nil:
	default:
		p.complain("header_field", "default: want a map of every parameter to its value, e.g. {TILE: 32}")
	}
}

func (h *header) param(name string) *param {
	for i := range h.params {
		if h.params[i].name == name {
			return &h.params[i]
		}
	}
	return nil
}

func (h *header) names() []string {
	out := make([]string, len(h.params))
	for i := range h.params {
		out[i] = h.params[i].name
	}
	return out
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
