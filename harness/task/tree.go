package task

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of one YAML document. The largest shipped task file is under 4 KB.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 20_000
	maxDepth     = 32
)

type kind uint8

const (
	kindInvalid kind = iota
	kindNull
	kindScalar
	kindList
	kindMap
)

func (k kind) String() string {
	switch k {
	case kindNull:
		return "nothing"
	case kindScalar:
		return "a single value"
	case kindList:
		return "a list"
	case kindMap:
		return "a map"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// node is one YAML value with its place.
type node struct {
	kind   kind
	line   int
	column int
	text   string // of a scalar
	quoted bool   // a scalar in quotes or a block: always a string
	block  int    // for a block scalar: the line of its first line of text; else 0
	flow   bool
	items  []*node
	keys   []key
}

// key is one entry of a map.
type key struct {
	name  string
	place *node // of the key itself
	value *node
}

// get returns the value of a key of a map, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, k := range n.keys {
		if k.name == name {
			return k.value
		}
	}
	return nil
}

// parseYAML reads one YAML document. lineOffset is added to every line: the header of a structure file starts further down.
func parseYAML(file, text string, lineOffset int) (root *node, err error) {
	if len(text) > maxFileBytes {
		return nil, &Error{File: file, Reason: fmt.Sprintf("is %d bytes long", len(text)), Remedy: fmt.Sprintf("keep it under %d", maxFileBytes)}
	}
	text = strings.TrimPrefix(text, "\ufeff") // a byte order mark that some editors write
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, &Error{File: file, Reason: "is not text in UTF-8", Remedy: "give a YAML file"}
	}
	defer func() {
		if r := recover(); r != nil { // the YAML parser is not ours: what it cannot read is the file's fault, never ours to crash on
			root, err = nil, &Error{File: file, Reason: fmt.Sprintf("is not YAML that can be read: %v", r), Remedy: "simplify it, or quote the values"}
		}
	}()
	doc, perr := parser.ParseBytes([]byte(text), 0)
	if perr != nil {
		return nil, syntaxError(file, perr, lineOffset)
	}
	b := &treeBuilder{file: file, lineOffset: lineOffset, anchors: map[string]ast.Node{}}
	switch {
	case len(doc.Docs) == 0 || doc.Docs[0].Body == nil:
		return &node{kind: kindMap, line: 1 + lineOffset, column: 1}, nil
	case len(doc.Docs) > 1:
		place := b.at(doc.Docs[1].Start)
		return nil, &Error{File: file, Line: place.line, Column: place.column, Reason: "holds a second YAML document", Remedy: "keep one document a file"}
	}
	n := b.build(doc.Docs[0].Body, 0)
	if b.err != nil {
		return nil, b.err
	}
	return n, nil
}

func syntaxError(file string, err error, lineOffset int) *Error {
	out := &Error{File: file, Reason: "is not valid YAML: " + err.Error(), Remedy: "fix the YAML there"}
	var ye yaml.Error
	if errors.As(err, &ye) {
		out.Reason = "is not valid YAML: " + ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			out.Line, out.Column = t.Position.Line+lineOffset, t.Position.Column
		}
		if strings.Contains(ye.GetMessage(), "already defined") {
			out.Reason = "defines a key twice: " + ye.GetMessage()
			out.Remedy = "keep one of the two"
		}
		if strings.Contains(ye.GetMessage(), "'\t'") {
			out.Remedy = "indent with spaces, not tabs"
		}
	}
	return out
}

type treeBuilder struct {
	file       string
	lineOffset int
	count      int
	anchors    map[string]ast.Node
	err        *Error
}

func (b *treeBuilder) at(t *token.Token) *node {
	n := &node{}
	if t != nil && t.Position != nil {
		n.line, n.column = t.Position.Line+b.lineOffset, t.Position.Column
	}
	return n
}

func (b *treeBuilder) fail(n *node, reason, remedy string) *node {
	if b.err == nil {
		b.err = &Error{File: b.file, Line: n.line, Column: n.column, Reason: reason, Remedy: remedy}
	}
	n.kind = kindNull
	return n
}

func (b *treeBuilder) build(a ast.Node, depth int) *node {
	n := b.at(a.GetToken())
	b.count++
	if depth > maxDepth || b.count > maxNodes {
		return b.fail(n, "is nested too deep or holds too many values", fmt.Sprintf("stay under %d levels and %d values", maxDepth, maxNodes))
	}
	switch a := a.(type) {
	case *ast.NullNode:
		n.kind = kindNull
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = kindScalar, strings.TrimSpace(a.GetToken().Value)
	case *ast.StringNode:
		t := a.GetToken()
		n.kind, n.text = kindScalar, a.Value
		n.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		n.kind, n.text, n.quoted, n.block = kindScalar, a.Value.Value, true, n.line+1
	case *ast.SequenceNode:
		n.kind, n.flow = kindList, a.IsFlowStyle
		for _, v := range a.Values {
			n.items = append(n.items, b.build(v, depth+1))
		}
	case *ast.MappingNode:
		return b.buildMap(n, a, depth)
	case *ast.TagNode:
		return b.build(a.Value, depth+1)
	case *ast.AnchorNode:
		b.anchors[a.Name.GetToken().Value] = a.Value
		return b.build(a.Value, depth+1)
	case *ast.AliasNode:
		target, ok := b.anchors[a.Value.GetToken().Value]
		if !ok {
			return b.fail(n, fmt.Sprintf("alias *%s has no anchor before it", a.Value.GetToken().Value), "write the value out")
		}
		return b.build(target, depth+1)
	default:
		return b.fail(n, "holds a YAML form that is not used here", "write plain maps, lists and values")
	}
	return n
}

func (b *treeBuilder) buildMap(n *node, a *ast.MappingNode, depth int) *node {
	n.kind, n.flow = kindMap, a.IsFlowStyle
	if a.IsFlowStyle && a.Start != nil {
		n.line, n.column = a.Start.Position.Line+b.lineOffset, a.Start.Position.Column
	}
	for i, entry := range a.Values {
		place := b.at(entry.Key.GetToken())
		if _, ok := entry.Key.(*ast.MergeKeyNode); ok {
			return b.fail(place, "merge keys (<<) are not supported", "write the keys out")
		}
		if i == 0 && !a.IsFlowStyle {
			n.line, n.column = place.line, place.column
		}
		text, ok := scalarText(entry.Key)
		if !ok {
			return b.fail(place, "a key must be a plain word", "write `name: value`")
		}
		n.keys = append(n.keys, key{name: text, place: place, value: b.build(entry.Value, depth+1)})
	}
	return n
}

func scalarText(a ast.Node) (string, bool) {
	switch a := a.(type) {
	case *ast.StringNode:
		return a.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return a.GetToken().Value, true
	default:
		return "", false
	}
}
