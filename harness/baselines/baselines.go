// Package baselines keeps what a task's baseline took on a device: a registry on disk by task, device and driver. Beside the
// textbook kernel's times stand those of external baselines, commands of the person's that print microseconds a size. What is
// kept serves progress lines and readers; nothing is won against it, since every confirmation measures the baseline anew.
package baselines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ridgepoint/harness"
)

// Key names what an entry is about.
type Key struct {
	Task   string         `json:"task"`        // its name
	Digest string         `json:"task_digest"` // and its contents
	Target harness.Target `json:"target"`
	Arch   string         `json:"arch"`
	Device string         `json:"device"` // its name and, where it has one, its id
	Driver string         `json:"driver"`
}

// KeyOf returns the key of a report's baseline.
func KeyOf(t *harness.Task, r *harness.Report) Key {
	return Key{Task: t.Name, Digest: t.Digest, Target: r.Target, Arch: r.Arch, Device: strings.TrimSpace(r.Environment.Device + " " + r.Environment.DeviceID), Driver: r.Environment.Driver}
}

func (k Key) file() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Digest, k.Target.String(), k.Arch, k.Device, k.Driver}, "\x00")))
	return hex.EncodeToString(sum[:12]) + ".json"
}

// Time is what one size took, in microseconds.
type Time struct {
	Size     harness.Size `json:"size"`
	MedianUS float64      `json:"median_us"`
}

// Measured are times with when they were taken.
type Measured struct {
	Times []Time    `json:"times"`
	At    time.Time `json:"at"`
}

// Of returns the time at a size, or 0.
func (m Measured) Of(s harness.Size) float64 {
	for _, t := range m.Times {
		if t.Size.Equal(s) {
			return t.MedianUS
		}
	}
	return 0
}

// Entry is what is known of one task on one device with one driver.
type Entry struct {
	Version  int                 `json:"version"`
	Key      Key                 `json:"key"`
	Textbook Measured            `json:"textbook"`           // the task's own baseline
	External map[string]Measured `json:"external,omitempty"` // by command
}

// entryVersion is the version of an entry's JSON form.
const entryVersion = 1

// Registry is a folder of entries. It is safe for concurrent use by several processes; of two that write one entry at once the
// last wins.
type Registry struct{ dir string }

// Open returns the registry in dir, which is made when the first entry is.
func Open(dir string) *Registry { return &Registry{dir} }

// Get returns an entry; an empty one where there is none.
func (r *Registry) Get(k Key) (*Entry, error) {
	e := &Entry{Version: entryVersion, Key: k}
	text, err := os.ReadFile(filepath.Join(r.dir, k.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the baseline registry: %w", err)
	}
	var kept Entry
	if err := json.Unmarshal(text, &kept); err != nil || kept.Version != entryVersion || kept.Key != k {
		return e, nil // another version's, or damaged: it is measured again
	}
	return &kept, nil
}

// All returns every entry of a task by its name, "" being all tasks, in the order of their files.
func (r *Registry) All(task string) ([]*Entry, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the baseline registry: %w", err)
	}
	slices.Sort(files)
	var out []*Entry
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read the baseline registry: %w", err)
		}
		var e Entry
		if json.Unmarshal(text, &e) == nil && e.Version == entryVersion && (task == "" || e.Key.Task == task) {
			out = append(out, &e)
		}
	}
	return out, nil
}

func (r *Registry) put(e *Entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	f, err := os.CreateTemp(r.dir, "part-*")
	if err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close(), os.Rename(f.Name(), filepath.Join(r.dir, e.Key.file()))); err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	return nil
}

// Take keeps the baseline's times of a report, those of sizes that were not disturbed.
func (r *Registry) Take(t *harness.Task, report *harness.Report) error {
	if report.Stage == harness.StageCalibrate || !slices.ContainsFunc(report.Sizes, quiet) {
		return nil
	}
	e, err := r.Get(KeyOf(t, report))
	if err != nil {
		return err
	}
	for _, s := range report.Sizes {
		if !quiet(s) {
			continue
		}
		e.Textbook.Times = slices.DeleteFunc(e.Textbook.Times, func(have Time) bool { return have.Size.Equal(s.Size) })
		e.Textbook.Times = append(e.Textbook.Times, Time{s.Size, s.BaselineUS})
	}
	e.Textbook.At = report.Finished
	return r.put(e)
}

func quiet(s harness.SizeTime) bool { return s.BaselineUS > 0 && !s.BaselineNoisy }

// Fill gives a report that was measured without its baseline the times that are kept, for progress lines and feedback.
func (r *Registry) Fill(t *harness.Task, report *harness.Report) error {
	if len(report.Sizes) == 0 {
		return nil
	}
	e, err := r.Get(KeyOf(t, report))
	if err != nil {
		return err
	}
	for i := range report.Sizes {
		if s := &report.Sizes[i]; s.BaselineUS == 0 {
			s.BaselineUS = e.Textbook.Of(s.Size)
		}
	}
	return nil
}

// PutExternal keeps what an external baseline printed.
func (r *Registry) PutExternal(k Key, command string, m Measured) error {
	e, err := r.Get(k)
	if err != nil {
		return err
	}
	if e.External == nil {
		e.External = map[string]Measured{}
	}
	e.External[command] = m
	return r.put(e)
}
