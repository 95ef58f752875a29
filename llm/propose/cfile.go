package propose

import (
	"regexp"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// item is one thing at the top level of a C file.
type item struct {
	kind       itemKind
	name       string   // of a function
	specifiers []string // words before a function's name
	params     []string // names of a function's parameters
	from, to   int      // bytes
	names      []string // every name inside, for what it uses
}

type itemKind uint8

const (
	itemInvalid itemKind = iota
	itemDirective
	itemFunction
	itemOther // declarations, types, macros called at top level
)

func (f item) has(specifier string) bool {
	for _, s := range f.specifiers {
		if s == specifier {
			return true
		}
	}
	return false
}

// topLevel cuts a C file into its items. It follows braces, not grammar, and takes any input.
func topLevel(src string) []item {
	tokens := lex(src).code()
	var out []item
	for i := 0; i < len(tokens); {
		var it item
		it, i = nextItem(tokens, i)
		if n := len(out); it.kind == itemOther && it.to == it.from && n > 0 {
			continue
		}
		out = append(out, it)
	}
	return out
}

func nextItem(tokens []token, i int) (item, int) {
	start := tokens[i]
	if start.kind == tokenDirective {
		it := item{kind: itemDirective, from: start.at}
		for ; i < len(tokens) && tokens[i].kind != tokenNewline; i++ {
			it.to = end(tokens[i])
			if tokens[i].kind == tokenName {
				it.names = append(it.names, tokens[i].text)
			}
		}
		return it, i + 1
	}
	if start.kind == tokenNewline {
		return item{kind: itemOther, from: start.at, to: start.at}, i + 1
	}
	// extern "C" { ... }: its inside is at top level too.
	if start.text == "extern" && i+2 < len(tokens) && tokens[i+1].kind == tokenString && tokens[i+2].text == "{" {
		return item{kind: itemOther, from: start.at, to: end(tokens[i+2])}, i + 3
	}
	it := item{kind: itemOther, from: start.at}
	depth, open := 0, -1 // open: first "(" at depth 0
	for ; i < len(tokens); i++ {
		t := tokens[i]
		it.to = end(t)
		if t.kind == tokenName {
			it.names = append(it.names, t.text)
		}
		switch t.text {
		case "(", "[":
			if depth == 0 && t.text == "(" && open < 0 && i > 0 && tokens[i-1].kind == tokenName && !attribute[tokens[i-1].text] {
				open = i
				it.name = tokens[i-1].text
				it.specifiers = words(tokens, it.from, tokens[i-1].at)
			}
			depth++
		case ")", "]":
			depth--
			if depth == 0 && open >= 0 && it.params == nil {
				it.params = paramNames(tokens[open+1 : i])
			}
		case "{":
			if depth == 0 && open >= 0 && !assigned(tokens, open, i) {
				it.kind = itemFunction
			}
			depth++
		case "}":
			depth--
			if depth <= 0 {
				if it.kind == itemFunction || depth < 0 {
					return it, i + 1
				}
				if i+1 < len(tokens) && tokens[i+1].text != ";" && tokens[i+1].kind != tokenName && tokens[i+1].text != "," && tokens[i+1].text != "*" {
					return it, i + 1 // a macro's or namespace's block
				}
			}
		case ";":
			if depth == 0 {
				return it, i + 1
			}
		}
	}
	return it, i
}

// attribute are names before a "(" that do not name a function.
var attribute = nameSet("__attribute__ __launch_bounds__ __cluster_dims__ __align__ alignas _Alignas __declspec decltype sizeof")

func end(t token) int { return t.at + len(t.text) }

func words(tokens []token, from, to int) []string {
	var out []string
	for _, t := range tokens {
		if t.at >= from && t.at < to && (t.kind == tokenName || t.kind == tokenString) {
			out = append(out, t.text)
		}
	}
	return out
}

// assigned says whether "=" stands between the parentheses and the brace: an initialiser, no body.
func assigned(tokens []token, open, brace int) bool {
	depth := 0
	for _, t := range tokens[open:brace] {
		switch t.text {
		case "(":
			depth++
		case ")":
			depth--
		case "=":
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// paramNames returns the names that a parameter list declares.
func paramNames(tokens []token) []string {
	names := []string{}
	depth, last := 0, ""
	for _, t := range tokens {
		switch {
		case t.text == "(" || t.text == "[" || t.text == "{":
			depth++
		case t.text == ")" || t.text == "]" || t.text == "}":
			depth--
		case t.text == "," && depth == 0:
			names, last = append(names, last), ""
		case t.kind == tokenName && depth == 0 && !kept[t.text] && t.text != "__restrict__" && t.text != "__restrict":
			last = t.text
		}
	}
	if last != "" && last != "void" {
		names = append(names, last)
	}
	return names
}

// functions returns the functions of a file.
func functions(src string) []item {
	var out []item
	for _, it := range topLevel(src) {
		if it.kind == itemFunction {
			out = append(out, it)
		}
	}
	return out
}

// entries returns the functions that a launch may name: __global__ ones on GPU targets; in C those that are not static and that
// no other function calls, main excepted.
func entries(src, target string) []item {
	all := functions(src)
	var out []item
	for _, f := range all {
		switch {
		case target != "cpu":
			if f.has("__global__") {
				out = append(out, f)
			}
		case f.name != "main" && !f.has("inline") && !calledBy(all, f.name):
			out = append(out, f)
		}
	}
	if target == "cpu" && len(out) > 1 { // a static function that nobody calls is no entry beside one that is not static
		var public []item
		for _, f := range out {
			if !f.has("static") {
				public = append(public, f)
			}
		}
		if len(public) > 0 {
			out = public
		}
	}
	return out
}

func calledBy(all []item, name string) bool {
	for _, f := range all {
		if f.name == name || f.name == "main" {
			continue
		}
		for _, n := range f.names {
			if n == name {
				return true
			}
		}
	}
	return false
}

// balance returns how many braces, parentheses and #if are open at the end of a source. Branches of #if count once.
func balance(src string) (braces, parens, ifs int) {
	type level struct{ braces, parens int }
	var stack []level
	tokens := lex(src).code()
	for i, t := range tokens {
		switch {
		case t.kind == tokenDirective && i+1 < len(tokens):
			switch tokens[i+1].text {
			case "if", "ifdef", "ifndef":
				stack = append(stack, level{braces, parens})
			case "else", "elif":
				if n := len(stack); n > 0 {
					braces, parens = stack[n-1].braces, stack[n-1].parens
				}
			case "endif":
				if n := len(stack); n > 0 {
					stack = stack[:n-1]
				}
			}
		case t.text == "{" && t.kind == tokenPunct:
			braces++
		case t.text == "}" && t.kind == tokenPunct:
			braces--
		case t.text == "(" && t.kind == tokenPunct:
			parens++
		case t.text == ")" && t.kind == tokenPunct:
			parens--
		}
	}
	return braces, parens, len(stack)
}

var elidedREs = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\.\.\.|…).{0,40}\b(rest|existing|same|unchanged|remain|previous|code|omitted|as before|identical|other|etc)`),
	regexp.MustCompile(`(?i)\b(rest|remainder|remaining part) of (the )?(code|kernel|file|function|loop|body|implementation|structure)`),
	regexp.MustCompile(`(?i)\b(omitted|elided|abbreviated) for (brevity|clarity)|\byour code here\b|\bimplement (this|here|me)\b|\b(same|unchanged|identical) as (before|above|in the (incumbent|original|parent))\s*\.{3}`),
}

// elision returns the line and text of a comment that stands for code that was left out.
func elision(src string) (int, string, bool) {
	for _, t := range lex(src).tokens {
		if t.kind == tokenComment {
			for _, re := range elidedREs {
				if re.MatchString(t.text) && !strings.Contains(t.text, "ridgepoint\n") {
					return lineOf(src, t.at), strings.TrimSpace(strings.SplitN(t.text, "\n", 2)[0]), true
				}
			}
		}
	}
	tokens := lex(src).code()
	for i, t := range tokens {
		if t.text == "..." && i > 0 && tokens[i-1].text != "," && tokens[i-1].text != "(" && !directiveLine(src, t.at) {
			return lineOf(src, t.at), "...", true
		}
	}
	return 0, "", false
}

func directiveLine(src string, at int) bool {
	start := strings.LastIndexByte(src[:at], '\n') + 1
	return strings.HasPrefix(strings.TrimSpace(src[start:]), "#")
}
