package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"ridgepoint/scheduler"
)

// mailbox is the folder through which ctl speaks to whichever process works on a campaign, now or when it is resumed. The store
// belongs to that process alone, so a word is a file: written whole, renamed into place, removed once it is an event in the log.
type mailbox struct {
	dir      string // of the store
	campaign string
}

type word struct {
	path    string
	control *scheduler.Control
}

func (m mailbox) folder() string { return filepath.Join(m.dir, "control", m.campaign) }

// put leaves a word and returns the file that holds it.
func (m mailbox) put(c *scheduler.Control, now time.Time) (string, error) {
	c.ID = fmt.Sprintf("%020d-%s", now.UnixNano(), c.Action)
	if err := os.MkdirAll(m.folder(), 0o755); err != nil {
		return "", fmt.Errorf("make the mailbox: %w", err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", c.Action, err)
	}
	path := filepath.Join(m.folder(), c.ID+".json")
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return "", fmt.Errorf("leave a word: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return "", fmt.Errorf("leave a word: %w", err)
	}
	return path, nil
}

// words returns what was left, the oldest first.
func (m mailbox) words() ([]word, error) {
	entries, err := os.ReadDir(m.folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the mailbox: %w", err)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	var out []word
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(m.folder(), e.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the mailbox: %w", err)
		}
		var c scheduler.Control
		if err := json.Unmarshal(b, &c); err != nil {
			return nil, fmt.Errorf("%s holds no word of ctl: %w: remove it", path, err)
		}
		out = append(out, word{path, &c})
	}
	return out, nil
}
