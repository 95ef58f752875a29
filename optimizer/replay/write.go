package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"ridgepoint/optimizer"
)

// Measurement is what a recording keeps of one configuration. Fail is empty where it ran.
type Measurement struct {
	TimeMS    float64
	SDMS      float64
	CompileMS float64
	BenchMS   float64
	Fail      string
}

// NewHeader returns the header of a recording of a space.
func NewHeader(space *optimizer.Space, name, kernel, gpu string) Header {
	d := space.Declaration()
	h := Header{Version: FormatVersion, Name: name, Kernel: kernel, GPU: gpu, Fixed: d.Fixed, Constraints: d.Constraints, Objective: "time_ms", Threads: d.Threads}
	cartesian := 1
	for i, p := range space.Names() {
		h.Params = append(h.Params, optimizer.Param{Name: p, Values: space.Values(i)})
		cartesian *= len(space.Values(i))
	}
	h.Cartesian, h.N = cartesian, int(space.Size())
	if len(d.Cases) > 0 { // constraints over several sizes cannot be written in the format: the list of configurations says it
		h.Constraints, h.Threads = nil, ""
	}
	return h
}

// Writer records a space, by configuration id. The header and the lines go to a part file beside the recording as they come; Finish writes the
// recording itself and removes the part.
type Writer struct {
	path   string
	header Header
	space  *optimizer.Space
	pool   *optimizer.Pool
	part   *os.File
	headed bool // the part file has its first line
	lines  map[int]line
}

// OpenWriter starts a recording, or goes on with the part file that an interrupted one left.
func OpenWriter(path string, h Header, space *optimizer.Space) (*Writer, error) {
	if !strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".jsonl.gz") {
		return nil, fmt.Errorf("recording %s: want a name that ends in .jsonl or .jsonl.gz", path)
	}
	if !space.Enumerated() {
		return nil, fmt.Errorf("recording %s: the space has %.0f configurations, too many to record", path, space.Size())
	}
	w := &Writer{path: path, header: h, space: space, pool: space.NewPool(), lines: map[int]line{}}
	if err := w.readPart(); err != nil {
		return nil, fmt.Errorf("recording %s.part: %w; remove it to start afresh", path, err)
	}
	var err error
	w.part, err = os.OpenFile(path+".part", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	if !w.headed {
		if err := w.head(); err != nil {
			return nil, errors.Join(fmt.Errorf("recording: %w", err), w.part.Close())
		}
	}
	return w, nil
}

// head writes the part file's first line: the header, so that what another source measured is not gone on with.
func (w *Writer) head() error {
	b, err := json.Marshal(w.header)
	if err != nil {
		return err
	}
	_, err = w.part.Write(append(b, '\n'))
	return err
}

// readPart takes in the lines of an interrupted recording. A torn last line is cut off.
func (w *Writer) readPart() error {
	b, err := os.ReadFile(w.path + ".part")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	if whole < len(b) {
		if err := os.Truncate(w.path+".part", int64(whole)); err != nil {
			return err
		}
	}
	head, err := json.Marshal(w.header)
	if err != nil {
		return err
	}
	for n, text := range bytes.Split(bytes.TrimSpace(b[:whole]), []byte("\n")) {
		if n == 0 && len(text) > 0 {
			if w.headed = bytes.Equal(text, head); !w.headed {
				return errors.New("it was left by another task, another version of the structure file, or other options")
			}
			continue
		}
		if len(text) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if len(l.X) != w.space.Dims() {
			return fmt.Errorf("line %d has %d values, want %d: it is of another space", n+1, len(l.X), w.space.Dims())
		}
		c := optimizer.Configuration{}
		for i, v := range l.X {
			c[w.space.Names()[i]] = v
		}
		row, err := w.space.Row(c)
		if err != nil {
			return fmt.Errorf("line %d is of another space: %w", n+1, err)
		}
		if err := l.check(); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		id, _ := w.pool.ID(row)
		w.lines[id] = l
	}
	return nil
}

// Has reports whether a configuration is recorded.
func (w *Writer) Has(id int) bool { _, ok := w.lines[id]; return ok }

// Len returns how many configurations are recorded.
func (w *Writer) Len() int { return len(w.lines) }

// Add records one configuration.
func (w *Writer) Add(id int, m Measurement) error {
	l := line{C: m.CompileMS, B: m.BenchMS, Fail: m.Fail}
	for i, k := range w.pool.Row(id) {
		l.X = append(l.X, w.space.Values(i)[k])
	}
	if m.Fail == "" {
		if !(m.TimeMS > 0) || math.IsInf(m.TimeMS, 0) {
			return fmt.Errorf("recording: time %g of configuration %d; want a positive number of milliseconds", m.TimeMS, id)
		}
		l.T, l.SD = &m.TimeMS, m.SDMS
	}
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if _, err := w.part.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	w.lines[id] = l
	return nil
}

// Finish writes the recording and removes the part file. It is an error while configurations are missing or when none ran.
func (w *Writer) Finish() (bestMS float64, failed int, err error) {
	if n := w.pool.Len(); len(w.lines) != n {
		return 0, 0, fmt.Errorf("recording: %d of %d configurations are missing", n-len(w.lines), n)
	}
	var times []float64
	for _, l := range w.lines {
		if l.T != nil {
			times = append(times, *l.T)
		}
	}
	if len(times) == 0 {
		return 0, 0, w.nothingRan()
	}
	w.header.BestMS, w.header.MedianOKMS, w.header.NFail = slices.Min(times), median(times), len(w.lines)-len(times)
	if err := w.write(); err != nil {
		return 0, 0, fmt.Errorf("recording: %w", err)
	}
	return w.header.BestMS, w.header.NFail, os.Remove(w.path + ".part")
}

// NothingRanError says that every configuration of a space failed, and how many in which way.
type NothingRanError struct {
	Configurations int
	Failures       map[string]int
}

func (e *NothingRanError) Error() string {
	return fmt.Sprintf("recording: none of the %d configurations ran: %s", e.Configurations, e.Kinds())
}

// Kinds lists the failures, such as "compile 3, launch 1".
func (e *NothingRanError) Kinds() string {
	var out []string
	for kind, n := range e.Failures {
		out = append(out, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *Writer) nothingRan() error {
	e := &NothingRanError{Configurations: len(w.lines), Failures: map[string]int{}}
	for _, l := range w.lines {
		e.Failures[l.Fail]++
	}
	return e
}

// write puts the recording in place of an older one by renaming.
func (w *Writer) write() error {
	var buf bytes.Buffer
	if err := w.encode(&buf); err != nil {
		return err
	}
	if err := os.WriteFile(w.path+".new", buf.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(w.path+".new", w.path)
}

func (w *Writer) encode(out io.Writer) error {
	if !strings.HasSuffix(w.path, ".gz") {
		return w.encodeLines(out)
	}
	z := gzip.NewWriter(out)
	return errors.Join(w.encodeLines(z), z.Close())
}

func (w *Writer) encodeLines(out io.Writer) error {
	e := json.NewEncoder(out)
	if err := e.Encode(w.header); err != nil {
		return err
	}
	for id := range w.pool.Len() {
		if err := e.Encode(w.lines[id]); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the part file.
func (w *Writer) Close() error { return w.part.Close() }
