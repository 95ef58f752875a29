package llm

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"sort"
	"strings"
)

// Secret is a key. It prints as "[secret]" however it is formatted; only Reveal gives it away.
type Secret struct{ value string }

// NewSecret wraps a key; white space round it (a file's last newline) is dropped.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// Reveal returns the key, for the one header that carries it.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is no key.
func (s Secret) Empty() bool { return s.value == "" }

// String hides the key.
func (s Secret) String() string { return "[secret]" }

// GoString hides the key from %#v.
func (s Secret) GoString() string { return "[secret]" }

// MarshalText hides the key from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// minSecretBytes is the shortest key that a Scrubber removes: shorter ones would tear holes into ordinary words.
const minSecretBytes = 6

// Scrubber removes keys, also in their base64, URL-escaped and JSON-escaped forms, from anything that is logged or stored. The zero
// Scrubber removes nothing.
type Scrubber struct{ forms []string }

// NewScrubber returns a Scrubber for the given keys.
func NewScrubber(secrets ...Secret) Scrubber {
	seen := map[string]bool{}
	for _, s := range secrets {
		if len(s.value) < minSecretBytes {
			continue
		}
		quoted, _ := json.Marshal(s.value) // a string always marshals
		for _, form := range []string{s.value, url.QueryEscape(s.value), url.PathEscape(s.value), strings.Trim(string(quoted), `"`),
			strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(s.value)), "="),
			strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(s.value)), "=")} {
			seen[form] = true
		}
	}
	var sc Scrubber
	for form := range seen {
		sc.forms = append(sc.forms, form)
	}
	sort.Slice(sc.forms, func(i, j int) bool {
		if len(sc.forms[i]) != len(sc.forms[j]) {
			return len(sc.forms[i]) > len(sc.forms[j])
		}
		return sc.forms[i] < sc.forms[j]
	})
	return sc
}

// Scrub returns the text with every form of every key replaced by "[secret]".
func (s Scrubber) Scrub(text string) string {
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, "[secret]")
	}
	return text
}
