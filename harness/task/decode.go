package task

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ridgepoint/configs/expr"
)

// decoder reads nodes into values and keeps the first fault. After a fault every method returns zero values, so a section
// is decoded straight through and the fault asked for once.
type decoder struct {
	file string
	err  *Error
}

func (d *decoder) fail(n *node, remedy, format string, args ...any) {
	if d.err != nil {
		return
	}
	d.err = &Error{File: d.file, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	if n != nil {
		d.err.Line, d.err.Column = n.line, n.column
	}
}

// fields hands each entry of a map to its function. An unknown key is a fault that names the nearest known key.
func (d *decoder) fields(n *node, what string, known []string, set func(name string, v *node)) {
	if !d.is(n, kindMap, what) {
		return
	}
	for _, k := range n.keys {
		if d.err != nil {
			return
		}
		if !slices.Contains(known, k.name) {
			d.fail(k.place, choose(k.name, known), "%s: key %q is not known", what, k.name)
			return
		}
		set(k.name, k.value)
	}
}

// is reports whether n is of the kind, and fails otherwise.
func (d *decoder) is(n *node, want kind, what string) bool {
	if d.err != nil {
		return false
	}
	if n == nil || n.kind != want {
		got := kindNull
		if n != nil {
			got = n.kind
		}
		d.fail(n, fmt.Sprintf("write %s", want), "%s: want %s, got %s", what, want, got)
		return false
	}
	return true
}

func (d *decoder) text(n *node, what string) string {
	if !d.is(n, kindScalar, what) {
		return ""
	}
	return n.text
}

func (d *decoder) integer(n *node, what string, low, high int64) int64 {
	if !d.is(n, kindScalar, what) {
		return 0
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || n.quoted {
		d.fail(n, "write a plain decimal number", "%s: want an int, got %q", what, n.text)
		return 0
	}
	if v < low || v > high {
		d.fail(n, fmt.Sprintf("write a number from %d to %d", low, high), "%s: %d is out of range", what, v)
		return 0
	}
	return v
}

func (d *decoder) float(n *node, what string, low, high float64) float64 {
	if !d.is(n, kindScalar, what) {
		return 0
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || n.quoted || math.IsNaN(v) || math.IsInf(v, 0) {
		d.fail(n, "write a finite number such as 1e-5", "%s: want a number, got %q", what, n.text)
		return 0
	}
	if v < low || v > high {
		d.fail(n, fmt.Sprintf("write a number from %g to %g", low, high), "%s: %g is out of range", what, v)
		return 0
	}
	return v
}

func (d *decoder) boolean(n *node, what string) bool {
	if !d.is(n, kindScalar, what) {
		return false
	}
	switch n.text {
	case "true":
		return true
	case "false":
	default:
		d.fail(n, "write true or false", "%s: want a bool, got %q", what, n.text)
	}
	return false
}

// oneOf reads a word out of a closed set.
func (d *decoder) oneOf(n *node, what string, known ...string) string {
	t := d.text(n, what)
	if d.err == nil && !slices.Contains(known, t) {
		d.fail(n, choose(t, known), "%s: %q is not known", what, t)
	}
	return t
}

var nameRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *decoder) checkName(n *node, t, what string) {
	switch {
	case d.err != nil:
	case !nameRE.MatchString(t):
		d.fail(n, "use letters, digits and _, not starting with a digit", "%s: %q is not a name", what, t)
	case reserved[t]:
		d.fail(n, "choose another name", "%s: %q is a word of C or of the expression language", what, t)
	}
}

// list reads a list of anything; a single value counts as a list of one.
func (d *decoder) list(n *node, what string) []*node {
	if d.err != nil {
		return nil
	}
	if n != nil && n.kind == kindScalar {
		return []*node{n}
	}
	if !d.is(n, kindList, what) {
		return nil
	}
	return n.items
}

func (d *decoder) texts(n *node, what string) []string {
	var out []string
	for _, item := range d.list(n, what) {
		out = append(out, d.text(item, what))
	}
	return out
}

// exprNode is an expression as written, with its place.
type exprNode struct {
	text  string
	place *node
}

// exprs reads a list of expressions. Inside `[a, b]` YAML splits at every comma, also at those within parentheses, as in
// [ceil_div(rows, WARPS)]; the pieces are joined again until their parentheses balance.
func (d *decoder) exprs(n *node, what string) []exprNode {
	items := d.list(n, what)
	var out []exprNode
	for i := 0; i < len(items) && d.err == nil; i++ {
		text := d.text(items[i], what)
		e := exprNode{text: text, place: items[i]}
		for n.flow && !items[i].quoted && depth(e.text) > 0 && i+1 < len(items) {
			i++
			e.text += ", " + d.text(items[i], what)
		}
		out = append(out, e)
	}
	return out
}

func depth(text string) int {
	return strings.Count(text, "(") + strings.Count(text, "[") - strings.Count(text, ")") - strings.Count(text, "]")
}

// parse reads an expression and checks that every name in it is known.
func (d *decoder) parse(e exprNode, what string, known []string) *expr.Expr {
	if d.err != nil {
		return nil
	}
	x, err := expr.Parse(e.text)
	if err != nil {
		d.failExpr(e, what, err)
		return nil
	}
	for _, name := range x.Names() {
		if !slices.Contains(known, name) {
			d.failAt(e, x.Column(name), choose(name, known), "%s: name %q in %q is not known here", what, name, e.text)
			return nil
		}
	}
	return x
}

// failExpr places the error of an expression in its file.
func (d *decoder) failExpr(e exprNode, what string, err error) {
	var xe *expr.Error
	if !errors.As(err, &xe) {
		d.fail(e.place, "correct the expression", "%s: %v", what, err)
		return
	}
	d.failAt(e, xe.Column, "correct the expression (Starlark: + - * / // % and or not, min, max, ceil_div, next_pow2)", "%s: %q: %s", what, xe.Source, xe.Reason)
}

func (d *decoder) failAt(e exprNode, column int, remedy, format string, args ...any) {
	n := *e.place
	if column > 0 && n.block == 0 {
		n.column += column - 1
		if n.quoted {
			n.column++
		}
	}
	d.fail(&n, remedy, format, args...)
}

func exprTexts(list []exprNode) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.text)
	}
	return out
}

// reserved are words that may name no dim, tensor, scalar or parameter.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`auto break case char const continue default do double else enum extern float for goto if inline
		int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
		and or not in lambda None True False def pass torch
		abs all any bool dict dir enumerate fail getattr hasattr hash len list max min print range repr reversed set sorted str
		tuple type zip ceil_div next_pow2 sqrt log2 log exp pow sum mean std`) {
		m[w] = true
	}
	return m
}()
