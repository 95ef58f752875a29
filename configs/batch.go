package configs

import (
	"fmt"
	"path/filepath"
	"time"
)

// Batch is a file that runs several campaigns as one night.
type Batch struct {
	Name      string       `yaml:"name"`
	Order     string       `yaml:"order"` // sequence (default) or parallel
	Deadline  *Moment      `yaml:"deadline"`
	Budget    BatchBudget  `yaml:"budget"`
	Campaigns []BatchEntry `yaml:"campaigns"`

	File string `yaml:"-"`
}

// BatchBudget is what all campaigns of a batch may use together; zero does not limit.
type BatchBudget struct {
	Wall        Duration `yaml:"wall"`
	Evaluations int64    `yaml:"evaluations"`
}

// BatchEntry is one campaign of a batch: a campaign file or a shipped one, with its share.
type BatchEntry struct {
	Campaign string      `yaml:"campaign"`
	Task     string      `yaml:"task"`   // instead of the campaign's
	Target   string      `yaml:"target"` // instead of the campaign's
	Weight   float64     `yaml:"weight"` // share of fleet, time and evaluations; default 1
	Priority int         `yaml:"priority"`
	Budget   BatchBudget `yaml:"budget"` // at most, within the batch's
}

// Moment is a point in time written as RFC 3339.
type Moment struct{ time.Time }

// UnmarshalYAML reads "2026-12-01T07:00:00+01:00".
func (m *Moment) UnmarshalYAML(b []byte) error {
	text := string(trimQuotes(b))
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("deadline %q: want date, time and zone, such as 2026-12-01T07:00:00+01:00", text)
	}
	m.Time = t
	return nil
}

func trimQuotes(b []byte) []byte {
	for len(b) > 0 && (b[0] == '"' || b[0] == '\'' || b[0] == ' ' || b[0] == '\n') {
		b = b[1:]
	}
	for len(b) > 0 {
		switch b[len(b)-1] {
		case '"', '\'', ' ', '\n':
			b = b[:len(b)-1]
		default:
			return b
		}
	}
	return b
}

// The orders of a batch.
const (
	OrderSequence = "sequence"
	OrderParallel = "parallel"
)

// LoadBatch reads a batch file and fills its defaults in. Errors wrap ErrConfig and say file, line and what to do.
func LoadBatch(file string) (*Batch, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	b := &Batch{Order: OrderSequence, File: file}
	if err := decode(file, text, b); err != nil {
		return nil, err
	}
	if b.Name == "" {
		b.Name = filepath.Base(file[:len(file)-len(filepath.Ext(file))])
	}
	bad := func(format string, args ...any) (*Batch, error) {
		return nil, fmt.Errorf("%w: %s: "+format, append([]any{ErrConfig, file}, args...)...)
	}
	if b.Order != OrderSequence && b.Order != OrderParallel {
		return bad("order %q: want sequence or parallel", b.Order)
	}
	if len(b.Campaigns) == 0 {
		return bad("no campaigns: list some, each as `- campaign: NAME`")
	}
	if b.Budget.Evaluations < 0 {
		return bad("budget.evaluations: want 0 (no limit) or more")
	}
	for i := range b.Campaigns {
		e := &b.Campaigns[i]
		switch {
		case e.Campaign == "":
			return bad("campaign %d has no name or file: write `campaign: NAME`", i+1)
		case e.Weight < 0 || e.Budget.Evaluations < 0:
			return bad("campaign %d (%s): want no negative weight or budget", i+1, e.Campaign)
		case e.Weight == 0:
			e.Weight = 1
		}
		if ext := filepath.Ext(e.Campaign); (ext == ".yaml" || ext == ".yml") && !filepath.IsAbs(e.Campaign) {
			e.Campaign = filepath.Join(filepath.Dir(file), e.Campaign)
		}
	}
	return b, nil
}
