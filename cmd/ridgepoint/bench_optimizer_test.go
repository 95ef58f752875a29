package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallRecording = `{"name": "small", "params": [{"name": "x", "values": [1, 2]}], "constraints_exact": true}
{"x": [1], "t": 1}
{"x": [2], "t": 2}
`

// TestBadSearchArguments gives the commands around recorded spaces flags that are out of range, contradict each other or would do
// nothing: each is refused before anything runs.
func TestBadSearchArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "small.jsonl", smallRecording)
	out := filepath.Join(dir, "out.csv")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--seeds", "0"}, "--seeds is 0: want 1 to"},
		{[]string{"--seeds", "9000000000000000000"}, "--seeds is 9000000000000000000: want 1 to"},
		{[]string{"--budget", "0"}, "--budget is 0"},
		{[]string{"--in-flight", "0"}, "--in-flight is 0"},
		{[]string{"--jobs=-1"}, "--jobs is -1: want 0 to"},
		{[]string{"--strategy", "random,randm"}, `strategy "randm" is unknown: use goptuna-tpe`},
		{[]string{"--strategy", "random,local,random"}, `strategy "random" is named twice`},
		{[]string{"--strategy", "random", "--transfer"}, "none of the strategies random reads records"},
		{[]string{"--transfer", "--adversarial", "reversed"}, "keep one"},
		{[]string{"--structures", "--ablate"}, "keep one"},
		{[]string{"--structures", "--noise"}, "take those out"},
		{[]string{"--structures", "--first-seed", "7"}, "take those out"},
		{[]string{"--structures", "--strategy", "gp,local"}, "take one strategy"},
		{[]string{"--structures"}, "none of the recordings has algorithm switches"},
		{[]string{"--ablate", "--strategy", "local"}, "has no parts to leave out"},
		{[]string{"--csv", filepath.Join(dir, "none", "a.csv")}, "name a file in a folder that exists"},
		{[]string{"--svg", dir}, "is a directory"},
		{[]string{"--csv", out, "--svg", out}, "give each its own file"},
		{[]string{"--only", "large"}, "leaves none of the 1 spaces"},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			code, text := complain(t, append([]string{"bench", "optimizer", "--spaces", dir}, c.args...)...)
			said(t, code, text, "", "", c.want)
		})
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"selftest", "--evaluations", "0"}, "at least 1 evaluation"},
		{[]string{"selftest", "--optimizer", "typo"}, "one of goptuna-tpe"},
		{[]string{"brute", "vector_add", filepath.Join(dir, "small.jsonl"), "--limit", "0"}, "small.jsonl"},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			code, text := complain(t, c.args...)
			said(t, code, text, "", "", c.want)
		})
	}
}

// TestBenchStopsWhereTheBudgetDoes shows no figure beyond the budget, none of a spread that one run cannot have, and leaves nothing
// behind when it is interrupted.
func TestBenchStopsWhereTheBudgetDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "small.jsonl", smallRecording)
	csv := filepath.Join(dir, "out.csv")
	args := []string{"bench", "optimizer", "--spaces", dir, "--strategy", "random", "--seeds", "1", "--budget", "2", "--csv", csv}
	var out, errs strings.Builder
	env := environment{args: args, getenv: os.Getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if code := run(stopped, env); code != exitStopped || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("an interrupted bench ended with %d: %s", code, errs.String())
	}
	if _, err := os.Stat(csv); err == nil {
		t.Error("an interrupted bench left its result file")
	}
	if code := run(t.Context(), env); code != exitOK {
		t.Fatalf("ended with %d: %s", code, errs.String())
	}
	b, err := os.ReadFile(csv)
	if err != nil || !strings.HasPrefix(string(b), "strategy,space,seed,ratio_1,ratio_2,returned") {
		t.Errorf("CSV %q, %v", b, err)
	}
	if text := out.String(); strings.Contains(text, "220") || strings.Contains(text, "±") {
		t.Errorf("figures of what did not run:\n%s", text)
	}
}
