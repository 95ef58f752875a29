package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/workers/redistest"
)

// scriptedEnv is an environment whose harness is scripted.
func scriptedEnv(t *testing.T, args ...string) (environment, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	var out, errs bytes.Buffer
	env := environment{args: args, getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
		harnessFunc: func(context.Context, harnessConfig) (harness.Harness, func() error, error) {
			h := &harnesstest.Scripted{NoiseSD: 0.004, Latency: time.Millisecond, TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
				if len(c.Configuration) == 0 {
					return 100
				}
				return 60
			}}
			return h, func() error { return nil }, nil
		}}
	return env, &out, &errs
}

// TestBatch runs a night of two campaigns, in the order written and within the night's evaluations, and finds them done the
// second time.
func TestBatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "friday.yaml")
	text := "budget: {evaluations: 40}\ncampaigns:\n  - {campaign: softmax-cpu, weight: 1}\n  - {campaign: softmax-cpu, task: vector_add, weight: 3}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Campaign string
		Skipped  string
		Error    string
		Result   *struct {
			Task        string `json:"task"`
			Evaluations int64  `json:"evaluations"`
		}
	}
	night := func() (int, []line) {
		env, out, errs := scriptedEnv(t, "batch", file, "--json", "--data", filepath.Join(dir, "data"))
		code := run(t.Context(), env)
		var lines []line
		dec := json.NewDecoder(out)
		for dec.More() {
			var l line
			if err := dec.Decode(&l); err != nil {
				t.Fatalf("%v; stderr: %s", err, errs)
			}
			lines = append(lines, l)
		}
		if code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		return code, lines
	}
	_, first := night()
	if len(first) != 2 || first[0].Result == nil || first[1].Result == nil || first[0].Result.Task != "softmax_2d" || first[1].Result.Task != "vector_add" {
		t.Fatalf("got %+v; want softmax_2d, then vector_add", first)
	}
	total := first[0].Result.Evaluations + first[1].Result.Evaluations
	if first[0].Result.Evaluations > 12 || total > 44 { // a few may be in flight when the budget is used up
		t.Errorf("%d and %d evaluations; want about 10 and 30", first[0].Result.Evaluations, first[1].Result.Evaluations)
	}
	_, again := night()
	for _, l := range again {
		if l.Result != nil || !strings.HasPrefix(l.Skipped, "done before") {
			t.Errorf("the second time: %+v; want it skipped as done", l)
		}
	}
}

// TestSchedulerNeedsAFleet holds the messages of commands that need a Redis to what to do.
func TestSchedulerNeedsAFleet(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"scheduler", "softmax-cpu"}, {"worker"}, {"fleet"}, {"drain", "host"}} {
		env, _, errs := scriptedEnv(t, args...)
		if code := run(t.Context(), env); code != exitUsage || !strings.Contains(errs.String(), "RIDGEPOINT_REDIS") {
			t.Errorf("%v: exit code %d, %s; want %d and how to name a Redis", args, code, errs, exitUsage)
		}
	}
	env, _, errs := scriptedEnv(t, "worker", "--redis", "redis.example:6379")
	if code := run(t.Context(), env); code != exitUsage || !strings.Contains(errs.String(), "key") {
		t.Errorf("a remote Redis without a key: exit code %d, %s", code, errs)
	}
}

// TestRunOverRedis runs a campaign through a real redis-server, with another process's view of the fleet.
func TestRunOverRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	data := t.TempDir()
	env, out, errs := scriptedEnv(t, "run", "softmax-cpu", "--evaluations", "12", "--redis", srv.URL, "--data", data, "--json", "--limits", "gpu=1,compile=2")
	if code := run(t.Context(), env); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.Contains(out.String(), `"evaluations": 12`) && !strings.Contains(out.String(), `"evaluations":12`) {
		t.Errorf("got %.300s; want 12 evaluations", out)
	}
	env, out, errs = scriptedEnv(t, "fleet", "--redis", srv.URL, "--json")
	if code := run(t.Context(), env); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var view fleetView
	if err := json.Unmarshal(out.Bytes(), &view); err != nil {
		t.Fatal(err)
	}
	if len(view.Queues) == 0 || len(view.Limits) != 2 {
		t.Errorf("fleet shows queues %v and limits %v", view.Queues, view.Limits)
	}
}
