// Package night simulates whole nights of search, in milliseconds, to compare ways of sharing the device between tuning and new
// structures. A structure is a recorded tuning space of one kernel family, scaled; drafts arrive late, cost device time, fail in 12 of
// 100 cases and mostly bring nothing. It measures nothing and decides nothing: the choices are those of package blend.
package night

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"sort"
	"strings"
)

// Space is a recorded space: configurations as value indices, and their times relative to the best; 0 for a failed one.
type Space struct {
	Name   string
	Rows   [][]int
	Ratios []float64
}

// Load reads every recorded space (*.jsonl, *.jsonl.gz) of a folder and groups them by kernel family: the name up to the first "_".
// Families are in order of their names, spaces too.
func Load(fsys fs.FS, dir string) (map[string][]*Space, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.jsonl*"))
	if err != nil {
		return nil, fmt.Errorf("recorded spaces: %w", err)
	}
	sort.Strings(names)
	families := map[string][]*Space{}
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("recorded space: %w", err)
		}
		s, err := read(b)
		if err != nil {
			return nil, fmt.Errorf("recorded space %s: %w", name, err)
		}
		s.Name, _, _ = strings.Cut(path.Base(name), ".")
		family, _, _ := strings.Cut(s.Name, "_")
		families[family] = append(families[family], s)
	}
	if len(families) == 0 {
		return nil, fmt.Errorf("no recorded spaces (*.jsonl.gz) in %s", dir)
	}
	return families, nil
}

func read(b []byte) (*Space, error) {
	var r io.Reader = bytes.NewReader(b)
	if len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	s, best := &Space{}, math.Inf(1)
	index := map[int]map[string]int{}
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			continue // the header
		}
		var row struct {
			X []json.RawMessage `json:"x"`
			T *float64          `json:"t"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		x := make([]int, len(row.X))
		for i, v := range row.X {
			if index[i] == nil {
				index[i] = map[string]int{}
			}
			if _, ok := index[i][string(v)]; !ok {
				index[i][string(v)] = len(index[i])
			}
			x[i] = index[i][string(v)]
		}
		t := 0.0
		if row.T != nil {
			t = *row.T
			best = min(best, t)
		}
		s.Rows, s.Ratios = append(s.Rows, x), append(s.Ratios, t)
	}
	for i := range s.Ratios {
		s.Ratios[i] /= best
	}
	return s, lines.Err()
}

// Ordered returns the families in the order of their names.
func Ordered(families map[string][]*Space) [][]*Space {
	names := make([]string, 0, len(families))
	for name := range families {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make([][]*Space, len(names))
	for i, name := range names {
		out[i] = families[name]
	}
	return out
}
