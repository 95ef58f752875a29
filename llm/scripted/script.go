// Package scripted is a chat endpoint that answers by rule and behaves as badly as real ones do: delays, storms of 429, 5xx,
// stalls, cut streams, resets, garbage, huge replies, wrong content types. It serves tests and people's own trials.
package scripted

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Script says how calls are answered: by the first rule that matches and is not used up; with 503 when none is left.
type Script struct {
	Delay time.Duration `yaml:"delay"` // before every answer, unless its rule says otherwise
	Rules []Rule        `yaml:"rules"`
}

// Rule answers the calls that it matches. Without any condition it matches every call; without Text or Files, and without a
// fault, its reply is empty.
type Rule struct {
	// Conditions: all that are given must hold.
	Contains []string `yaml:"contains"` // substrings of the messages, joined
	Matches  string   `yaml:"matches"`  // regular expression on the same
	From     int      `yaml:"from"`     // first call, counted from 1 over the whole script
	To       int      `yaml:"to"`       // last call
	Every    int      `yaml:"every"`    // only each n-th call of those that reach this rule
	Times    int      `yaml:"times"`    // used up after so many answers; 0: never

	// The answer. Files are globs relative to the script; each file is one reply, in the order given, then the rule is used up
	// unless Repeat starts it over.
	Text         string         `yaml:"text"`
	Files        []string       `yaml:"files"`
	Repeat       bool           `yaml:"repeat"`
	Delay        *time.Duration `yaml:"delay"`
	FinishReason string         `yaml:"finish_reason"` // stop unless set
	Usage        *Usage         `yaml:"usage"`         // counted from the lengths unless set
	OmitUsage    bool           `yaml:"omit_usage"`

	// Faults.
	Status      int           `yaml:"status"`      // an error status, with Body
	RetryAfter  string        `yaml:"retry_after"` // seconds or an HTTP date
	Body        string        `yaml:"body"`        // sent as it stands instead of a chat completion
	ContentType string        `yaml:"content_type"`
	HugeBytes   int64         `yaml:"huge_bytes"` // the reply is padded to this length
	ChunkBytes  int           `yaml:"chunk_bytes"`
	Gap         time.Duration `yaml:"gap"` // between chunks
	CutAfter    *int          `yaml:"cut_after"`
	StallAfter  *int          `yaml:"stall_after"` // after so many bytes of text nothing more comes, the connection stays open
	Reset       bool          `yaml:"reset"`       // the connection is reset before any answer
	OmitDone    bool          `yaml:"omit_done"`

	pattern *regexp.Regexp
	replies []string
	used    int // answers given
	reached int // calls that met the conditions
}

// Usage is the usage that a rule reports.
type Usage struct {
	PromptTokens     int `yaml:"prompt_tokens" json:"prompt_tokens"`
	CompletionTokens int `yaml:"completion_tokens" json:"completion_tokens"`
}

// Load reads a script and the reply files that it names.
func Load(path string) (*Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	var s Script
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	for i := range s.Rules {
		if err := s.Rules[i].load(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("script %s, rule %d: %w", path, i+1, err)
		}
	}
	return &s, s.Validate()
}

func (r *Rule) load(dir string) error {
	for _, glob := range r.Files {
		if !filepath.IsAbs(glob) {
			glob = filepath.Join(dir, glob)
		}
		names, err := filepath.Glob(glob)
		if err != nil {
			return fmt.Errorf("files: %s: %w", glob, err)
		}
		if len(names) == 0 {
			return fmt.Errorf("files: nothing matches %s", glob)
		}
		sort.Strings(names)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("read reply: %w", err)
			}
			r.replies = append(r.replies, string(text))
		}
	}
	return nil
}

// Validate compiles the rules' patterns and refuses rules that cannot work.
func (s *Script) Validate() error {
	if len(s.Rules) == 0 {
		return fmt.Errorf("script: no rules; write at least one, e.g. rules: [{text: hello}]")
	}
	for i := range s.Rules {
		r := &s.Rules[i]
		if r.Matches != "" {
			p, err := regexp.Compile(r.Matches)
			if err != nil {
				return fmt.Errorf("script, rule %d: matches: %w", i+1, err)
			}
			r.pattern = p
		}
		if r.From < 0 || r.To < 0 || r.Every < 0 || r.Times < 0 || (r.To > 0 && r.To < r.From) {
			return fmt.Errorf("script, rule %d: from, to, every and times are counts from 1, and to is not before from", i+1)
		}
		if len(r.replies) > 0 && r.Text != "" {
			return fmt.Errorf("script, rule %d: text or files, not both", i+1)
		}
	}
	return nil
}

// matches says whether the rule answers call n with these messages, and counts it.
func (r *Rule) matches(n int, messages string) bool {
	if (r.From > 0 && n < r.From) || (r.To > 0 && n > r.To) || (r.Times > 0 && r.used >= r.Times) {
		return false
	}
	if len(r.replies) > 0 && !r.Repeat && r.used >= len(r.replies) {
		return false
	}
	for _, s := range r.Contains {
		if !strings.Contains(messages, s) {
			return false
		}
	}
	if r.pattern != nil && !r.pattern.MatchString(messages) {
		return false
	}
	r.reached++
	if r.Every > 0 && r.reached%r.Every != 0 {
		return false
	}
	r.used++
	return true
}

// reply returns the text of the rule's latest answer.
func (r *Rule) reply() string {
	text := r.Text
	if len(r.replies) > 0 {
		text = r.replies[(r.used-1)%len(r.replies)]
	}
	if pad := r.HugeBytes - int64(len(text)); pad > 0 {
		text += strings.Repeat("all work and no play\n", int(pad/21)+1)[:pad]
	}
	return text
}
