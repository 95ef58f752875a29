package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ridgepoint/harness"
)

// smallExtent is up to where a comparison with a literal is a special case of the mathematics, not of the scored sizes.
const smallExtent = 8

// sizeBranches looks for code that asks whether a dim is one of the scored sizes: dim == 1024, switch (dim) { case 1024.
// Where hidden sizes are drawn, verification decides whether the kernel is right elsewhere; with vary: none nothing would.
func (c *checker) sizeBranches() {
	word := c.task.Rules.SizeBranching
	if word == "allow" {
		return
	}
	refuse := word == "forbid" || c.task.Vary.None
	dims := c.dimNames()
	constants := c.constants()
	for i := range c.tokens {
		if c.is(i, "switch") && c.is(i+1, "(") && c.isName(i+2) && c.is(i+3, ")") {
			c.cases(i+4, dims[c.tokens[i+2].text], refuse, constants)
			continue
		}
		if !c.is(i, "==", "!=") {
			continue
		}
		left, right := i-1, i+1
		if !c.isName(left) || dims[c.tokens[left].text] == "" {
			left, right = right, left
		}
		if left < 0 || right < 0 || left >= len(c.tokens) || right >= len(c.tokens) || !c.alone(min(left, right), max(left, right)) {
			continue
		}
		c.compare(c.tokens[left], c.tokens[right], dims, refuse, constants)
	}
}

func (c *checker) compare(name, literal token, dims map[string]string, refuse bool, constants map[string]int64) {
	dim := dims[name.text]
	v, ok := value(literal, constants)
	if dim == "" || !ok || v <= smallExtent || !slices.Contains(c.scored(dim), v) {
		return
	}
	c.add(name, refuse, "size_branch", fmt.Sprintf("handle every %s the same way, or write rules: {size_branching: allow} in the task", dim),
		"compares %s with %d, one of the scored sizes", name.text, v)
}

func (c *checker) cases(open int, dim string, refuse bool, constants map[string]int64) {
	if dim == "" || !c.is(open, "{") {
		return
	}
	for j := open; j < c.closing(open); j++ {
		if !c.is(j, "case") || j+1 >= len(c.tokens) {
			continue
		}
		if v, ok := value(c.tokens[j+1], constants); ok && v > smallExtent && slices.Contains(c.scored(dim), v) {
			c.add(c.tokens[j], refuse, "size_branch", fmt.Sprintf("handle every %s the same way, or write rules: {size_branching: allow} in the task", dim),
				"has a case for %s of %d, one of the scored sizes", dim, v)
		}
	}
}

// alone reports whether the comparison stands for itself: cols % 4 == 0 is about cols % 4.
func (c *checker) alone(from, to int) bool {
	tight := []string{"%", "*", "/", "+", "-", ".", "->", "<<", ">>", "[", "::"}
	if c.is(from-1, ".", "->", "%", "/", "+", "-", "<<", ">>", "::") {
		return false
	}
	if c.is(from-1, "*") && !c.is(from-2, "(", ",", "=", "&&", "||", "return") {
		return false
	}
	return !c.is(to+1, tight...)
}

func (c *checker) scored(dim string) []int64 {
	var out []int64
	for _, s := range c.task.ScoredSizes(c.structure.Target) {
		if v, ok := s.Get(dim); ok {
			out = append(out, v)
		}
	}
	return out
}

func value(t token, constants map[string]int64) (int64, bool) {
	if t.kind == tokName {
		v, ok := constants[t.text]
		return v, ok
	}
	if t.kind != tokNumber {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimRight(t.text, "uUlLzZ"), "'", ""), 0, 64)
	return v, err == nil
}

// constants are names with a number: #define N 4096, constexpr int N = 4096, const int N = 4096, enum { N = 4096 }.
func (c *checker) constants() map[string]int64 {
	out := map[string]int64{}
	for _, l := range c.lines {
		words := tokenize(strings.TrimSpace(strings.TrimPrefix(l.text, "#")))
		if len(words) == 3 && words[0].text == "define" {
			if v, ok := value(words[2], nil); ok {
				out[words[1].text] = v
			}
		}
	}
	for i := range c.tokens {
		if c.is(i, "=") && c.isName(i-1) && c.is(i+2, ";", ",", "}") && (c.is(i-3, "const", "constexpr", "{", ",") || c.is(i-2, "const", "constexpr", "{", ",") || c.is(i-4, "const", "constexpr")) {
			if v, ok := value(c.tokens[i+1], nil); ok {
				out[c.tokens[i-1].text] = v
			}
		}
	}
	return out
}

// dimNames maps the names by which kernels know the dims to the dims: the parameter in a dim's place, and plain copies of it.
func (c *checker) dimNames() map[string]string {
	out := map[string]string{}
	for _, l := range c.structure.Launches {
		params, ok := c.parameters(l.Kernel)
		if !ok {
			continue
		}
		for i, arg := range l.Args {
			dim, _, _ := strings.Cut(arg, ":")
			if i < len(params) && slices.Contains(c.task.Dims, dim) {
				out[params[i]] = dim
			}
		}
	}
	for range 3 { // copies of copies
		for i := range c.tokens {
			if c.is(i, "=") && c.isName(i-1) && c.isName(i+1) && c.is(i+2, ";", ",") && out[c.tokens[i+1].text] != "" {
				out[c.tokens[i-1].text] = out[c.tokens[i+1].text]
			}
		}
	}
	return out
}

// parameters returns the names of a function's parameters; false when its definition is not found or cannot be read.
func (c *checker) parameters(name string) ([]string, bool) {
	for i := range c.tokens {
		if !c.is(i, name) || !c.is(i+1, "(") {
			continue
		}
		end := c.closing(i + 1)
		if body := end + 1; !c.is(body, "{") {
			continue
		}
		var out []string
		depth, last := 0, ""
		if end == i+2 || end == i+3 && c.is(i+2, "void") {
			return nil, true
		}
		for j := i + 2; j <= end; j++ {
			switch {
			case c.is(j, "(", "[", "{", "<"):
				depth++
			case c.is(j, ">") || j < end && c.is(j, ")", "]", "}"):
				depth--
			case depth == 0 && (j == end || c.is(j, ",")):
				out = append(out, last)
				last = ""
			case depth == 0 && c.isName(j):
				last = c.tokens[j].text
			}
		}
		return out, true
	}
	return nil, false
}

// kernels checks that the functions of the launch plan are there, with as many parameters as arguments.
func (c *checker) kernels() {
	for _, l := range c.structure.Launches {
		if !c.names(l.Kernel) && !c.pastes() {
			c.add(token{line: 1, column: 1}, true, Kernel, "name a function of this file in the launch", "the file has no function %s", l.Kernel)
			continue
		}
		params, ok := c.parameters(l.Kernel)
		if ok && len(params) != len(l.Args) {
			c.add(c.definition(l.Kernel), true, Kernel, "pass exactly the kernel's parameters, in their order", "%s has %d parameters, the launch passes %d arguments (%s)",
				l.Kernel, len(params), len(l.Args), strings.Join(l.Args, ", "))
		}
		if ok && c.structure.Target != harness.TargetCPU && !c.plainName() {
			c.add(c.definition(l.Kernel), true, Kernel, "write extern \"C\" before __global__", "%s has a C++ name, by which the launch cannot find it", l.Kernel)
		}
	}
}

func (c *checker) definition(name string) token {
	for i, t := range c.tokens {
		if c.is(i, name) && c.is(i+1, "(") {
			return t
		}
	}
	return token{line: 1, column: 1}
}

// pastes reports whether names may be put together by the preprocessor.
func (c *checker) pastes() bool {
	return slices.ContainsFunc(c.lines, func(l token) bool { return strings.Contains(l.text, "##") })
}

// plainName reports whether the file has extern "C" anywhere.
func (c *checker) plainName() bool {
	for i, t := range c.tokens {
		if t.kind == tokString && t.text == `"C"` && c.is(i-1, "extern") {
			return true
		}
	}
	return slices.ContainsFunc(c.lines, func(l token) bool { return strings.Contains(l.text, `extern "C"`) })
}
