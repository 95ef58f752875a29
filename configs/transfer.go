package configs

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"github.com/goccy/go-yaml"

	"ridgepoint/scheduler"
)

// Transfer is the campaign file's transfer key: auto, off, or a list of recordings, in which auto may stand too.
type Transfer struct {
	Auto  bool
	Files []string // as written; they may be globs
}

// UnmarshalYAML reads a word or a list.
func (t *Transfer) UnmarshalYAML(b []byte) error {
	var list []string
	if err := yaml.Unmarshal(b, &list); err != nil {
		var word string
		if err := yaml.Unmarshal(b, &word); err != nil {
			return fmt.Errorf("transfer: want auto, off, or a list of recordings such as [auto, h100.jsonl.gz]")
		}
		list = []string{word}
		if word == "off" || word == "false" { // YAML 1.1 readers take off for false
			*t = Transfer{}
			return nil
		}
	}
	out := Transfer{}
	for _, v := range list {
		switch v {
		case "auto":
			out.Auto = true
		case "", "off":
			return fmt.Errorf("transfer: %q beside others: want auto, off, or a list of recordings such as [auto, h100.jsonl.gz]", v)
		default:
			out.Files = append(out.Files, v)
		}
	}
	*t = out
	return nil
}

// MarshalYAML writes the key as it is read.
func (t Transfer) MarshalYAML() ([]byte, error) {
	switch {
	case len(t.Files) == 0 && t.Auto:
		return []byte("auto"), nil
	case len(t.Files) == 0:
		return []byte("off"), nil
	case t.Auto:
		return yaml.Marshal(append([]string{"auto"}, t.Files...))
	default:
		return yaml.Marshal(t.Files)
	}
}

// TransferSettings returns the transfer key as the scheduler stores it: globs expanded, paths absolute.
func (c *Campaign) TransferSettings() (scheduler.TransferSettings, error) {
	out := scheduler.TransferSettings{Auto: c.Transfer.Auto}
	for _, pattern := range c.Transfer.Files {
		if !filepath.IsAbs(pattern) && c.File != "" {
			pattern = filepath.Join(filepath.Dir(c.File), pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return out, fmt.Errorf("%w: transfer: %q names no file; want auto, off, or recordings as `ridgepoint brute` writes them", ErrConfig, pattern)
		}
		sort.Strings(found)
		for _, f := range found {
			abs, err := filepath.Abs(f)
			if err != nil {
				return out, fmt.Errorf("%w: transfer: %s: %w", ErrConfig, f, err)
			}
			if !slices.Contains(out.Files, abs) { // a glob may take in what is named beside it
				out.Files = append(out.Files, abs)
			}
		}
	}
	return out, nil
}
