package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
)

// readJSON reads a Kernel Tuner cache or a T4 result, told apart by their keys.
func readJSON(name string, b []byte) (*Record, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		// Kernel Tuner leaves the closing braces of a cache off while a tuning run is open.
		closed := append(bytes.TrimRight(bytes.TrimSpace(b), ","), "}}"...)
		if json.Unmarshal(closed, &keys) != nil {
			return nil, placed(b, err)
		}
		b = closed
	}
	if err := schema(keys["schema_version"]); err != nil {
		return nil, err
	}
	switch {
	case keys["cache"] != nil:
		return readCache(name, b)
	case keys["results"] != nil:
		return readT4(name, b)
	default:
		return nil, fmt.Errorf("is neither a Kernel Tuner cache (no \"cache\") nor a T4 result (no \"results\"): take it out of the folder, or name another file")
	}
}

// placed says on which line JSON is wrong; Python also writes NaN and Infinity, which JSON does not have.
func placed(b []byte, err error) error {
	var wrong *json.SyntaxError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%w; want a JSON object: a Kernel Tuner cache or a T4 result", plain(err))
	}
	at := min(int(wrong.Offset), len(b))
	hint := "the file is cut off or damaged"
	if rest := b[max(0, at-1):]; bytes.HasPrefix(rest, []byte("N")) || bytes.HasPrefix(rest, []byte("I")) {
		hint = "JSON has no NaN or Infinity: write such a configuration as failed, with the failure's name for its time"
	}
	return fmt.Errorf("line %d: %w: %s", 1+bytes.Count(b[:at], []byte("\n")), err, hint)
}

// schema refuses a major version of either format that this reader does not know.
func schema(raw json.RawMessage) error {
	var version string
	if raw == nil || json.Unmarshal(raw, &version) != nil {
		return nil // older files have none
	}
	if major, _, _ := strings.Cut(version, "."); major != "0" && major != "1" {
		return fmt.Errorf("schema_version %q; this binary reads 1: write the file in that version", version)
	}
	return nil
}

// cacheFile is a Kernel Tuner cache: one entry a configuration, with its parameters beside the measurements.
type cacheFile struct {
	DeviceName string                                `json:"device_name"`
	KernelName string                                `json:"kernel_name"`
	Keys       []string                              `json:"tune_params_keys"`
	Params     map[string][]expr.Value               `json:"tune_params"`
	Cache      map[string]map[string]json.RawMessage `json:"cache"`
}

func readCache(name string, b []byte) (*Record, error) {
	var f cacheFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("kernel tuner cache: %w", plain(err))
	}
	if len(f.Keys) == 0 {
		return nil, fmt.Errorf("kernel tuner cache: tune_params_keys is empty: want the names of the parameters")
	}
	if len(f.Cache) == 0 {
		return nil, fmt.Errorf("kernel tuner cache: cache is empty: nothing was tried")
	}
	h := Header{Name: name, Kernel: f.KernelName, GPU: f.DeviceName, Objective: "time_ms"}
	entries := make([]string, 0, len(f.Cache))
	for key := range f.Cache {
		entries = append(entries, key)
	}
	sort.Strings(entries)
	var lines []line
	for _, key := range entries {
		l, err := cacheLine(f.Cache[key], f.Keys)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", key, err)
		}
		l.at = fmt.Sprintf("entry %q", key)
		lines = append(lines, l)
	}
	h.declare(f.Keys, f.Params, lines)
	return build(h, lines)
}

func cacheLine(entry map[string]json.RawMessage, keys []string) (line, error) {
	var l line
	for _, k := range keys {
		var v expr.Value
		if entry[k] == nil {
			return l, fmt.Errorf("has no %q, which tune_params_keys names", k)
		}
		if err := json.Unmarshal(entry[k], &v); err != nil {
			return l, fmt.Errorf("%s: %w", k, err)
		}
		l.X = append(l.X, v)
	}
	l.C, l.B = number(entry["compile_time"]), number(entry["benchmark_time"])
	var text string
	if json.Unmarshal(entry["time"], &text) == nil {
		l.Fail = failKind(text)
		return l, nil
	}
	var t float64
	if entry["time"] == nil || json.Unmarshal(entry["time"], &t) != nil {
		return l, fmt.Errorf("time is %.40s; want milliseconds, or the name of a failure such as \"RuntimeFailedConfig\"", orNone(entry["time"]))
	}
	if t >= failedTime {
		l.Fail = "runtime"
		return l, nil
	}
	l.T = &t
	var times []float64
	if json.Unmarshal(entry["times"], &times) == nil {
		l.SD = deviation(times)
	}
	return l, nil
}

// failedTime is from where a time is Kernel Tuner's value (1e20) for a failed configuration in older files.
const failedTime = 1e16

func orNone(b json.RawMessage) string {
	if b == nil {
		return "not there"
	}
	return string(b)
}

func number(b json.RawMessage) float64 {
	var f float64
	if b == nil || json.Unmarshal(b, &f) != nil {
		return 0 // absent or written as text: unknown
	}
	return f
}

func failKind(text string) string {
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(lower, "compil"):
		return "compile"
	case strings.Contains(lower, "invalid") || strings.Contains(lower, "constraint"):
		return "invalid"
	case strings.Contains(lower, "correct"):
		return "incorrect"
	default:
		return "runtime"
	}
}

// t4File is a T4 result (the exchange format of auto-tuners), schema 1.
type t4File struct {
	Results []struct {
		Configuration map[string]expr.Value `json:"configuration"`
		Times         map[string]any        `json:"times"`
		Invalidity    string                `json:"invalidity"`
		Measurements  []t4Measurement       `json:"measurements"`
	} `json:"results"`
}

func readT4(name string, b []byte) (*Record, error) {
	var f t4File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("T4 result: %w", plain(err))
	}
	if len(f.Results) == 0 {
		return nil, fmt.Errorf("T4 result: results is empty: nothing was tried")
	}
	h := Header{Name: name, Kernel: name, Objective: "time_ms"}
	keys := sortedKeys(f.Results[0].Configuration)
	var lines []line
	for i, res := range f.Results {
		l := line{at: fmt.Sprintf("T4 result %d", i+1)}
		if len(res.Configuration) != len(keys) {
			return nil, fmt.Errorf("%s: configuration has %v, the first %v: want the same parameters in each", l.at, sortedKeys(res.Configuration), keys)
		}
		for _, k := range keys {
			v, ok := res.Configuration[k]
			if !ok {
				return nil, fmt.Errorf("%s: configuration has no %q, which the first has", l.at, k)
			}
			l.X = append(l.X, v)
		}
		if c, ok := res.Times["compilation_time"].(float64); ok {
			l.C = c
		}
		if v := strings.ToLower(res.Invalidity); v != "" && v != "correct" {
			l.Fail = failKind(v)
		} else {
			t, err := t4Time(res.Measurements)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.at, err)
			}
			if t < failedTime {
				l.T = &t
			} else {
				l.Fail = "runtime"
			}
		}
		if runs, ok := res.Times["runtimes"].([]any); ok {
			var times []float64
			for _, r := range runs {
				if x, ok := r.(float64); ok {
					times = append(times, x)
					l.B += x
				}
			}
			l.SD = deviation(times)
		}
		lines = append(lines, l)
	}
	h.declare(keys, nil, lines)
	return build(h, lines)
}

// t4Measurement is one figure of a T4 result.
type t4Measurement struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

// t4Units are milliseconds by unit.
var t4Units = map[string]float64{"": 1, "ms": 1, "milliseconds": 1, "s": 1e3, "seconds": 1e3, "us": 1e-3, "microseconds": 1e-3, "ns": 1e-6, "nanoseconds": 1e-6}

// t4Time is the measurement called time, in milliseconds.
func t4Time(ms []t4Measurement) (float64, error) {
	var names []string
	for _, m := range ms {
		names = append(names, m.Name)
		if !strings.Contains(strings.ToLower(m.Name), "time") {
			continue
		}
		scale, ok := t4Units[strings.ToLower(m.Unit)]
		if !ok {
			return 0, fmt.Errorf("%s is in %q; want ms, s, us or ns", m.Name, m.Unit)
		}
		var t float64
		if m.Value == nil || json.Unmarshal(m.Value, &t) != nil {
			return 0, fmt.Errorf("%s is %.40s; want a number, or an invalidity other than correct", m.Name, orNone(m.Value))
		}
		return t * scale, nil
	}
	return 0, fmt.Errorf("is correct and has no measurement with time in its name, only %q: want one, or its invalidity", names)
}

// declare sets the parameters: the values declared, or else those met, in order.
func (h *Header) declare(keys []string, declared map[string][]expr.Value, lines []line) {
	for i, k := range keys {
		met := map[expr.Value]bool{}
		for _, l := range lines {
			met[l.X[i]] = true
		}
		var values []expr.Value
		for _, v := range declared[k] {
			if met[v] {
				values = append(values, v)
				delete(met, v)
			}
		}
		rest := make([]expr.Value, 0, len(met))
		for v := range met {
			rest = append(rest, v)
		}
		sort.Slice(rest, func(a, b int) bool { return less(rest[a], rest[b]) })
		h.Params = append(h.Params, optimizer.Param{Name: k, Values: append(values, rest...)})
	}
	h.N = len(lines)
}

func less(a, b expr.Value) bool {
	x, okx := a.AsFloat()
	y, oky := b.AsFloat()
	if okx && oky {
		return x < y
	}
	return a.String() < b.String()
}

func sortedKeys(m map[string]expr.Value) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
