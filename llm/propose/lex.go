package propose

import "strings"

// tokenKind is a kind of C token.
type tokenKind uint8

const (
	tokenInvalid tokenKind = iota
	tokenName
	tokenNumber
	tokenString // string and character literals
	tokenPunct
	tokenDirective // # at the start of a line; the directive's own tokens follow
	tokenComment
	tokenNewline // ends a directive
)

// token is a piece of C source.
type token struct {
	kind tokenKind
	text string
	at   int // byte offset
}

// lexed is a source cut into tokens.
type lexed struct {
	tokens []token
	open   string // "comment" or "string" when the source ends inside one
}

// lex cuts C or CUDA source into tokens. Comments are tokens; white space is not. It takes any input.
func lex(src string) lexed {
	l := &lexer{src: src, lineStart: true}
	for l.at < len(src) {
		l.next()
	}
	if l.inDirective {
		l.add(tokenNewline, len(src), len(src))
	}
	return l.out
}

type lexer struct {
	src         string
	at          int
	lineStart   bool
	inDirective bool
	out         lexed
}

func (l *lexer) add(kind tokenKind, from, to int) {
	l.out.tokens = append(l.out.tokens, token{kind, l.src[from:to], from})
	l.lineStart = l.lineStart && kind == tokenComment
	l.at = to
}

func (l *lexer) next() {
	c, rest := l.src[l.at], l.src[l.at:]
	switch {
	case c == '\n':
		if l.inDirective {
			l.add(tokenNewline, l.at, l.at+1)
			l.inDirective = false
		} else {
			l.at++
		}
		l.lineStart = true
	case c == '\\' && (strings.HasPrefix(rest, "\\\n") || strings.HasPrefix(rest, "\\\r\n")):
		l.at += strings.IndexByte(rest, '\n') + 1
	case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
		l.at++
	case strings.HasPrefix(rest, "//"):
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		l.add(tokenComment, l.at, l.at+end)
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			l.out.open = "comment"
			l.add(tokenComment, l.at, len(l.src))
			return
		}
		l.add(tokenComment, l.at, l.at+end+4)
	case c == '"' || c == '\'':
		l.literal(c)
	case isNameStart(c):
		l.add(tokenName, l.at, l.at+span(rest, isNamePart))
	case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		l.add(tokenNumber, l.at, l.at+numberLength(rest))
	case c == '#' && l.lineStart:
		l.inDirective = true
		l.add(tokenDirective, l.at, l.at+1)
	default:
		l.add(tokenPunct, l.at, l.at+punctLength(rest))
	}
}

// literal reads a string or character literal; it ends at the line's end if it is not closed.
func (l *lexer) literal(quote byte) {
	for i := l.at + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			l.add(tokenString, l.at, i+1)
			return
		case '\n':
			l.out.open = "string"
			l.add(tokenString, l.at, i)
			return
		}
	}
	l.out.open = "string"
	l.add(tokenString, l.at, len(l.src))
}

func isNameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func isNamePart(c byte) bool { return isNameStart(c) || c >= '0' && c <= '9' }

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func numberLength(s string) int {
	n := 0
	for n < len(s) && (isNamePart(s[n]) || s[n] == '.' || ((s[n] == '+' || s[n] == '-') && n > 0 && strings.IndexByte("eEpP", s[n-1]) >= 0 && !strings.HasPrefix(s, "0x"))) {
		n++
	}
	return n
}

// puncts are the operators of more than one byte, longest first.
var puncts = []string{"<<<", ">>>", "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "##"}

func punctLength(s string) int {
	for _, p := range puncts {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	return 1
}

// code returns the tokens without comments.
func (l lexed) code() []token {
	out := make([]token, 0, len(l.tokens))
	for _, t := range l.tokens {
		if t.kind != tokenComment {
			out = append(out, t)
		}
	}
	return out
}

// lineOf returns the line of a byte offset, from 1.
func lineOf(src string, at int) int { return 1 + strings.Count(src[:min(at, len(src))], "\n") }
