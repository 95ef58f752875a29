package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Kind says which of Value's four types a Value holds.
type Kind uint8

// The kinds of a Value. The zero Kind is invalid.
const (
	KindInvalid Kind = iota
	KindInt
	KindFloat
	KindString
	KindBool
)

// String returns the kind's name as the expression language spells it.
func (k Kind) String() string {
	switch k {
	case KindInvalid:
		return "invalid"
	case KindInt:
		return "int"
	case KindFloat:
		return "float"
	case KindString:
		return "string"
	case KindBool:
		return "bool"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Value is one scalar of the expression language: an int64, a float64, a string or a bool. It is comparable with ==
// (an int and a float of the same number are different values; use Equal for numeric equality). The zero Value is
// invalid and is refused by every operation.
type Value struct {
	kind Kind
	num  int64
	real float64
	text string
}

// Int returns an integer value.
func Int(v int64) Value { return Value{kind: KindInt, num: v} }

// Float returns a floating-point value.
func Float(v float64) Value { return Value{kind: KindFloat, real: v} }

// String returns a string value.
func String(v string) Value { return Value{kind: KindString, text: v} }

// Bool returns a boolean value.
func Bool(v bool) Value {
	if v {
		return Value{kind: KindBool, num: 1}
	}
	return Value{kind: KindBool}
}

// Kind returns which type v holds.
func (v Value) Kind() Kind { return v.kind }

// IsValid reports whether v holds a value.
func (v Value) IsValid() bool { return v.kind != KindInvalid }

// AsInt returns v as an int64; ok is false unless v is an int or a float without a fraction that fits.
func (v Value) AsInt() (n int64, ok bool) {
	switch v.kind {
	case KindInt:
		return v.num, true
	case KindFloat:
		if v.real == math.Trunc(v.real) && math.Abs(v.real) < 1<<62 {
			return int64(v.real), true
		}
		return 0, false
	default:
		return 0, false
	}
}

// AsFloat returns v as a float64; ok is false unless v is a number.
func (v Value) AsFloat() (f float64, ok bool) {
	switch v.kind {
	case KindInt:
		return float64(v.num), true
	case KindFloat:
		return v.real, true
	default:
		return 0, false
	}
}

// AsBool returns v as a bool; ok is false unless v is one.
func (v Value) AsBool() (b, ok bool) { return v.num == 1, v.kind == KindBool }

// AsString returns v as a string; ok is false unless v is one.
func (v Value) AsString() (s string, ok bool) { return v.text, v.kind == KindString }

// Equal reports whether v and w are the same value, ints and floats compared as numbers.
func (v Value) Equal(w Value) bool {
	if v == w {
		return true
	}
	a, aok := v.AsFloat()
	b, bok := w.AsFloat()
	return aok && bok && a == b
}

// String returns v as it is written in an expression, except that strings are bare and bools are 0 or 1's words true
// and false. It is what a -D macro receives for ints, floats and strings.
func (v Value) String() string {
	switch v.kind {
	case KindInt:
		return strconv.FormatInt(v.num, 10)
	case KindFloat:
		return strconv.FormatFloat(v.real, 'g', -1, 64)
	case KindString:
		return v.text
	case KindBool:
		return strconv.FormatBool(v.num == 1)
	default:
		return "<invalid>"
	}
}

// MarshalJSON writes v as the JSON value of its type. A float keeps a decimal point or exponent, so that it reads back
// as a float; a non-finite float is an error, as JSON cannot hold it.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case KindInt, KindBool:
		return []byte(v.String()), nil
	case KindFloat:
		if math.IsNaN(v.real) || math.IsInf(v.real, 0) {
			return nil, fmt.Errorf("value %v cannot be written as JSON: want a finite number", v.real)
		}
		b := strconv.AppendFloat(nil, v.real, 'g', -1, 64)
		if !bytes.ContainsAny(b, ".e") {
			b = append(b, '.', '0')
		}
		return b, nil
	case KindString:
		return json.Marshal(v.text)
	default:
		return nil, fmt.Errorf("value is empty: want an int, a float, a string or a bool")
	}
}

// UnmarshalJSON reads an int, float, string or bool; anything else is an error.
func (v *Value) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return fmt.Errorf("value is empty: want an int, a float, a string or a bool")
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*v = String(s)
	case string(b) == "true":
		*v = Bool(true)
	case string(b) == "false":
		*v = Bool(false)
	case bytes.ContainsAny(b, ".eE"):
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf("value %s: want a finite number", b)
		}
		*v = Float(f)
	default:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return fmt.Errorf("value %.40s: want an int of 64 bits, a float, a string or a bool", b)
		}
		*v = Int(n)
	}
	return nil
}
