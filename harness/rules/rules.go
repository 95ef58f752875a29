// Package rules checks a structure's source before anything is compiled: the task's own `forbid`, and what no kernel of a target
// may hold. It reads tokens, so words in comments and strings are nothing to it. What only verification can judge is reported
// without being refused. It is a courtesy to authors and a first fence; the sandbox and the verification are the walls.
package rules

import (
	"fmt"
	"strings"

	"ridgepoint/harness"
)

// Kernel is the rule that a launch and the function that it names fit together.
const Kernel = "kernel"

// Violation is one finding. Refuse says that the candidate ends here with the fault rules; otherwise it is a warning.
type Violation struct {
	Rule   string `json:"rule"`
	Line   int    `json:"line"` // 1-based in the structure's source
	Column int    `json:"column"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
	Refuse bool   `json:"refuse"`
}

// String returns "rule at line:column: reason; remedy".
func (v Violation) String() string {
	return fmt.Sprintf("%s at %d:%d: %s; %s", v.Rule, v.Line, v.Column, v.Reason, v.Remedy)
}

// Refused returns the first violation that refuses the candidate.
func Refused(list []Violation) (Violation, bool) {
	for _, v := range list {
		if v.Refuse {
			return v, true
		}
	}
	return Violation{}, false
}

// checker holds one source while it is checked.
type checker struct {
	task      *harness.Task
	structure *harness.Structure
	spec      harness.TargetSpec
	tokens    []token // directives apart
	lines     []token // directives
	all       []token
	linkage   []int // per token: brace depth of file level there
	found     []Violation
}

// Check returns what a structure's source breaks, in the order of the lines, at most one finding a rule and line.
func Check(t *harness.Task, s *harness.Structure) []Violation {
	c := &checker{task: t, structure: s}
	c.spec, _ = t.Target(s.Target) // a structure was loaded for a target that the task has
	c.all = tokenize(s.Source)
	for _, tok := range c.all {
		if tok.kind == tokDirective {
			c.lines = append(c.lines, tok)
		} else {
			c.tokens = append(c.tokens, tok)
		}
	}
	c.forbidden()
	c.includes()
	c.assembly()
	if s.Target == harness.TargetCPU {
		c.hostTricks()
	} else {
		c.deviceTricks()
	}
	c.globals()
	c.sizeBranches()
	c.kernels()
	c.unusedParams()
	return c.sorted()
}

func (c *checker) add(t token, refuse bool, rule, remedy, format string, args ...any) {
	for _, v := range c.found {
		if v.Rule == rule && v.Line == t.line {
			return
		}
	}
	c.found = append(c.found, Violation{Rule: rule, Line: t.line, Column: t.column, Reason: fmt.Sprintf(format, args...), Remedy: remedy, Refuse: refuse})
}

func (c *checker) sorted() []Violation {
	for i := range c.found { // a handful: insertion keeps equal lines in the order found
		for j := i; j > 0 && c.found[j].Line < c.found[j-1].Line; j-- {
			c.found[j], c.found[j-1] = c.found[j-1], c.found[j]
		}
	}
	return c.found
}

// is reports whether the token at i is one of the texts; out of range it is none.
func (c *checker) is(i int, texts ...string) bool {
	if i < 0 || i >= len(c.tokens) || c.tokens[i].kind == tokString {
		return false
	}
	for _, t := range texts {
		if c.tokens[i].text == t {
			return true
		}
	}
	return false
}

func (c *checker) isName(i int) bool {
	return i >= 0 && i < len(c.tokens) && c.tokens[i].kind == tokName
}

// closing returns the index of the bracket that closes the one at i, or the last token.
func (c *checker) closing(i int) int {
	depth := 0
	for j := i; j < len(c.tokens); j++ {
		switch {
		case c.is(j, "(", "[", "{"):
			depth++
		case c.is(j, ")", "]", "}"):
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(c.tokens) - 1
}

// forbidden looks for the task's words. A word matches the same name, and names that begin with it and go on with a capital or
// _ (cublas: cublasSgemm); several tokens, as in wmma::load, match in a row; include lines are looked through too.
func (c *checker) forbidden() {
	for _, word := range c.task.Rules.Forbid {
		parts := tokenize(word)
		if len(parts) == 0 {
			continue
		}
		for i := range c.tokens {
			if c.matches(i, parts) {
				c.add(c.tokens[i], true, "forbid", "write the kernel without it", "the task forbids %q", word)
			}
		}
		for _, l := range c.lines {
			for _, t := range tokenize(strings.TrimPrefix(l.text, "#")) {
				if len(parts) == 1 && t.kind == tokName && beginsWith(t.text, word) {
					c.add(l, true, "forbid", "write the kernel without it", "the task forbids %q", word)
				}
			}
		}
	}
}

func (c *checker) matches(i int, parts []token) bool {
	for k, p := range parts {
		if i+k >= len(c.tokens) || c.tokens[i+k].kind == tokString || c.tokens[i+k].kind == tokCharacter {
			return false
		}
		last := k == len(parts)-1
		if text := c.tokens[i+k].text; text != p.text && !(last && p.kind == tokName && beginsWith(text, p.text)) {
			return false
		}
	}
	return true
}

func beginsWith(name, word string) bool {
	if name == word {
		return true
	}
	rest, ok := strings.CutPrefix(name, word)
	return ok && (rest[0] == '_' || rest[0] >= 'A' && rest[0] <= 'Z')
}

// unusedParams warns of parameters whose macro the source never names: searching them is a waste.
func (c *checker) unusedParams() {
	for _, p := range c.structure.Params {
		if p.Option != "" || c.names(p.Name) {
			continue
		}
		used := false
		for _, l := range c.structure.Launches {
			for _, e := range append(append([]string{l.SharedBytes}, l.Grid...), l.Block...) {
				used = used || strings.Contains(e, p.Name)
			}
		}
		if !used {
			c.add(token{line: 1, column: 1}, false, "unused_parameter", "use it or drop it from params", "parameter %s occurs nowhere in the source", p.Name)
		}
	}
}

// names reports whether a name occurs in the code or in a directive.
func (c *checker) names(name string) bool {
	for _, t := range c.tokens {
		if t.kind == tokName && t.text == name {
			return true
		}
	}
	for _, l := range c.lines {
		for _, t := range tokenize(strings.TrimPrefix(l.text, "#")) {
			if t.kind == tokName && t.text == name {
				return true
			}
		}
	}
	return false
}

// Findings is Check for a judge: the reason of the first violation that refuses the candidate, "" when none does, and all
// violations as diagnoses, that one first.
func Findings(t *harness.Task, c *harness.Candidate) (reason string, findings []harness.Diagnosis) {
	list := Check(t, c.Structure)
	for _, refuse := range []bool{true, false} {
		for _, v := range list {
			if v.Refuse != refuse {
				continue
			}
			if refuse && reason == "" {
				reason = v.String()
			}
			findings = append(findings, harness.Diagnosis{Code: v.Rule, Problem: v.Reason, Direction: v.Remedy, Evidence: fmt.Sprintf("line %d", v.Line)})
		}
	}
	return reason, findings
}
