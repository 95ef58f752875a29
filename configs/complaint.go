package configs

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"ridgepoint/harness/task"
)

// complaint says of a parser's error where it is, what stands there, what was expected, and the nearest known key. Types are called
// what people call them, and a line that may hold a key is not repeated.
func complaint(name string, b []byte, err error, v any) error {
	reason, at := err.Error(), (*token.Token)(nil)
	var typed *yaml.TypeError
	var over *yaml.OverflowError
	var unknown *yaml.UnknownFieldError
	var node *yaml.UnexpectedNodeTypeError
	var general yaml.Error
	switch {
	case errors.As(err, &typed):
		reason, at = fmt.Sprintf("want %s, got %s", kindWords(typed.DstType), kindWords(typed.SrcType)), typed.Token
	case errors.As(err, &over):
		reason, at = fmt.Sprintf("%s does not fit: want %s", over.SrcNum, kindWords(over.DstType)), over.Token
	case errors.As(err, &unknown):
		reason, at = unknown.Message, unknown.Token
		if at != nil {
			reason = fmt.Sprintf("no key is called %s", at.Value)
			if secretRE.MatchString(at.Value) {
				reason += "; what is secret may not stand in a file: write key_env (NAME_OF_A_VARIABLE) or key_file (PATH)"
			} else if known := task.Nearest(at.Value, keysOf(reflect.TypeOf(v))); known != "" {
				reason += "; did you mean " + known + "?"
			}
		}
	case errors.As(err, &node):
		reason, at = fmt.Sprintf("want %s, got %s", nodeWords(node.Expected), nodeWords(node.Actual)), node.Token
	case errors.As(err, &general):
		reason, at = general.GetMessage(), general.GetToken()
	}
	if at == nil {
		at = quoted(b, reason)
	}
	if rest, ok := strings.CutPrefix(reason, "time: "); ok { // of package time
		reason = rest + ": want a number with its unit, such as 90s, 2m or 12h"
	}
	reason = masked(reason)
	if at != nil && at.Position != nil {
		name = fmt.Sprintf("%s:%d:%d", name, at.Position.Line, at.Position.Column)
		if lines := strings.Split(string(b), "\n"); at.Position.Line >= 1 && at.Position.Line <= len(lines) {
			reason += fmt.Sprintf(" in %q", masked(strings.TrimSpace(lines[at.Position.Line-1])))
		}
	}
	return fmt.Errorf("%w: %s: %s; every key is documented in configs/default.yaml", ErrConfig, name, strings.ReplaceAll(strings.TrimSpace(reason), "\n", " "))
}

// secretRE matches names under which people write keys.
var secretRE = regexp.MustCompile(`(?i)api_?-?key|^key$|token$|secret|password|authorization`)

// keyRE finds what looks like a key: the value of a name that says so, and the forms in which vendors hand keys out.
var keyRE = regexp.MustCompile(`(?i)((?:api_?-?key|\bkey|token|secret|password|authorization)["']?[ \t]*[:=][ \t]*)[^,}\n]+|\b(?:sk|pk|ghp|xox[a-z]|hf|gsk)[-_][A-Za-z0-9_-]{6,}`)

// masked is a text without what looks like a key.
func masked(s string) string { return keyRE.ReplaceAllString(s, "${1}[not shown]") }

// quoted finds the value that a message of ours quotes: errors of types that read themselves carry no place.
func quoted(b []byte, reason string) *token.Token {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil
	}
	var found *token.Token
	for _, doc := range file.Docs {
		ast.Walk(visitor(func(n ast.Node) {
			if _, scalar := n.(ast.ScalarNode); scalar && found == nil && strings.Contains(reason, fmt.Sprintf("%q", n.GetToken().Value)) {
				found = n.GetToken()
			}
		}), doc)
	}
	return found
}

type visitor func(ast.Node)

// Visit calls the function on every node.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// kindWords calls a type what a person calls it.
func kindWords(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	if t == reflect.TypeFor[time.Duration]() {
		return "a time with its unit, such as 90s"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindWords(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	default: // maps and structs
		return "keys with values"
	}
}

func nodeWords(t ast.NodeType) string {
	switch t {
	case ast.MappingType, ast.MappingValueType, ast.MappingKeyType:
		return "keys with values"
	case ast.SequenceType:
		return "a list"
	case ast.IntegerType:
		return "a whole number"
	case ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.NullType:
		return "nothing"
	default:
		return "a text"
	}
}

// keysOf are the keys that a type's YAML may have, at any depth.
func keysOf(t reflect.Type) []string {
	var keys []string
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" && key != "-" {
				keys = append(keys, key)
				walk(t.Field(i).Type)
			}
		}
	}
	walk(t)
	return keys
}
