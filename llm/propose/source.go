package propose

import (
	"regexp"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
)

// hostIncludes are headers that device code has no use for; NVRTC and hiprtc do not find them.
var (
	hostIncludeRE = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*[<"](iostream|cstdio|cstdlib|stdio\.h|stdlib\.h|string|string\.h|cstring|vector|chrono|cassert|assert\.h|algorithm|cmath|math\.h|cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h|device_launch_parameters\.h|hip/hip_runtime\.h|torch/[^>"]*|ATen/[^>"]*|c10/[^>"]*|pybind11/[^>"]*|Python\.h)[>"][^\n]*\n?`)
	usingStdRE    = regexp.MustCompile(`(?m)^[ \t]*using[ \t]+namespace[ \t]+std[ \t]*;[ \t]*\n?`)
)

// stripHost removes host code: main, functions that launch kernels or that no kernel uses, their headers.
func (p *parse) stripHost(src string) string {
	items := topLevel(src)
	used := p.reachable(src, items)
	var cut []item
	for _, it := range items {
		switch {
		case it.kind == itemFunction && it.name == "main",
			it.kind == itemFunction && !p.known.cpu() && host(it) && !used[it.name],
			it.kind == itemOther && !p.known.cpu() && bindingRE.MatchString(src[it.from:it.to]):
			cut = append(cut, it)
		}
	}
	for i := len(cut) - 1; i >= 0; i-- {
		src = strings.TrimRight(src[:cut[i].from], " \t\n") + "\n" + strings.TrimLeft(src[cut[i].to:], " \t")
		p.repaired("host_code")
	}
	if !p.known.cpu() {
		if s := hostIncludeRE.ReplaceAllString(src, ""); s != src {
			src = usingStdRE.ReplaceAllString(s, "")
			p.repaired("host_includes")
		}
	}
	return src
}

var bindingRE = regexp.MustCompile(`^\s*(PYBIND11_MODULE|TORCH_LIBRARY)\b`)

// host says whether a function of a device file is host code: one without any specifier is.
func host(f item) bool {
	return !f.has("__global__") && !f.has("__device__") && !f.has("constexpr")
}

// reachable returns the names of the functions that entries use, directly or not.
func (p *parse) reachable(src string, items []item) map[string]bool {
	byName := map[string]item{}
	for _, it := range items {
		if it.kind == itemFunction {
			byName[it.name] = it
		}
	}
	used := map[string]bool{}
	var follow func(it item)
	follow = func(it item) {
		for _, n := range it.names {
			if g, ok := byName[n]; ok && !used[n] && n != it.name {
				used[n] = true
				follow(g)
			}
		}
	}
	for _, it := range entries(src, p.known.Target) {
		used[it.name] = true
		follow(it)
	}
	return used
}

var externCRE = regexp.MustCompile(`extern[ \t]*"C"[ \t]*`)

// linkage gives kernels the linkage that the loader needs: extern "C" on GPU targets; on cpu plain C, not static.
func (p *parse) linkage(src string) string {
	if p.known.cpu() {
		if externCRE.MatchString(src) {
			p.repaired("extern_c")
			src = dropExternC(src)
		}
		if strings.Contains(src, "<cmath>") {
			p.repaired("cmath")
			src = strings.ReplaceAll(src, "<cmath>", "<math.h>")
		}
		return src
	}
	src = p.onDevice(src)
	if regexp.MustCompile(`extern[ \t]*"C"[ \t]*\{`).MatchString(src) {
		return src
	}
	list := entries(src, p.known.Target)
	for i := len(list) - 1; i >= 0; i-- {
		f := list[i]
		if f.has(`"C"`) || f.has("template") {
			continue
		}
		p.repaired("extern_c")
		src = src[:f.from] + `extern "C" ` + src[f.from:]
	}
	return src
}

// onDevice marks functions that kernels use and that lack it as device code.
func (p *parse) onDevice(src string) string {
	items := topLevel(src)
	used := p.reachable(src, items)
	for i := len(items) - 1; i >= 0; i-- {
		f := items[i]
		if f.kind == itemFunction && used[f.name] && host(f) && !f.has("template") {
			p.repaired("device_function")
			src = src[:f.from] + "__device__ " + src[f.from:]
		}
	}
	return src
}

// dropExternC removes extern "C" from a C file: before one declaration, and round a block with the block's braces.
func dropExternC(src string) string {
	for {
		at := externCRE.FindStringIndex(src)
		if at == nil {
			return src
		}
		if !strings.HasPrefix(strings.TrimLeft(src[at[1]:], "\n"), "{") {
			src = src[:at[0]] + src[at[1]:]
			continue
		}
		brace := at[1] + strings.IndexByte(src[at[1]:], '{')
		depth, closing := 0, -1
		for _, t := range lex(src[brace:]).code() {
			switch t.text {
			case "{":
				depth++
			case "}":
				depth--
			}
			if depth == 0 {
				closing = brace + t.at
				break
			}
		}
		if closing < 0 {
			return src[:at[0]] + src[brace+1:]
		}
		src = src[:at[0]] + src[brace+1:closing] + src[closing+1:]
	}
}

// standardMacro matches names that headers or the compiler define.
var standardMacro = regexp.MustCompile(`^(_.*|NULL|INFINITY|NAN|EOF|TRUE|FALSE|GCC|STDC|FP_CONTRACT|ON|OFF|DEFAULT|HUGE_VAL\w*|I|(FLT|DBL|LDBL|INT|UINT|LONG|ULONG|LLONG|ULLONG|SHRT|USHRT|CHAR|SCHAR|UCHAR|SIZE|PTRDIFF|INTPTR|UINTPTR|M|CUDART|CUDA|HIP|WMMA|CU|FE|FP|OMP|CLOCK)_\w+|U?INT(8|16|32|64)_(MAX|MIN|C)|CHAR_BIT)$`)

var macroLikeRE = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

var typeWords = nameSet(`int unsigned signed long short char float double half auto const constexpr size_t int32_t uint32_t int64_t uint64_t bool void
typename class struct enum union static volatile register float2 float4 int2 int4 uint4 __m256 __m512 __m128 __m256i __half __half2 __restrict__ restrict`)

// freeMacros returns the names that look like macros and are used but defined nowhere in the source, in order of their first use,
// and every name that the source uses at all.
func freeMacros(src string) (free []string, used map[string]bool) {
	tokens := lex(src).code()
	defs, probes := map[string]bool{}, map[int]bool{}
	enum := 0
	for i, t := range tokens {
		switch {
		case t.kind == tokenDirective && i+2 < len(tokens):
			switch tokens[i+1].text {
			case "define", "undef":
				defs[tokens[i+2].text] = true
			case "ifdef", "ifndef":
				probes[i+2] = true
			}
			for j := i + 1; j < len(tokens) && tokens[j].kind != tokenNewline; j++ {
				if tokens[j].text == "defined" {
					probes[j+1], probes[j+2] = true, true
				}
				if tokens[i+1].text == "include" || tokens[i+1].text == "error" {
					probes[j] = true
				}
			}
		case t.text == "enum":
			for j := i + 1; j < len(tokens) && j < i+4; j++ {
				if tokens[j].text == "{" {
					enum = j
				}
			}
		case enum > 0 && i >= enum && t.text == "}":
			enum = 0
		case t.kind == tokenName && macroLikeRE.MatchString(t.text) && i > 0:
			next := ""
			if i+1 < len(tokens) {
				next = tokens[i+1].text
			}
			prev := tokens[i-1]
			declares := typeWords[prev.text] || strings.HasSuffix(prev.text, "_t") || (prev.text == "*" && i > 1 && typeWords[tokens[i-2].text])
			if (declares && strings.Contains("=;,)[({:", next) && next != "") || (enum > 0 && (prev.text == "{" || prev.text == ",")) || (prev.text == "using" && next == "=") || (prev.text == "typename" || prev.text == "class") {
				defs[t.text] = true
			}
		}
	}
	used = map[string]bool{}
	seen := map[string]bool{}
	for i, t := range tokens {
		if t.kind != tokenName || probes[i] {
			continue
		}
		used[t.text] = true
		if len(t.text) > 1 && macroLikeRE.MatchString(t.text) && !defs[t.text] && !standardMacro.MatchString(t.text) && !seen[t.text] {
			seen[t.text] = true
			free = append(free, t.text)
		}
	}
	return free, used
}

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

var hiddenRE = regexp.MustCompile(`\b(?:static|inline|__inline__|__inline)[ \t]+`)

// export makes the kernels of a C file visible to the loader.
func (p *parse) export(h *header, body string) string {
	if !p.known.cpu() {
		return body
	}
	for _, l := range h.launch {
		for _, f := range functions(body) {
			if name, _ := l[0].Value.(string); f.name != name || !(f.has("static") || f.has("inline")) {
				continue
			}
			p.repaired("static_kernel")
			open := f.from + strings.IndexByte(body[f.from:], '(')
			body = body[:f.from] + hiddenRE.ReplaceAllString(body[f.from:open], "") + body[open:]
			break
		}
	}
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

// dropOwnDefinitions removes definitions in the code that would override a parameter: #define NAME 4 outside #ifndef, const int NAME = 4.
func (p *parse) dropOwnDefinitions(h *header, body string) string {
	for _, name := range h.names() {
		q := regexp.QuoteMeta(name)
		for _, re := range []*regexp.Regexp{
			regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+` + q + `[ \t]+[-+\w.() ]+$\n?`),
			regexp.MustCompile(`(?m)^[ \t]*(?:static[ \t]+|const[ \t]+|constexpr[ \t]+|unsigned[ \t]+|int[ \t]+)+` + q + `[ \t]*=[ \t]*[-+\w.]+[ \t]*;[ \t]*\n?`),
			regexp.MustCompile(`(?m)^[ \t]*enum[ \t]*\{[ \t]*` + q + `[ \t]*=[ \t]*\w+[ \t]*\}[ \t]*;[ \t]*\n?`),
		} {
			for at := re.FindStringIndex(body); at != nil; at = re.FindStringIndex(body) {
				if guarded(body[:at[0]], name) {
					break
				}
				p.repaired("param_defined")
				body = body[:at[0]] + body[at[1]:]
				h.changed = true
			}
		}
	}
	return body
}

// guarded says whether the text ends right after #ifndef NAME.
func guarded(before, name string) bool {
	lines := strings.Split(strings.TrimRight(before, " \t\n"), "\n")
	last := strings.Join(strings.Fields(lines[len(lines)-1]), " ")
	return last == "#ifndef "+name || last == "# ifndef "+name || strings.HasPrefix(last, "#if !defined("+name)
}

// settleLaunch gives the header its launches: kernel names as the code has them, and arguments.
func (p *parse) settleLaunch(h *header, body string) {
	list := entries(body, p.known.Target)
	byName := map[string]item{}
	for _, f := range functions(body) {
		byName[f.name] = f
	}
	if len(list) == 0 && len(byName) == 0 {
		p.complain("no_kernel", "there is no kernel function in the code: send the whole file")
		return
	}
	if len(h.launch) == 0 {
		if len(list) == 1 && list[0].name == p.known.DefaultKernel {
			return // the task's default launch serves
		}
		if len(list) != 1 || !p.known.cpu() {
			p.complain("launch_missing", "the header has no launch: write kernel, args%s", map[bool]string{true: "", false: ", grid and block"}[p.known.cpu()])
			return
		}
		h.mend(p, "launch_from_code")
		h.launch = []yaml.MapSlice{{{Key: "kernel", Value: list[0].name}}}
	}
	for i := range h.launch {
		p.settleOne(h, i, list, byName)
	}
}

func (p *parse) settleOne(h *header, i int, list []item, byName map[string]item) {
	l := h.launch[i]
	at := func(key string) int {
		for j, e := range l {
			if e.Key == key {
				return j
			}
		}
		return -1
	}
	k := at("kernel")
	if k < 0 && len(list) == 1 {
		h.mend(p, "launch_from_code")
		l = append(yaml.MapSlice{{Key: "kernel", Value: list[0].name}}, l...)
		k = 0
	}
	if k < 0 {
		p.complain("launch_missing", "launch %d names no kernel", i+1)
		return
	}
	name, _ := l[k].Value.(string)
	f, ok := byName[name]
	if !ok && len(list) == 1 && len(h.launch) == 1 {
		h.mend(p, "kernel_name")
		f, ok = list[0], true
		l[k].Value = f.name
	}
	if !ok {
		p.complain("kernel_name", "launch names the kernel %s, which the code does not define; it defines %s", name, strings.Join(sortedNames(byName), ", "))
		return
	}
	a := at("args")
	switch args, certain := p.args(l, a, f); {
	case !certain:
		p.complain("launch_args", "launch of %s: its args must name, in the order of its %d parameters, some of: %s", f.name, len(f.params), strings.Join(p.known.Names, ", "))
	case a < 0:
		h.mend(p, "launch_args")
		l = append(l, yaml.MapItem{Key: "args", Value: args})
	case flow(l[a].Value) != flow(args):
		h.mend(p, "launch_args")
		l[a].Value = args
	}
	h.launch[i] = l
}

// args returns a launch's arguments: as written where they can be, else read off the kernel's parameters.
func (p *parse) args(l yaml.MapSlice, at int, f item) ([]any, bool) {
	if at >= 0 {
		list, _ := l[at].Value.([]any)
		good := len(list) > 0
		for _, e := range list {
			s, ok := e.(string)
			good = good && ok && (p.known.has(s) || p.workspaceName(s))
		}
		if good || len(p.known.Names) == 0 {
			return list, true // a wrong number of them is the compiler's or the loader's to say
		}
	}
	var byName []any
	for _, n := range f.params {
		if !p.known.has(n) {
			byName = nil
			break
		}
		byName = append(byName, n)
	}
	if len(byName) > 0 {
		return byName, true
	}
	if len(p.known.DefaultArgs) == len(f.params) && len(f.params) > 0 {
		args := make([]any, len(p.known.DefaultArgs))
		for i, n := range p.known.DefaultArgs {
			args[i] = n
		}
		return args, true
	}
	return nil, false
}

func (p *parse) workspaceName(s string) bool {
	for _, n := range p.scratch {
		if n == s {
			return true
		}
	}
	return false
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
