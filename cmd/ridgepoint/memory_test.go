package main

import (
	"strings"
	"testing"
)

func TestInputMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"": 0, "512MiB": 512 << 20, "2GiB": 2 << 30, "1 GiB": 1 << 30, "0MiB": -1, "-1GiB": -1, "2GB": -1, "1.5GiB": -1, "99999999999GiB": -1} {
		env := environment{getenv: func(name string) string {
			if name == "RIDGEPOINT_INPUT_MEMORY" {
				return text
			}
			return ""
		}}
		got, err := inputMemory(env)
		switch {
		case want >= 0 && (err != nil || got != want):
			t.Errorf("%q: %d %v; want %d", text, got, err, want)
		case want < 0 && (err == nil || !strings.Contains(err.Error(), "512MiB")):
			t.Errorf("%q: %d %v; want an error that says what to write", text, got, err)
		}
		if _, err := newJudge(env, "", false); want < 0 && (err == nil || !strings.Contains(err.Error(), "RIDGEPOINT_INPUT_MEMORY")) {
			t.Errorf("%q: a judge was made, %v", text, err)
		}
	}
}
