// Package pool joins the models of a campaign: it draws one by weight for each request, holds every one to its rates and all of them
// to the budgets, counts usage and cost, and sets a failing model aside for a while.
package pool

import (
	"fmt"
	"math"
	"regexp"
	"time"

	"ridgepoint/llm"
	"ridgepoint/llm/command"
	"ridgepoint/llm/openai"
)

// Config lists the models of a campaign and what they may use.
type Config struct {
	Models []Model    `yaml:"models" json:"models,omitempty"`
	Budget llm.Budget `yaml:"budget" json:"budget"`
}

// Model is one model: an endpoint, or a command. Keys stand in the environment or in files, never here.
type Model struct {
	Name   string  `yaml:"name" json:"name"`
	For    string  `yaml:"for" json:"for,omitempty"`       // author (default) or analyst
	Weight float64 `yaml:"weight" json:"weight,omitempty"` // share among the models of the same For; 0: 1

	// An OpenAI-compatible endpoint.
	BaseURL        string            `yaml:"base_url" json:"base_url,omitempty"`
	Model          string            `yaml:"model" json:"model,omitempty"`
	KeyEnv         string            `yaml:"key_env" json:"key_env,omitempty"`
	KeyFile        string            `yaml:"key_file" json:"key_file,omitempty"`
	Headers        map[string]string `yaml:"headers" json:"headers,omitempty"`
	HeaderEnv      map[string]string `yaml:"header_env" json:"header_env,omitempty"`   // header: variable that holds its value
	Temperature    *float64          `yaml:"temperature" json:"temperature,omitempty"` // 0.2 unless set; -1: left out
	MaxTokens      int               `yaml:"max_tokens" json:"max_tokens,omitempty"`
	MaxTokensField string            `yaml:"max_tokens_field" json:"max_tokens_field,omitempty"`
	Seed           *int64            `yaml:"seed" json:"seed,omitempty"`
	Extra          map[string]any    `yaml:"extra" json:"extra,omitempty"`
	Stream         *bool             `yaml:"stream" json:"stream,omitempty"`
	StallTimeout   time.Duration     `yaml:"stall_timeout" json:"stall_timeout,omitempty"`

	// Or an external program.
	Command []string `yaml:"command" json:"command,omitempty"`
	Env     []string `yaml:"env" json:"env,omitempty"` // variables that the program may see
	Sandbox string   `yaml:"sandbox" json:"sandbox,omitempty"`
	Network bool     `yaml:"network" json:"network,omitempty"`
	Files   []string `yaml:"files" json:"files,omitempty"`

	Timeout           time.Duration `yaml:"timeout" json:"timeout,omitempty"`
	Retries           *int          `yaml:"retries" json:"retries,omitempty"`
	LimitBytes        int64         `yaml:"limit_bytes" json:"limit_bytes,omitempty"`
	RequestsPerMinute float64       `yaml:"requests_per_minute" json:"requests_per_minute,omitempty"` // 0: no limit
	TokensPerMinute   float64       `yaml:"tokens_per_minute" json:"tokens_per_minute,omitempty"`
	Price             llm.Price     `yaml:"price" json:"price"`
}

// Validate says what is wrong and what to write instead.
func (c Config) Validate() error {
	seen := map[string]bool{}
	for i, m := range c.Models {
		if m.Name == "" {
			return fmt.Errorf("llm.models[%d].name: give every model a name: records and reports use it", i)
		}
		if seen[m.Name] {
			return fmt.Errorf("llm.models: two models are named %s", m.Name)
		}
		seen[m.Name] = true
		if err := m.validate(); err != nil {
			return err
		}
	}
	return c.Budget.Validate()
}

// variableRE matches names of environment variables; pastedRE what people paste where the name of a file belongs.
var (
	variableRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	pastedRE   = regexp.MustCompile(`^(?:sk|pk|ghp|hf|gsk|xox[a-z])[-_][^./]+$|^[A-Za-z0-9_-]{32,}$`)
)

func (m Model) validate() error {
	where := "llm.models." + m.Name
	if m.For != "" && m.For != llm.Author && m.For != llm.Analyst {
		return fmt.Errorf("%s.for: %q; want author or analyst", where, m.For)
	}
	for name, v := range map[string]float64{"weight": m.Weight, "requests_per_minute": m.RequestsPerMinute, "tokens_per_minute": m.TokensPerMinute} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%s.%s: %v; want a positive number, or 0 for the default", where, name, v)
		}
	}
	if err := m.Price.Validate(); err != nil {
		return fmt.Errorf("%s.%w", where, err)
	}
	for _, name := range append(m.KeyVariables(), m.Env...) {
		if !variableRE.MatchString(name) { // it may be the key itself: it is not repeated
			return fmt.Errorf("%s: key_env, header_env and env hold names of environment variables, letters, digits and _ only; what stands there is none", where)
		}
	}
	if pastedRE.MatchString(m.KeyFile) {
		return fmt.Errorf("%s.key_file: want the path of a file that holds the key; what stands there looks like a key itself", where)
	}
	if len(m.Command) > 0 {
		if m.BaseURL != "" || m.Model != "" {
			return fmt.Errorf("%s: base_url with model, or command: not both", where)
		}
		return m.program().Validate()
	}
	if m.Sandbox != "" || m.Network || len(m.Files) > 0 {
		return fmt.Errorf("%s: sandbox, network and files are for models that are a command", where)
	}
	if m.KeyEnv != "" && m.KeyFile != "" {
		return fmt.Errorf("%s: key_env or key_file, not both", where)
	}
	return m.endpoint().Validate()
}

// KeyVariables are the names of the environment variables that hold an endpoint's keys.
func (m Model) KeyVariables() []string {
	var out []string
	if m.KeyEnv != "" {
		out = append(out, m.KeyEnv)
	}
	for _, name := range m.HeaderEnv {
		out = append(out, name)
	}
	return out
}

func (m Model) endpoint() openai.Config {
	return openai.Config{Name: m.Name, BaseURL: m.BaseURL, Model: m.Model, Temperature: m.Temperature, MaxTokens: m.MaxTokens,
		MaxTokensField: m.MaxTokensField, Seed: m.Seed, Extra: m.Extra, Headers: m.Headers, Stream: m.Stream,
		StallTimeout: m.StallTimeout, Timeout: m.Timeout, Retries: m.Retries, LimitBytes: m.LimitBytes}
}

func (m Model) program() command.Config {
	c := command.Config{Name: m.Name, Command: m.Command, Timeout: m.Timeout, LimitBytes: m.LimitBytes, Env: m.Env, Retries: 1, Sandbox: m.Sandbox, Network: m.Network, Files: m.Files}
	if m.Retries != nil {
		c.Retries = *m.Retries
	}
	return c
}

func (m Model) role() string {
	if m.For == "" {
		return llm.Author
	}
	return m.For
}

func (m Model) weight() float64 {
	if m.Weight == 0 {
		return 1
	}
	return m.Weight
}

// credentials reads the keys of an endpoint.
func (m Model) credentials(h Hooks) (openai.Credentials, error) {
	c := openai.Credentials{Headers: map[string]llm.Secret{}}
	where := "llm.models." + m.Name
	env := func(what, name string) (llm.Secret, error) {
		s := llm.NewSecret(h.EnvFunc(name))
		if s.Empty() {
			return s, fmt.Errorf("%s.%s: the environment variable %s is not set: export it before the run", where, what, name)
		}
		return s, nil
	}
	var err error
	if m.KeyEnv != "" {
		if c.Key, err = env("key_env", m.KeyEnv); err != nil {
			return c, err
		}
	}
	if m.KeyFile != "" {
		text, err := h.ReadFileFunc(m.KeyFile)
		if err != nil {
			return c, fmt.Errorf("%s.key_file: %w", where, err)
		}
		if c.Key = llm.NewSecret(string(text)); c.Key.Empty() {
			return c, fmt.Errorf("%s.key_file: %s is empty", where, m.KeyFile)
		}
	}
	for header, name := range m.HeaderEnv {
		if c.Headers[header], err = env("header_env."+header, name); err != nil {
			return c, err
		}
	}
	return c, nil
}
