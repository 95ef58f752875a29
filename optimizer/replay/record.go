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

// Header is the first line of a recording.
type Header struct {
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
}

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
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		if e.IsDir() || (!strings.HasSuffix(name, ".jsonl") && !strings.HasSuffix(name, ".json")) {
			continue
		}
		r, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("recorded spaces: %s has no *.jsonl, *.jsonl.gz, *.json or *.json.gz", dir)
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
	b, err = io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, z.Close()
}

// Read reads a recording in our format: a header line, then one line a configuration.
func Read(in io.Reader) (*Record, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 1<<22)
	var h Header
	if !scan.Scan() {
		return nil, fmt.Errorf("line 1: no header")
	}
	if err := json.Unmarshal(scan.Bytes(), &h); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	var lines []line
	for n := 2; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	return build(h, lines)
}

// build makes the space of a recording and puts the lines in the order of its ids.
func build(h Header, lines []line) (*Record, error) {
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
		return nil, fmt.Errorf("has %d configurations, its constraints allow %.0f: set constraints_exact to false", n, r.Space.Size())
	}
	r.Time, r.Spread, r.Compile, r.Bench = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	r.Fail, r.Best = make([]string, n), math.Inf(1)
	pool := r.Space.NewPool()
	for i := range lines {
		if err := r.put(pool, &lines[i]); err != nil {
			return nil, fmt.Errorf("configuration %d: %w", i+1, err)
		}
	}
	if math.IsInf(r.Best, 1) {
		return nil, fmt.Errorf("has no measured configuration")
	}
	return r, nil
}

func (r *Record) put(pool *optimizer.Pool, l *line) error {
	if len(l.X) != len(r.Params) {
		return fmt.Errorf("has %d values, want %d", len(l.X), len(r.Params))
	}
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
	if !(*l.T > 0) {
		return fmt.Errorf("time %g; want a positive number of milliseconds, or null", *l.T)
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
