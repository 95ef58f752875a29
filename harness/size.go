package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"ridgepoint/configs/expr"
)

// Dim is one named extent.
type Dim struct {
	Name  string
	Value int64
}

// Size is one assignment of a task's dims, in the task's order. In JSON it is an object with the dims in that order.
type Size []Dim

// Get returns the value of the named dim.
func (s Size) Get(name string) (int64, bool) {
	for _, d := range s {
		if d.Name == name {
			return d.Value, true
		}
	}
	return 0, false
}

// String returns "rows=128,cols=64": the size's key in records, tables and messages.
func (s Size) String() string {
	var b strings.Builder
	for i, d := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(d.Name)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(d.Value, 10))
	}
	return b.String()
}

// Equal reports whether both sizes assign the same dims the same values in the same order.
func (s Size) Equal(t Size) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Env adds the dims to env as ints and returns it; a nil env is made.
func (s Size) Env(env expr.Env) expr.Env {
	if env == nil {
		env = make(expr.Env, len(s))
	}
	for _, d := range s {
		env[d.Name] = expr.Int(d.Value)
	}
	return env
}

// MarshalJSON writes an object with the dims in order.
func (s Size) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, d := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, d.Name)
		b = append(b, ':')
		b = strconv.AppendInt(b, d.Value, 10)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads an object of ints and keeps the order of its keys.
func (s *Size) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("size: want an object of dims, got %.40s", b)
	}
	*s = nil
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fmt.Errorf("size: %w", err)
		}
		var n int64
		if err := dec.Decode(&n); err != nil {
			return fmt.Errorf("size: dim %v: want an int: %w", key, err)
		}
		*s = append(*s, Dim{Name: key.(string), Value: n})
	}
	return nil
}
