package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/configs"
)

// TestRecordingOfOtherParametersIsRefused names recordings in a campaign file: one that fits no structure, one that does.
func TestRecordingOfOtherParametersIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	load := func(recording string) error {
		t.Helper()
		cfg, err := configs.Load(write("night.yaml", "task: vector_add\ntransfer: ["+recording+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, structures, err := newCampaign(&cfg.Campaign)
		if err == nil && len(structures) == 0 {
			t.Fatal("vector_add has no structures")
		}
		return err
	}
	write("other.jsonl", `{"name": "other", "params": [{"name": "NOBODY_HAS_THIS", "values": [1, 2]}], "constraints_exact": true}
{"x": [1], "t": 1.5}
{"x": [2], "t": 2.5}
`)
	if err := load("other.jsonl"); err == nil || !strings.Contains(err.Error(), "NOBODY_HAS_THIS") || !strings.Contains(err.Error(), "other.jsonl") {
		t.Errorf("got %v, want an error that names the file and its parameters", err)
	}
	write("torn.jsonl", `{"name": "torn", "params": [{"name": "A", "values": [1, 2]}]}`)
	if err := load("torn.jsonl"); err == nil || !strings.Contains(err.Error(), "torn.jsonl") {
		t.Errorf("got %v, want an error that names the file", err)
	}
	cfg, err := configs.Load(write("night.yaml", "task: vector_add\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, structures, err := newCampaign(&cfg.Campaign)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range structures {
		if len(st.Params) == 0 {
			continue
		}
		var params, x []string
		for _, p := range st.Params {
			d := st.Default[p.Name]
			params, x = append(params, `{"name": "`+p.Name+`", "values": [`+d.String()+`]}`), append(x, d.String())
		}
		write("fits.jsonl", `{"name": "fits", "params": [`+strings.Join(params, ", ")+`], "constraints_exact": true}
{"x": [`+strings.Join(x, ", ")+`], "t": 1.5}
`)
		if err := load("fits.jsonl"); err != nil {
			t.Errorf("a recording with the parameters of %s was refused: %v", st.Name, err)
		}
		return
	}
	t.Fatal("no structure of vector_add has parameters")
}
