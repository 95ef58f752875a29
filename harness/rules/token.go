package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokName tokenKind = iota + 1
	tokNumber
	tokString    // with its quotes and prefix
	tokCharacter // 'c'
	tokPunct
	tokDirective // a whole preprocessor line, its continuations joined
)

// token is one piece of C, CUDA or HIP source; comments and blanks are none.
type token struct {
	kind   tokenKind
	text   string
	line   int // 1-based
	column int // 1-based, in bytes
	depth  int // of braces around it
}

// scanner walks a source text.
type scanner struct {
	text   string
	at     int
	line   int
	start  int // offset of the line's first byte
	depth  int
	fresh  bool // nothing but blanks and comments on this line so far
	tokens []token
}

// tokenize splits source into tokens. It never fails: what no compiler would take ends where the text does.
func tokenize(source string) []token {
	s := &scanner{text: source, line: 1, fresh: true}
	for s.at < len(s.text) {
		s.next()
	}
	return s.tokens
}

func (s *scanner) newline() {
	s.line++
	s.start = s.at + 1
	s.fresh = true
}

func (s *scanner) emit(kind tokenKind, n int) {
	text := s.text[s.at : s.at+n]
	if kind == tokPunct && text == "}" && s.depth > 0 {
		s.depth--
	}
	s.tokens = append(s.tokens, token{kind: kind, text: text, line: s.line, column: s.at - s.start + 1, depth: s.depth})
	if kind == tokPunct && text == "{" {
		s.depth++
	}
	s.skip(n)
	s.fresh = false
}

// skip moves on, counting lines.
func (s *scanner) skip(n int) {
	for range n {
		if s.text[s.at] == '\n' {
			s.newline()
		}
		s.at++
	}
}

func (s *scanner) next() {
	rest := s.text[s.at:]
	c := rest[0]
	switch {
	case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\n':
		s.skip(1)
	case strings.HasPrefix(rest, "\\\n") || strings.HasPrefix(rest, "\\\r\n"):
		fresh := s.fresh
		s.skip(strings.IndexByte(rest, '\n') + 1)
		s.fresh = fresh
	case strings.HasPrefix(rest, "//"):
		s.skip(lineLength(rest))
	case strings.HasPrefix(rest, "/*"):
		fresh := s.fresh
		s.skip(blockLength(rest))
		s.fresh = fresh
	case s.fresh && (c == '#' || strings.HasPrefix(rest, "%:")):
		s.directive()
	default:
		s.word(rest)
	}
}

func (s *scanner) word(rest string) {
	if n := literalLength(rest); n > 0 {
		kind := tokString
		if strings.IndexByte(rest[:n], '\'') >= 0 && strings.IndexByte(rest[:n], '"') < 0 {
			kind = tokCharacter
		}
		s.emit(kind, n)
		return
	}
	c := rest[0]
	if c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' {
		s.emit(tokNumber, numberLength(rest))
		return
	}
	if n := nameLength(rest); n > 0 {
		s.emit(tokName, n)
		return
	}
	for _, op := range []string{"<<<", ">>>", "...", "<<=", ">>=", "->*", "::", "->", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"} {
		if strings.HasPrefix(rest, op) {
			s.emit(tokPunct, len(op))
			return
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	s.emit(tokPunct, n)
}

// directive takes a preprocessor line with its continuations; comments in it become blanks.
func (s *scanner) directive() {
	t := token{kind: tokDirective, line: s.line, column: s.at - s.start + 1, depth: s.depth}
	var b strings.Builder
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		rest := s.text[s.at:]
		switch {
		case strings.HasPrefix(rest, "\\\n"), strings.HasPrefix(rest, "\\\r\n"):
			s.skip(strings.IndexByte(rest, '\n') + 1)
		case strings.HasPrefix(rest, "//"):
			s.skip(lineLength(rest))
		case strings.HasPrefix(rest, "/*"):
			b.WriteByte(' ')
			s.skip(blockLength(rest))
		default:
			n := max(literalLength(rest), 1)
			if strings.IndexByte(rest[:n], '\n') >= 0 {
				n = 1
			}
			b.WriteString(rest[:n])
			s.skip(n)
		}
	}
	t.text = strings.TrimSpace(b.String())
	if strings.HasPrefix(t.text, "%:") {
		t.text = "#" + t.text[2:]
	}
	s.tokens = append(s.tokens, t)
}

// lineLength is the length of a // comment, continuations included.
func lineLength(rest string) int {
	for i := 0; i < len(rest); i++ {
		if rest[i] == '\n' && !strings.HasSuffix(strings.TrimSuffix(rest[:i], "\r"), "\\") {
			return i
		}
	}
	return len(rest)
}

func blockLength(rest string) int {
	if i := strings.Index(rest[2:], "*/"); i >= 0 {
		return i + 4
	}
	return len(rest)
}

// literalLength is the length of a string or character literal with its prefix; 0 when there is none.
func literalLength(rest string) int {
	p := 0
	for p < len(rest) && p < 3 && strings.IndexByte("uUL8R", rest[p]) >= 0 {
		p++
	}
	if p == len(rest) || rest[p] != '"' && rest[p] != '\'' {
		return 0
	}
	if p > 0 && rest[p-1] == 'R' && rest[p] == '"' {
		return rawLength(rest, p)
	}
	quote := rest[p]
	for i := p + 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(rest)
}

// rawLength is the length of R"delimiter( ... )delimiter".
func rawLength(rest string, p int) int {
	open := strings.IndexByte(rest[p:], '(')
	if open < 0 || open > 17 {
		return p + 1
	}
	end := ")" + rest[p+1:p+open] + "\""
	if i := strings.Index(rest[p+open:], end); i >= 0 {
		return p + open + i + len(end)
	}
	return len(rest)
}

func numberLength(rest string) int {
	i := 1
	for i < len(rest) {
		c := rest[i]
		exponent := strings.IndexByte("eEpP", rest[i-1]) >= 0 && (strings.IndexByte("pP", rest[i-1]) >= 0 || !strings.HasPrefix(strings.ToLower(rest), "0x"))
		switch {
		case c == '.' || c == '_' || c == '\'' && i+1 < len(rest) && isWord(rest[i+1]) || isWord(c):
		case (c == '+' || c == '-') && exponent:
		default:
			return i
		}
		i++
	}
	return i
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func nameLength(rest string) int {
	n := 0
	for n < len(rest) {
		r, m := utf8.DecodeRuneInString(rest[n:])
		if r != '_' && r != '$' && !unicode.IsLetter(r) && !(n > 0 && unicode.IsDigit(r)) || r == utf8.RuneError {
			break
		}
		n += m
	}
	return n
}
