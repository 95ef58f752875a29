package replay

import (
	"bytes"
	"encoding/json"
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
			return nil, err
		}
		b = closed
	}
	switch {
	case keys["cache"] != nil:
		return readCache(name, b)
	case keys["results"] != nil:
		return readT4(name, b)
	default:
		return nil, fmt.Errorf("is neither a Kernel Tuner cache (no \"cache\") nor a T4 result (no \"results\")")
	}
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
		return nil, fmt.Errorf("kernel tuner cache: %w", err)
	}
	if len(f.Keys) == 0 {
		return nil, fmt.Errorf("kernel tuner cache: tune_params_keys is empty")
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
			return nil, fmt.Errorf("kernel tuner cache, entry %q: %w", key, err)
		}
		lines = append(lines, l)
	}
	h.declare(f.Keys, f.Params, lines)
	return build(h, lines)
}

func cacheLine(entry map[string]json.RawMessage, keys []string) (line, error) {
	var l line
	for _, k := range keys {
		var v expr.Value
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
	t := number(entry["time"])
	if t <= 0 || t >= 1e19 { // Kernel Tuner's value for a failed configuration in older caches
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
		Measurements  []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
			Unit  string          `json:"unit"`
		} `json:"measurements"`
	} `json:"results"`
}

func readT4(name string, b []byte) (*Record, error) {
	var f t4File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("T4 result: %w", err)
	}
	if len(f.Results) == 0 {
		return nil, fmt.Errorf("T4 result: no results")
	}
	h := Header{Name: name, Kernel: name, Objective: "time_ms"}
	keys := sortedKeys(f.Results[0].Configuration)
	var lines []line
	for i, res := range f.Results {
		var l line
		for _, k := range keys {
			v, ok := res.Configuration[k]
			if !ok {
				return nil, fmt.Errorf("T4 result %d: configuration has no %q", i+1, k)
			}
			l.X = append(l.X, v)
		}
		if c, ok := res.Times["compilation_time"].(float64); ok {
			l.C = c
		}
		if v := strings.ToLower(res.Invalidity); v != "" && v != "correct" {
			l.Fail = failKind(v)
		} else if t := t4Time(res.Measurements[:]); t > 0 {
			l.T = &t
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

// t4Time is the measurement called time, or else the first, in milliseconds; 0 when there is none.
func t4Time(ms []struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}) float64 {
	scale := map[string]float64{"": 1, "ms": 1, "milliseconds": 1, "s": 1e3, "seconds": 1e3, "us": 1e-3, "microseconds": 1e-3, "ns": 1e-6, "nanoseconds": 1e-6}
	for i, m := range ms {
		if strings.Contains(strings.ToLower(m.Name), "time") || (i == len(ms)-1) {
			return number(m.Value) * scale[strings.ToLower(m.Unit)]
		}
	}
	return 0
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
