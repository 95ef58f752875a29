package torch

import (
	"strings"
)

// The names that rewritten text uses. Dollar signs are not possible in Starlark, so they are long instead.
const (
	namePow      = "__rp_pow__"
	nameMatmul   = "__rp_matmul__"
	nameSlice    = "__rp_slice__"
	nameEllipsis = "__rp_ellipsis__"
	nameCompare  = "__rp_compare__"
)

// rewriter holds the lexemes of a text and what is to be written before, after and instead of each.
type rewriter struct {
	lex    []lexeme
	before []string
	after  []string
	text   []string
}

// rewritten is a text for Starlark with the way back to the columns of the original.
type rewritten struct {
	text string
	maps [][]span // per line
}

// span says that output columns from out on come from the input's lexeme of the given length at column in.
type span struct{ out, in, length int }

// place maps a place of the rewritten text to the original.
func (r *rewritten) place(line, column int) (int, int) {
	if line > len(r.maps) { // the closing bracket that was added: the text ends too early
		line, column = len(r.maps), 1<<20
	}
	if line < 1 {
		return line, column
	}
	in := column
	for _, s := range r.maps[line-1] {
		if s.out > column {
			break
		}
		in = s.in + min(column-s.out, max(s.length-1, 0))
	}
	return line, in
}

func rewrite(text string) (*rewritten, error) {
	lexemes, err := lex(text)
	if err != nil {
		return nil, err
	}
	w := &rewriter{lex: lexemes, before: make([]string, len(lexemes)), after: make([]string, len(lexemes)), text: make([]string, len(lexemes))}
	for i, l := range lexemes {
		w.text[i] = l.text
	}
	w.dropImports()
	for i := len(lexemes) - 1; i >= 0; i-- { // from the right: ** binds to the right
		if lexemes[i].kind == tokOp && lexemes[i].text == "**" {
			if err := w.power(i); err != nil {
				return nil, err
			}
		}
	}
	for i, l := range lexemes {
		switch {
		case l.kind != tokOp:
		case l.text == "@":
			w.text[i] = "% " + nameMatmul + " %"
		case l.text == "...":
			w.text[i] = nameEllipsis
		case l.text == "[" && w.isSubscript(i):
			w.subscript(i)
		}
	}
	return w.join(), nil
}

func (w *rewriter) join() *rewritten {
	out := &rewritten{maps: [][]span{nil}}
	var b strings.Builder
	column := 1
	put := func(text string) {
		b.WriteString(text)
		if nl := strings.LastIndexByte(text, '\n'); nl >= 0 {
			for range strings.Count(text, "\n") {
				out.maps = append(out.maps, nil)
			}
			column = len(text) - nl
			return
		}
		column += len(text)
	}
	for i, l := range w.lex {
		put(w.before[i])
		last := len(out.maps) - 1
		out.maps[last] = append(out.maps[last], span{out: column, in: l.column, length: len(l.text)})
		put(w.text[i])
		put(w.after[i])
	}
	out.text = b.String()
	return out
}

// dropImports blanks lines such as `import torch`: the module is there without them.
func (w *rewriter) dropImports() {
	start := true
	for i := 0; i < len(w.lex); i++ {
		l := w.lex[i]
		if l.kind == tokName && start && (l.text == "import" || l.text == "from") {
			for ; i < len(w.lex) && !strings.Contains(w.lex[i].text, "\n"); i++ {
				w.text[i] = ""
			}
			start = true
			continue
		}
		start = l.text == "\n" || start && l.kind == tokSpace
	}
}

// previous and following skip blanks; -1 when there is nothing.
func (w *rewriter) previous(i int) int {
	for i--; i >= 0 && w.lex[i].kind == tokSpace; i-- {
	}
	return i
}

func (w *rewriter) following(i int) int {
	for i++; i < len(w.lex) && w.lex[i].kind == tokSpace; i++ {
	}
	if i == len(w.lex) {
		return -1
	}
	return i
}

func (w *rewriter) is(i int, texts ...string) bool {
	if i < 0 || w.lex[i].kind != tokOp {
		return false
	}
	for _, t := range texts {
		if w.lex[i].text == t {
			return true
		}
	}
	return false
}

// operand reports whether a lexeme ends an operand: a name, number, string or closing bracket.
func (w *rewriter) operand(i int) bool {
	if i < 0 {
		return false
	}
	l := w.lex[i]
	if l.kind == tokName {
		return !keywords[l.text]
	}
	return l.kind == tokNumber || l.kind == tokString || w.is(i, ")", "]", "}")
}

var keywords = map[string]bool{"and": true, "or": true, "not": true, "in": true, "if": true, "else": true, "for": true, "return": true, "lambda": true,
	"def": true, "elif": true, "while": true, "pass": true, "break": true, "continue": true, "is": true}

// primaryStart returns where the operand that ends at i starts: atom with its calls, subscripts and attributes.
func (w *rewriter) primaryStart(i int) int {
	for {
		if w.lex[i].partner >= 0 {
			i = w.lex[i].partner
			if p := w.previous(i); w.operand(p) && !w.is(i, "{") {
				i = p
				continue
			}
		}
		if p := w.previous(i); w.is(p, ".") && w.operand(w.previous(p)) {
			i = w.previous(p)
			continue
		}
		return i
	}
}

// primaryEnd returns where the operand that starts at i ends, signs and a further ** included; -1 when there is none.
func (w *rewriter) primaryEnd(i int) int {
	for w.is(i, "-", "+", "~") {
		i = w.following(i)
	}
	if i < 0 {
		return -1
	}
	if w.is(i, "(", "[", "{") {
		i = w.lex[i].partner
	} else if !w.operand(i) {
		return -1
	}
	for {
		n := w.following(i)
		switch {
		case w.is(n, "(", "["):
			i = w.lex[n].partner
		case w.is(n, "."):
			if i = w.following(n); i < 0 {
				return -1
			}
		case w.is(n, "**"):
			if i = w.primaryEnd(w.following(n)); i < 0 {
				return -1
			}
			return i
		default:
			return i
		}
	}
}

// power rewrites a ** b to a call. ** before an argument (f(**d)) has no operand on its left and is left alone.
func (w *rewriter) power(i int) error {
	left := w.previous(i)
	if !w.operand(left) {
		return nil
	}
	right := w.following(i)
	end := -1
	if right >= 0 {
		end = w.primaryEnd(right)
	}
	if end < 0 {
		return &Error{Line: w.lex[i].line, Column: w.lex[i].column, Reason: "** has no right side"}
	}
	start := w.primaryStart(left)
	w.before[start] = namePow + "(" + w.before[start]
	w.text[i] = ","
	w.after[end] += ")"
	return nil
}

func (w *rewriter) isSubscript(i int) bool { return w.operand(w.previous(i)) }

// subscript rewrites the slices of x[a:b, c]: Starlark knows one slice alone in its brackets.
func (w *rewriter) subscript(open int) {
	end := w.lex[open].partner
	var commas []int
	colons := map[int]int{}
	part, depth := 0, 0
	for i := open + 1; i < end; i++ {
		switch {
		case w.is(i, "(", "[", "{"):
			depth++
		case w.is(i, ")", "]", "}"):
			depth--
		case depth > 0:
		case w.is(i, ","):
			commas = append(commas, i)
			part++
		case w.is(i, ":"):
			colons[part]++
		}
	}
	if len(commas) == 0 || len(colons) == 0 {
		return
	}
	edges := append(append([]int{open}, commas...), end)
	for p := 0; p+1 < len(edges); p++ {
		if colons[p] > 0 {
			w.slicePart(edges[p], edges[p+1])
		}
	}
}

// slicePart rewrites one a:b:c between the lexemes low and high to a call; an absent bound becomes None.
func (w *rewriter) slicePart(low, high int) {
	w.after[low] += nameSlice + "("
	depth, empty := 0, true
	for i := low + 1; i < high; i++ {
		switch {
		case w.is(i, "(", "[", "{"):
			depth++
			empty = false
		case w.is(i, ")", "]", "}"):
			depth--
		case depth == 0 && w.is(i, ":"):
			if empty {
				w.before[i] += "None"
			}
			w.text[i] = ","
			empty = true
		case w.lex[i].kind != tokSpace:
			empty = false
		}
	}
	closing := ")"
	if empty {
		closing = "None)"
	}
	w.before[high] = closing + w.before[high]
}
