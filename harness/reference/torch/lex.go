package torch

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Python's grammar has forms that Starlark lacks: a @ b, a ** b, x[:, 0:3], x[..., 0], import lines. rewrite replaces them,
// keeps every line where it is, and remembers which column each piece came from.

type tokenKind uint8

const (
	tokSpace tokenKind = iota // blanks, comments, line ends
	tokName
	tokNumber
	tokString
	tokOp
)

type lexeme struct {
	kind    tokenKind
	text    string
	line    int // 1-based
	column  int // 1-based, in bytes
	partner int // for a bracket: index of its partner
}

// Error is a fault of a reference's text or of its evaluation.
type Error struct {
	Line   int // 1-based within the text; 0 when the fault has no place
	Column int
	Reason string
}

// Error returns the reason with line and column.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
	}
	return e.Reason
}

// lex splits text into lexemes that join to the text again.
func lex(text string) ([]lexeme, error) {
	var out []lexeme
	var open []int
	line, column := 1, 1
	for len(text) > 0 {
		kind, n := next(text)
		if n == 0 {
			return nil, &Error{Line: line, Column: column, Reason: "a string is not closed"}
		}
		l := lexeme{kind: kind, text: text[:n], line: line, column: column, partner: -1}
		if kind == tokOp && strings.ContainsAny(l.text, "([{") {
			open = append(open, len(out))
		}
		if kind == tokOp && strings.ContainsAny(l.text, ")]}") {
			if len(open) == 0 || !pairs(out[open[len(open)-1]].text, l.text) {
				return nil, &Error{Line: line, Column: column, Reason: fmt.Sprintf("%q closes nothing", l.text)}
			}
			l.partner = open[len(open)-1]
			out[l.partner].partner = len(out)
			open = open[:len(open)-1]
		}
		out = append(out, l)
		if nl := strings.LastIndexByte(l.text, '\n'); nl >= 0 {
			line += strings.Count(l.text, "\n")
			column = len(l.text) - nl
		} else {
			column += n
		}
		text = text[n:]
	}
	if len(open) > 0 {
		l := out[open[len(open)-1]]
		return nil, &Error{Line: l.line, Column: l.column, Reason: fmt.Sprintf("%q is not closed", l.text)}
	}
	return out, nil
}

func pairs(a, b string) bool {
	return a == "(" && b == ")" || a == "[" && b == "]" || a == "{" && b == "}"
}

// next returns the kind and length of the first lexeme; length 0 for a string without an end.
func next(text string) (tokenKind, int) {
	c := text[0]
	switch {
	case c == '#':
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			return tokSpace, i
		}
		return tokSpace, len(text)
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\':
		return tokSpace, 1
	case c == '"' || c == '\'':
		return tokString, stringLength(text)
	case c >= '0' && c <= '9' || c == '.' && len(text) > 1 && text[1] >= '0' && text[1] <= '9':
		return tokNumber, numberLength(text)
	}
	if r, n := utf8.DecodeRuneInString(text); r == '_' || unicode.IsLetter(r) {
		for n < len(text) {
			r, m := utf8.DecodeRuneInString(text[n:])
			if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				break
			}
			n += m
		}
		return tokName, n
	}
	for _, op := range []string{"...", "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "->"} {
		if strings.HasPrefix(text, op) {
			return tokOp, len(op)
		}
	}
	_, n := utf8.DecodeRuneInString(text)
	return tokOp, n
}

func stringLength(text string) int {
	quote := text[:1]
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && len(quote) == 1:
			return 0
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return 0
}

func numberLength(text string) int {
	i := 1
	for i < len(text) {
		c := text[i]
		exponent := (text[i-1] == 'e' || text[i-1] == 'E') && !strings.HasPrefix(text, "0x") && !strings.HasPrefix(text, "0X")
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.':
		case (c == '+' || c == '-') && exponent:
		default:
			return i
		}
		i++
	}
	return i
}
