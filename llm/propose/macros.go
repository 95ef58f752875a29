package propose

import (
	"regexp"
	"strings"
)

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
