package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMalformedRecordings reads files that are wrong in one way each: every error names the file, the place and what is wanted.
func TestMalformedRecordings(t *testing.T) {
	t.Parallel()
	const (
		header = `{"name": "a", "params": [{"name": "x", "values": [1, 2]}], "constraints_exact": true}` + "\n"
		listed = `{"name": "a", "params": [{"name": "x", "values": [1, 2]}], "n": 2}` + "\n"
		second = "\n" + `{"x": [2], "t": 2}`
		cache  = `{"tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 1.5}, "2": `
		t4     = `{"results": [{"configuration": {"x": 1}, "invalidity": "correct", "measurements": [{"name": "time", "value": 1}]}, `
	)
	for name, c := range map[string]struct{ file, text, want string }{
		"empty":                  {"a.jsonl", "", "line 1: no header"},
		"header is an array":     {"a.jsonl", "[1]\n", "line 1: is a JSON array; want the header"},
		"line is an array":       {"a.jsonl", header + "[1]", "line 2: is a JSON array; want one configuration"},
		"cut inside a line":      {"a.jsonl", header + `{"x": [1], "t"`, "line 2: is cut off"},
		"cut between lines":      {"a.jsonl", listed + `{"x": [1], "t": 1}` + "\n", "first line says n is 2: the file is cut off"},
		"cut, exact constraints": {"a.jsonl", header + `{"x": [1], "t": 1}`, "the file is cut off, or constraints_exact must be false"},
		"header alone":           {"a.jsonl", `{"name": "a", "params": [{"name": "x", "values": [1]}]}`, "has no configurations"},
		"newer version":          {"a.jsonl", `{"version": 2, "params": []}`, "line 1: version 2; this binary reads up to 1"},
		"misspelt key":           {"a.jsonl", header + `{"x": [1], "time": 1}` + second, `line 2: json: unknown field "time"; want one configuration`},
		"two objects on a line":  {"a.jsonl", header + `{"x": [1], "t": 1} {"x": [1], "t": 1}` + second, "line 2: more follows"},
		"time NaN":               {"a.jsonl", header + `{"x": [1], "t": NaN}` + second, "line 2: invalid character 'N'"},
		"time 0":                 {"a.jsonl", header + `{"x": [1], "t": 0}` + second, "line 2: time 0; want milliseconds"},
		"time negative":          {"a.jsonl", header + `{"x": [1], "t": -1}` + second, "line 2: time -1; want milliseconds"},
		"time beyond reason":     {"a.jsonl", header + `{"x": [1], "t": 1e300}` + second, "line 2: time 1e+300; want milliseconds"},
		"time and failure":       {"a.jsonl", header + `{"x": [1], "t": 1, "fail": "runtime"}` + second, "line 2: has a time (1) and a failure"},
		"spread without time":    {"a.jsonl", header + `{"x": [1], "t": null, "sd": 1}` + second, "line 2: has a spread"},
		"negative spread":        {"a.jsonl", header + `{"x": [1], "t": 1, "sd": -1}` + second, "line 2: sd -1"},
		"negative compile time":  {"a.jsonl", header + `{"x": [1], "t": null, "c": -1}` + second, "line 2: sd 0, c -1"},
		"all failed":             {"a.jsonl", header + `{"x": [1], "t": null}` + "\n" + `{"x": [2], "t": null}`, "all 2 failed"},
		"short row after blank":  {"a.jsonl", header + `{"x": [1], "t": 1}` + "\n\n" + `{"x": [], "t": 1}`, "line 4: has 0 values, want 1"},
		"unknown value":          {"a.jsonl", header + `{"x": [3], "t": 1}` + second, "line 2: configuration: x = 3 is none"},
		"twice":                  {"a.jsonl", header + `{"x": [2], "t": 1}` + second, "line 3: stands there twice"},
		"endless line":           {"a.jsonl", strings.Repeat("a", maxLine+1), "has a line of more than 4 MiB"},
		"gzip cut off":           {"a.jsonl.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "cut off or damaged"},
		"foreign JSON":           {"a.json", `{"scripts": {}}`, "take it out of the folder"},
		"JSON array":             {"a.json", "[1]", "is a JSON array; want a JSON object"},
		"cache NaN":              {"a.json", cache + "\n" + `{"x": 2, "time": NaN}}}`, "line 2: invalid character 'N' looking for beginning of value: JSON has no NaN"},
		"cache cut off":          {"a.json", cache + `{"x": 2, "ti`, "cut off or damaged"},
		"cache negative":         {"a.json", cache + `{"x": 2, "time": -1}}}`, `entry "2": time -1; want milliseconds`},
		"cache zero":             {"a.json", cache + `{"x": 2, "time": 0}}}`, `entry "2": time 0; want milliseconds`},
		"cache without time":     {"a.json", cache + `{"x": 2}}}`, `entry "2": time is not there; want milliseconds`},
		"cache list for time":    {"a.json", cache + `{"x": 2, "time": [1]}}}`, `entry "2": time is [1]; want milliseconds`},
		"cache lacks a value":    {"a.json", cache + `{"time": 1}}}`, `entry "2": has no "x"`},
		"cache lists one twice":  {"a.json", cache + `{"x": 1, "time": 1}}}`, "x=1 is listed twice"},
		"cache of nothing":       {"a.json", `{"tune_params_keys": ["x"], "cache": {}}`, "cache is empty"},
		"cache newer":            {"a.json", `{"schema_version": "2.0.0", "cache": {}}`, `schema_version "2.0.0"; this binary reads 1`},
		"T4 unit":                {"a.json", t4 + `{"configuration": {"x": 2}, "invalidity": "correct", "measurements": [{"name": "time", "value": 1, "unit": "h"}]}]}`, `T4 result 2: time is in "h"; want ms`},
		"T4 throughput alone":    {"a.json", t4 + `{"configuration": {"x": 2}, "invalidity": "correct", "measurements": [{"name": "GFLOP/s", "value": 1}]}]}`, `T4 result 2: is correct and has no measurement with time`},
		"T4 text":                {"a.json", t4 + `{"configuration": {"x": 2}, "invalidity": "correct", "measurements": [{"name": "time", "value": "?"}]}]}`, `T4 result 2: time is "?"; want a number`},
		"T4 other parameters":    {"a.json", t4 + `{"configuration": {"x": 2, "y": 1}, "invalidity": "compile"}]}`, "T4 result 2: configuration has [x y], the first [x]"},
		"T4 negative":            {"a.json", t4 + `{"configuration": {"x": 2}, "invalidity": "correct", "measurements": [{"name": "time", "value": -1}]}]}`, "T4 result 2: time -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q and the file", err, c.want)
			}
		})
	}
}

// TestFoldersOfRecordings reads folders: names that clash would mix two recordings' results.
func TestFoldersOfRecordings(t *testing.T) {
	t.Parallel()
	const body = `"params": [{"name": "x", "values": [1]}]}` + "\n" + `{"x": [1], "t": 1}`
	write := func(t *testing.T, files map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	if _, err := LoadDir(write(t, map[string]string{"a.jsonl": `{"name": "same", ` + body, "b.jsonl": `{"name": "same", ` + body})); err == nil ||
		!strings.Contains(err.Error(), "a.jsonl") || !strings.Contains(err.Error(), "b.jsonl") || !strings.Contains(err.Error(), `both called "same"`) {
		t.Errorf("two recordings of one name: %v", err)
	}
	if _, err := LoadDir(write(t, map[string]string{"notes.txt": "hello", "a.jsonl.gz.part": ""})); err == nil || !strings.Contains(err.Error(), "ridgepoint brute") {
		t.Errorf("a folder without recordings: %v", err)
	}
	all, err := LoadDir(write(t, map[string]string{"notes.txt": "hello", "unnamed.jsonl": "{" + body}))
	if err != nil || len(all) != 1 || all[0].Name != "unnamed" {
		t.Errorf("a recording without a name among other files: %v, %v; want it called after its file", all, err)
	}
}
