package propose

import (
	"fmt"
	"strings"
)

// Kind says what a draft is.
type Kind uint8

// The kinds of drafts. The zero Kind is invalid.
const (
	KindInvalid   Kind = iota
	KindStructure      // Source holds a whole structure file
	KindPoint          // Point holds one configuration of the known structure Of
)

var kindNames = [...]string{"invalid", "structure", "point"}

// String returns the kind's name as events spell it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the kind's name.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, name := range kindNames {
		if name == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("draft kind %q is not known", b)
}

// Draft is what a reply proposes.
type Draft struct {
	Kind        Kind              `json:"kind"`
	Source      string            `json:"source,omitempty"`
	Direction   string            `json:"direction,omitempty"`
	Of          string            `json:"of,omitempty"`
	Point       map[string]string `json:"point,omitempty"` // parameter: value as written
	Expectation Expectation       `json:"expectation"`
	Repairs     []string          `json:"repairs,omitempty"` // codes of what was repaired, in order
}

// Expectation is what the model says of its own draft, asked for apart from the code.
type Expectation struct {
	Change string  `json:"change,omitempty"`
	Why    string  `json:"why,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"` // expected run time over the incumbent's; 0: not said
}

// Complaint is one fault of a reply, said so that the model can mend it.
type Complaint struct {
	Code string `json:"code"`
	Line int    `json:"line,omitempty"` // of the draft's source, from 1
	Text string `json:"text"`           // what is wrong and what to send instead
}

// String returns the line and the text.
func (c Complaint) String() string {
	if c.Line > 0 {
		return fmt.Sprintf("line %d: %s", c.Line, c.Text)
	}
	return c.Text
}

// Known is what Parse may hold a reply against.
type Known struct {
	Target string   // cpu, cuda or hip
	Names  []string // tensors, scalars and dims that a launch may pass
	// DefaultKernel and DefaultArgs are the task's launch for a source without a header; empty when it has none.
	DefaultKernel string
	DefaultArgs   []string
	// Parents are the structures that the model was shown, the one to work on first.
	Parents []Parent
	// Step is what was asked for: a Repair may come as a correction of Parents[0].
	Step Step
	// CheckFunc says what is wrong with a repaired source: its header, its parameters, the task's rules. Nil checks nothing.
	CheckFunc func(source string) []Complaint
}

// Parent is a structure that the model was shown.
type Parent struct {
	Name   string
	Source string
}

// parse is one reply on its way.
type parse struct {
	known   Known
	draft   Draft
	cut     bool // the endpoint or an unclosed fence says that the end is missing
	faults  []Complaint
	scratch []string // workspaces and tensor maps that the header declares
}

func (p *parse) repaired(code string) {
	for _, r := range p.draft.Repairs {
		if r == code {
			return
		}
	}
	p.draft.Repairs = append(p.draft.Repairs, code)
}

func (p *parse) complain(code, format string, args ...any) {
	p.faults = append(p.faults, Complaint{Code: code, Text: fmt.Sprintf(format, args...)})
}

func (k Known) cpu() bool { return k.Target == "cpu" }

func (k Known) has(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	for _, n := range k.Names {
		if n == name {
			return true
		}
	}
	return false
}
