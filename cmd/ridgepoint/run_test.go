package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
)

// fakeHarness is a harness in whose world structures named blocked are 3 times, and all others 2 times, as fast as the baseline.
func fakeHarness() *harnesstest.Scripted {
	return &harnesstest.Scripted{NoiseSD: 0.005, Latency: 500 * time.Microsecond, TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
		elements := 1.0
		for _, d := range size {
			elements *= float64(d.Value)
		}
		t := elements / 100
		switch {
		case len(c.Structure.Params) == 0: // the baseline
			return t
		case c.Structure.Name == "blocked":
			v, _ := c.Configuration["VEC"].AsFloat()
			return t / 3 * (1 + 0.01*v)
		default:
			return t / 2
		}
	}}
}

// command runs one command against the scripted harness in a store of its own.
func command(t *testing.T, dir string, h harness.Harness, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return commandIn(t.Context(), dir, h, args...)
}

func commandIn(ctx context.Context, dir string, h harness.Harness, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, environment{args: args, stdout: &out, stderr: &errs, stdin: strings.NewReader(""),
		getenv: func(name string) string {
			if name == "RIDGEPOINT_DATA" {
				return dir
			}
			return os.Getenv(name)
		},
		harnessFunc: func(context.Context, harnessConfig) (harness.Harness, func() error, error) {
			return h, func() error { return nil }, nil
		}})
	return code, out.String(), errs.String()
}

func TestRunEndsWithTheObjectOfTheManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := command(t, dir, fakeHarness(), "run", "--evaluations", "40", "--seed", "7", "--json")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &object); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout)
	}
	keys := func(raw json.RawMessage) string {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		var names []string
		for k := range m {
			names = append(names, k)
		}
		sort.Strings(names)
		return strings.Join(names, " ")
	}
	for part, want := range map[string]string{
		"":           "campaign candidates device_busy evaluations evaluations_per_second target task winner worker_held",
		"candidates": "cached censored evaluated failed",
		"winner":     "candidate configuration interval replayed_speedup sizes speedup structure",
	} {
		raw := json.RawMessage(stdout)
		if part != "" {
			raw = object[part]
		}
		if diff := cmp.Diff(want, keys(raw)); diff != "" {
			t.Errorf("keys of %q differ (-want +got):\n%s", part, diff)
		}
	}
	var winner struct {
		Structure       string
		ReplayedSpeedup float64 `json:"replayed_speedup"`
		Sizes           []map[string]any
	}
	if err := json.Unmarshal(object["winner"], &winner); err != nil {
		t.Fatal(err)
	}
	if winner.Structure != "blocked" || winner.ReplayedSpeedup < 2.5 || len(winner.Sizes) != 8 || winner.Sizes[0]["replayed_us"] == nil {
		t.Errorf("winner %+v, want blocked at nearly 3 times over 8 sizes", winner)
	}
}

func TestCommandsOverAFinishedCampaign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := fakeHarness()
	if code, stdout, stderr := command(t, dir, h, "run", "--evaluations", "30", "--seed", "3"); code != exitOK || !strings.Contains(stdout, "replayed") {
		t.Fatalf("run: exit code %d\n%s%s", code, stdout, stderr)
	}
	page := filepath.Join(dir, "page.html")
	out := filepath.Join(dir, "winner")
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"ls", exitOK, []string{"softmax_2d-cpu-", "done", "replayed", "blocked"}},
		{"ls --json", exitOK, []string{`"state":"done"`, `"evaluations":30`}},
		{"report", exitOK, []string{"Confirmations", "crowned", "Nearest losers", "Structures", "Reproduce", "--seed 3"}},
		{"report last --json", exitOK, []string{`"points":[`, `"losers":[`}},
		{"report --html " + page, exitOK, []string{page}},
		{"rescore --reward {kind:\x00literal}", exitOK, []string{"RANK", "blocked"}},
		{"rescore --reward {kind:\x00nonsense}", exitUsage, nil},
		{"diff last:2 last:3", -1, []string{"ratio"}},
		{"diff last:2 last:2", exitOK, []string{"same candidate"}},
		{"diff last:2 last:9999", exitUsage, nil},
		{"replay --seed 7", exitOK, []string{"holds"}},
		{"replay --seed 7 --json", exitOK, []string{`"holds":true`}},
		{"replay --json", -1, []string{`"speedup":`}}, // of a seed drawn: one honest winner in a few hundred does not hold
		{"export --out " + out, exitOK, []string{"driver"}},
		{"report nosuch", exitUsage, nil},
		{"resume", exitOK, []string{"replayed"}},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x00", " ")
		}
		code, stdout, stderr := command(t, dir, h, args...)
		if c.code >= 0 && code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: %q is missing in\n%s", c.args, want, stdout)
			}
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "prefers-color-scheme: dark", "Why the winner won", "Nearest losers", "Reproduce"} {
		if !bytes.Contains(html, []byte(want)) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, never := range []string{"<script", "http://", "https://", "src=", "ZgotmplZ"} {
		if bytes.Contains(html, []byte(never)) {
			t.Errorf("the page holds %q: it must stand on its own", never)
		}
	}
	for _, f := range []string{"winner.c", "baseline.c", "driver.c", "plan.json"} {
		if _, err := os.Stat(filepath.Join(out, f)); err != nil {
			t.Errorf("export: %v", err)
		}
	}
}

func TestInterruptedRunResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	h := fakeHarness()
	h.ErrorFunc = func(n int64) error {
		if n == 12 {
			cancel()
		}
		return nil
	}
	code, _, stderr := commandIn(ctx, dir, h, "run", "--evaluations", "30", "--seed", "3")
	if code != exitStopped || !strings.Contains(stderr, "ridgepoint resume softmax_2d-cpu-") {
		t.Fatalf("exit code %d, want %d and how to resume\n%s", code, exitStopped, stderr)
	}
	code, stdout, stderr := command(t, dir, h, "resume", "--json")
	if code != exitOK || !strings.Contains(stdout, `"evaluations":30`) {
		t.Fatalf("resume: exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestWrongInputIsToldApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "nosuchcampaign"}, "softmax-cpu"},
		{[]string{"run", "--task", "softmax_3d"}, "softmax_2d"},
		{[]string{"run", "--target", "tpu"}, "cpu, cuda or hip"},
		{[]string{"run", "--optimizer", "guess"}, "tpe"},
		{[]string{"ls"}, "ridgepoint run"},
	} {
		code, _, stderr := command(t, dir, fakeHarness(), c.args...)
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", c.args, code, exitUsage, c.want, stderr)
		}
	}
}
