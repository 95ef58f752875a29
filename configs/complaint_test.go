package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestComplaintsSpeakOfValuesNotOfTypes(t *testing.T) {
	t.Parallel()
	const key = "sk-planted-00112233445566778899"
	for name, tc := range map[string]struct {
		text  string
		wants []string
	}{
		"list for a text":           {"target: [1]\n", []string{":1:9:", "want a text, got a list"}},
		"list for a number":         {"probes: [1]\n", []string{":1:9:", "want a whole number, got a list"}},
		"number for a list":         {"llm: {models: 5}\n", []string{":1:15:", "want a list, got a whole number"}},
		"number for keys":           {"budget: 5\n", []string{":1:9:", "want keys with values, got a whole number"}},
		"text for true or false":    {"racing: often\n", []string{":1:9:", "want true or false, got a text"}},
		"negative seed":             {"seed: -1\n", []string{":1:7:", "want a whole number that is not negative"}},
		"duration without its unit": {"name: a\nbudget: {wall: 10}\n", []string{":2:16:", "want a number with its unit"}},
		"duration in words":         {"llm: {models: [{name: m, timeout: soon}]}\n", []string{":1:35:", "want a number with its unit"}},
		"misspelt key":              {"budgte: {wall: 1m}\n", []string{":1:1:", "did you mean budget?"}},
		"misspelt key of a model":   {"llm: {models: [{name: m, base_ulr: x}]}\n", []string{":1:26:", "did you mean base_url?"}},
		"key in the file":           {"llm:\n  models:\n    - {name: m, api_key: " + key + "}\n", []string{":3:17:", "write key_env", "[not shown]"}},
		"key under a known name":    {"llm: {models: {secret: \"" + key + "\"}}\n", []string{":1:", "[not shown]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(file)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q", err, want)
				}
			}
			for _, never := range []string{key, "Go struct", "interface", "unmarshal", "[]"} {
				if strings.Contains(err.Error(), never) {
					t.Errorf("%v\nmay not say %q", err, never)
				}
			}
		})
	}
}
