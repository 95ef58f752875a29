// Package openai is a client of one OpenAI-compatible chat endpoint: request, stream, retries. It keeps no record, knows no
// budget and draws no model; llm/pool does. It never writes its key anywhere but into the request's header.
package openai

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"time"

	"ridgepoint/llm"
)

// Config describes one endpoint and one of its models.
type Config struct {
	Name    string `yaml:"-" json:"name"`
	BaseURL string `yaml:"base_url" json:"base_url"` // up to and without /chat/completions
	Model   string `yaml:"model" json:"model"`
	// Temperature is 0.2 unless set; a negative one is left out of the request, for models that refuse it.
	Temperature    *float64          `yaml:"temperature" json:"temperature,omitempty"`
	MaxTokens      int               `yaml:"max_tokens" json:"max_tokens,omitempty"`             // of a reply; 0: 8192
	MaxTokensField string            `yaml:"max_tokens_field" json:"max_tokens_field,omitempty"` // max_tokens or max_completion_tokens
	Seed           *int64            `yaml:"seed" json:"seed,omitempty"`
	Extra          map[string]any    `yaml:"extra" json:"extra,omitempty"`     // more fields of the request's body
	Headers        map[string]string `yaml:"headers" json:"headers,omitempty"` // never a key: see pool.Model.HeaderEnv
	Stream         *bool             `yaml:"stream" json:"stream,omitempty"`   // true unless set
	StallTimeout   time.Duration     `yaml:"stall_timeout" json:"stall_timeout,omitempty"`
	Timeout        time.Duration     `yaml:"timeout" json:"timeout,omitempty"`
	Retries        *int              `yaml:"retries" json:"retries,omitempty"` // after the first attempt
	LimitBytes     int64             `yaml:"limit_bytes" json:"limit_bytes,omitempty"`
}

// The defaults. Temperature is DESIGN.md's; a stall of two minutes is what reasoning models have been seen to think before
// the first token; 4 MB is forty times the longest reply that a 32 k token limit allows.
const (
	defaultTemperature = 0.2
	defaultMaxTokens   = 8192
	defaultStall       = 2 * time.Minute
	defaultTimeout     = 10 * time.Minute
	defaultRetries     = 5
	defaultLimitBytes  = 4 << 20
)

func (c Config) withDefaults() Config {
	if c.Temperature == nil {
		t := defaultTemperature
		c.Temperature = &t
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = defaultMaxTokens
	}
	if c.MaxTokensField == "" {
		c.MaxTokensField = "max_tokens"
	}
	if c.Stream == nil {
		on := true
		c.Stream = &on
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = defaultStall
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Retries == nil {
		n := defaultRetries
		c.Retries = &n
	}
	if c.LimitBytes == 0 {
		c.LimitBytes = defaultLimitBytes
	}
	return c
}

// ours are the body's fields that Extra may not set.
var ours = map[string]bool{"messages": true, "model": true, "stream": true, "stream_options": true, "n": true}

// secretHeader matches names of headers that carry keys; their values may not stand in a config file.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password|credential`)

// secretField matches names of body fields that carry keys; max_tokens and its like do not.
var secretField = regexp.MustCompile(`(?i)api_?-?key|^key$|secret|password|authorization|credential`)

// Validate says what is wrong with the endpoint and what to write instead.
func (c Config) Validate() error {
	where := "llm.models." + c.Name
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("%s.base_url: want http(s)://HOST/PATH, e.g. http://localhost:8000/v1", where)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s.base_url: a user, a query or a fragment may hold a key and would be stored: use key_env, key_file or header_env", where)
	case c.Model == "":
		return fmt.Errorf("%s.model: name the model that the endpoint serves", where)
	case c.MaxTokens < 0 || c.LimitBytes < 0 || c.StallTimeout < 0 || c.Timeout < 0 || (c.Retries != nil && *c.Retries < 0):
		return fmt.Errorf("%s: max_tokens, limit_bytes, stall_timeout, timeout and retries may not be negative", where)
	case c.MaxTokensField != "" && c.MaxTokensField != "max_tokens" && c.MaxTokensField != "max_completion_tokens":
		return fmt.Errorf("%s.max_tokens_field: %q; want max_tokens or max_completion_tokens", where, c.MaxTokensField)
	case c.Temperature != nil && (math.IsNaN(*c.Temperature) || *c.Temperature > 2):
		return fmt.Errorf("%s.temperature: %v; want 0 to 2, or -1 to leave it out", where, *c.Temperature)
	}
	for _, name := range sortedKeys(c.Headers) {
		if secretHeader.MatchString(name) {
			return fmt.Errorf("%s.headers.%s: a header of that name carries a key: write header_env: {%s: NAME_OF_A_VARIABLE}", where, name, name)
		}
	}
	for _, name := range sortedKeys(c.Extra) {
		if ours[name] {
			return fmt.Errorf("%s.extra.%s: this field is set by Ridgepoint itself", where, name)
		}
		if secretField.MatchString(name) {
			return fmt.Errorf("%s.extra.%s: a field of that name carries a key, and what stands in a file is stored: use key_env, key_file or header_env", where, name)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Credentials are an endpoint's keys, read from the environment or from files by the caller.
type Credentials struct {
	Key     llm.Secret            // sent as "Authorization: Bearer KEY"; may be empty
	Headers map[string]llm.Secret // more headers with secret values
}

// Secrets returns all keys, for a Scrubber.
func (c Credentials) Secrets() []llm.Secret {
	secrets := []llm.Secret{c.Key}
	for _, name := range sortedKeys(c.Headers) {
		secrets = append(secrets, c.Headers[name])
	}
	return secrets
}

func (c Config) endpoint() string { return strings.TrimRight(c.BaseURL, "/") + "/chat/completions" }
