// Package replay runs optimizers against recorded tuning spaces: every configuration of a real kernel, measured once on a
// real card, so that a search takes milliseconds. It reads and writes recordings and draws the curves; it judges nothing.
package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
)

// Record is one recorded space. The slices are by configuration id of the space's pool.
type Record struct {
	Header
	Path    string // of the file it was read from
	Space   *optimizer.Space
	Time    []float64 // milliseconds; NaN where the configuration failed
	Fail    []string  // kind of the failure; empty where measured
	Spread  []float64 // relative standard deviation of the repeats; 0 when unknown
	Compile []float64 // milliseconds; 0 when unknown
	Bench   []float64 // milliseconds the benchmark took; 0 when unknown
	Best    float64   // smallest Time
}

// FormatVersion is the version of our format that is written and read. A recording without one is of version 1.
const FormatVersion = 1

// maxBytes bounds what a recording may unpack to: the largest space that is held has some 200 MB.
const maxBytes = 1 << 30

// maxLine bounds a line: the longest is a header with 65536 values for some parameters.
const maxLine = 1 << 22

// Header is the first line of a recording.
type Header struct {
	Version          int                   `json:"version,omitempty"`
	Name             string                `json:"name"`
	Kernel           string                `json:"kernel"`
	GPU              string                `json:"gpu"`
	Params           []optimizer.Param     `json:"params"`
	Fixed            map[string]expr.Value `json:"fixed"`
	Constraints      []string              `json:"constraints"`
	ConstraintsExact bool                  `json:"constraints_exact"`
	Cartesian        int                   `json:"cartesian"`
	N                int                   `json:"n"`
	Objective        string                `json:"objective"`
	Source           string                `json:"source,omitempty"`
	License          string                `json:"license,omitempty"`
	Note             string                `json:"note,omitempty"`
	Threads          string                `json:"threads,omitempty"` // expression for the threads of a block
	Made             string                `json:"made,omitempty"`    // identifies what was measured: task, source, options, seed
	BestMS           float64               `json:"best_ms"`
	MedianOKMS       float64               `json:"median_ok_ms"`
	NFail            int                   `json:"n_fail"`
}

// line is one configuration of a recording.
type line struct {
	X    []expr.Value `json:"x"`
	T    *float64     `json:"t"`
	Fail string       `json:"fail,omitempty"`
	SD   float64      `json:"sd,omitempty"`
	C    float64      `json:"c,omitempty"`
	B    float64      `json:"b,omitempty"`

	at string // where it stands in its file, for messages
}

// check reports a line whose figures no measurement can have.
func (l *line) check() error {
	switch {
	case l.T == nil && l.SD == 0 && !(l.C < 0) && !(l.B < 0):
		return nil
	case l.T == nil && l.SD != 0:
		return errors.New("has a spread (sd) and no time (t): write both, or neither")
	case l.T != nil && (!(*l.T >= minMS) || *l.T > maxMS):
		return fmt.Errorf("time %g; want milliseconds from %g to %g, or null where it failed", *l.T, minMS, maxMS)
	case l.T != nil && l.Fail != "":
		return fmt.Errorf("has a time (%g) and a failure (%q): write t as null where it failed, or leave fail out", *l.T, l.Fail)
	case !(l.SD >= 0) || !(l.C >= 0) || !(l.B >= 0) || l.SD > maxMS || l.C > maxMS || l.B > maxMS:
		return fmt.Errorf("sd %g, c %g and b %g are milliseconds: want none negative or above %g", l.SD, l.C, l.B, maxMS)
	}
	return nil
}

// minMS and maxMS bound times that a kernel can have: a femtosecond and three years.
const minMS, maxMS = 1e-12, 1e11

// Family is the part of the name before the first underscore: recordings of one kernel share it.
func (r *Record) Family() string {
	family, _, _ := strings.Cut(r.Name, "_")
	return family
}

// LoadDir reads every recording of a folder, in order of name: our format (.jsonl, .jsonl.gz), and Kernel Tuner caches and T4
// results (.json, .json.gz).
func LoadDir(dir string) ([]*Record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("recorded spaces: %w", err)
	}
	var out []*Record
	names := map[string]string{}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		if e.IsDir() || (!strings.HasSuffix(name, ".jsonl") && !strings.HasSuffix(name, ".json")) {
			continue
		}
		r, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if other, clash := names[r.Name]; clash {
			return nil, fmt.Errorf("recorded spaces: %s and %s are both called %q: take one out, or rename one (in the first line of a .jsonl, else the file)", other, r.Path, r.Name)
		}
		names[r.Name] = r.Path
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("recorded spaces: %s has no *.jsonl, *.jsonl.gz, *.json or *.json.gz: name a folder that holds recordings, such as `ridgepoint brute` writes", dir)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Load reads one recording.
func Load(path string) (*Record, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("recorded space: %w", err)
	}
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	var r *Record
	if strings.HasSuffix(base, ".jsonl") {
		r, err = Read(bytes.NewReader(b))
	} else {
		r, err = readJSON(strings.TrimSuffix(base, ".json"), b)
	}
	if err != nil {
		return nil, fmt.Errorf("recorded space %s: %w", path, err)
	}
	if r.Name == "" {
		r.Name = strings.TrimSuffix(base, ".jsonl")
	}
	r.Path = path
	return r, nil
}

func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return b, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b, err = io.ReadAll(io.LimitReader(z, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: the file is cut off or damaged, copy it again", path, err)
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("%s: unpacks to more than %d MiB: no recording of up to %d configurations does", path, maxBytes>>20, optimizer.MaxEnumerated)
	}
	return b, z.Close()
}

// Read reads a recording in our format: a header line, then one line a configuration.
func Read(in io.Reader) (*Record, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxLine)
	if !scan.Scan() {
		return nil, errors.Join(tooLong(scan.Err()), errors.New("line 1: no header: want the recording's first line, with name and params"))
	}
	var h Header
	if err := json.Unmarshal(scan.Bytes(), &h); err != nil {
		return nil, fmt.Errorf("line 1: %w; want the header, an object with name and params", plain(err))
	}
	if h.Version < 0 || h.Version > FormatVersion {
		return nil, fmt.Errorf("line 1: version %d; this binary reads up to %d: use a newer one, or record the space again", h.Version, FormatVersion)
	}
	var lines []line
	for n := 2; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		l := line{at: fmt.Sprintf("line %d", n)}
		if err := unmarshalStrict(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w; want one configuration: {\"x\": [values], \"t\": milliseconds or null}, and fail, sd, c or b", l.at, plain(err))
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, tooLong(err)
	}
	if h.N != 0 && h.N != len(lines) {
		return nil, fmt.Errorf("has %d configurations, its first line says n is %d: the file is cut off, or n is wrong", len(lines), h.N)
	}
	return build(h, lines)
}

// unmarshalStrict reads one configuration; a key that none has is an error, so that a misspelt time is no failure.
func unmarshalStrict(b []byte, l *line) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more follows the object")
	}
	return nil
}

// plain words JSON errors without the names of Go's types.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s is a JSON %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("is a JSON %s", wrong.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("is cut off")
	default:
		return err
	}
}

func tooLong(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("has a line of more than %d MiB: want one configuration a line", maxLine>>20)
	}
	return err
}

// build makes the space of a recording and puts the lines in the order of its ids.
func build(h Header, lines []line) (*Record, error) {
	if len(lines) == 0 {
		return nil, errors.New("has no configurations: want one line or entry for each that was tried")
	}
	if len(lines) > optimizer.MaxEnumerated {
		return nil, fmt.Errorf("has %d configurations, at most %d can be read", len(lines), optimizer.MaxEnumerated)
	}
	for i := range lines {
		if err := lines[i].check(); err != nil {
			return nil, fmt.Errorf("%s: %w", lines[i].place(i), err)
		}
		if len(lines[i].X) != len(h.Params) {
			return nil, fmt.Errorf("%s: has %d values, want %d", lines[i].place(i), len(lines[i].X), len(h.Params))
		}
	}
	r := &Record{Header: h}
	d := optimizer.Declaration{Params: h.Params, Constraints: h.Constraints, Fixed: h.Fixed, Threads: h.threads()}
	var err error
	if h.ConstraintsExact {
		r.Space, err = optimizer.New(d)
	} else {
		rows := make([][]expr.Value, len(lines))
		for i, l := range lines {
			rows[i] = l.X
		}
		r.Space, err = optimizer.NewListed(d, rows)
	}
	if err != nil {
		return nil, err
	}
	n := len(lines)
	if r.Space.Size() != float64(n) {
		return nil, fmt.Errorf("has %d configurations, its constraints allow %.0f: the file is cut off, or constraints_exact must be false", n, r.Space.Size())
	}
	r.Time, r.Spread, r.Compile, r.Bench = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	r.Fail, r.Best = make([]string, n), math.Inf(1)
	pool := r.Space.NewPool()
	for i := range lines {
		if err := r.put(pool, &lines[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", lines[i].place(i), err)
		}
	}
	if math.IsInf(r.Best, 1) {
		return nil, fmt.Errorf("has no measured configuration: all %d failed, so there is nothing to find", n)
	}
	return r, nil
}

// place says where the i-th line stands.
func (l *line) place(i int) string {
	if l.at != "" {
		return l.at
	}
	return fmt.Sprintf("configuration %d", i+1)
}

func (r *Record) put(pool *optimizer.Pool, l *line) error {
	c := make(optimizer.Configuration, len(l.X))
	for i, v := range l.X {
		c[r.Params[i].Name] = v
	}
	row, err := r.Space.Row(c)
	if err != nil {
		return err
	}
	id, _ := pool.ID(row)
	if r.Time[id] != 0 { // a measured time is positive, a missing one NaN
		return errors.New("stands there twice")
	}
	r.Time[id], r.Fail[id], r.Compile[id], r.Bench[id] = math.NaN(), l.Fail, l.C, l.B
	if l.T == nil {
		if l.Fail == "" {
			r.Fail[id] = "runtime"
		}
		return nil
	}
	r.Time[id], r.Fail[id], r.Spread[id] = *l.T, "", l.SD / *l.T
	r.Best = math.Min(r.Best, *l.T)
	return nil
}

// threads is the recording's own expression for the threads of a block, or the product of Kernel Tuner's conventional names
// for the block dimensions.
func (h *Header) threads() string {
	if h.Threads != "" {
		return h.Threads
	}
	var factors []string
	for _, p := range h.Params {
		if p.Name == "block_size_x" || p.Name == "block_size_y" || p.Name == "block_size_z" {
			factors = append(factors, p.Name)
		}
	}
	return strings.Join(factors, " * ")
}
