package configs

import (
	"fmt"
	"path/filepath"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/pool"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/blend"
)

// LLM is the campaign file's llm section: who proposes structures while the campaign runs.
type LLM struct {
	Models         []pool.Model `yaml:"models"`
	Budget         llm.Budget   `yaml:"budget"`
	Replay         string       `yaml:"replay"`
	Library        []string     `yaml:"library"`
	Blend          Blend        `yaml:"blend"`
	PromptTokens   int          `yaml:"prompt_tokens"`
	MaxDrafts      int64        `yaml:"max_drafts"`
	FeedbackSchema string       `yaml:"feedback_schema"`
	AnalystEvery   int64        `yaml:"analyst_every"`
}

// Blend is how drafts and tuning share the device: auto, off, or {fixed: SHARE}.
type Blend string

// UnmarshalYAML reads a word, or a map with the one key fixed.
func (b *Blend) UnmarshalYAML(text []byte) error {
	s := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	c, err := blend.Parse(s)
	if err != nil {
		return err
	}
	*b = Blend(c.String())
	return nil
}

// SettingsFor returns the section as the scheduler stores it; nil when nobody proposes anything. What the section leaves open the task
// says. Paths become absolute: a campaign may be resumed from elsewhere.
func (c *Campaign) SettingsFor(t *harness.Task) (*scheduler.LLMSettings, error) {
	l := &c.LLM
	s := &scheduler.LLMSettings{Pool: pool.Config{Models: l.Models, Budget: l.Budget}, Blend: string(l.Blend), PromptTokens: l.PromptTokens, MaxDrafts: l.MaxDrafts,
		Schema: l.FeedbackSchema, AnalystEvery: l.AnalystEvery}
	if s.MaxDrafts == 0 {
		s.MaxDrafts = int64(t.Agent.MaxIterations)
	}
	if s.Schema == "" {
		s.Schema = t.Agent.FeedbackSchema
	}
	for i, m := range s.Pool.Models {
		if m.Temperature == nil && t.Agent.Temperature != 0 {
			v := t.Agent.Temperature
			s.Pool.Models[i].Temperature = &v
		}
	}
	absolute := func(path string) (string, error) {
		if !filepath.IsAbs(path) && c.File != "" {
			path = filepath.Join(filepath.Dir(c.File), path)
		}
		return filepath.Abs(path)
	}
	var err error
	if l.Replay != "" {
		if s.Replay, err = absolute(l.Replay); err != nil {
			return nil, fmt.Errorf("%w: llm.replay: %w", ErrConfig, err)
		}
	}
	for _, pattern := range l.Library {
		if pattern, err = absolute(pattern); err != nil {
			return nil, fmt.Errorf("%w: llm.library: %w", ErrConfig, err)
		}
		s.Library = append(s.Library, pattern)
	}
	if !s.Active() {
		return nil, nil
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return s, nil
}
