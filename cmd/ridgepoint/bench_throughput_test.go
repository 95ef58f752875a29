package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
)

// TestThroughputOnTheEmulatedDevice sends candidates the whole way over the embedded queue: they are counted, and no time is told.
func TestThroughputOnTheEmulatedDevice(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is not installed: the emulated device needs it")
	}
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code := run(t.Context(), environment{args: []string{"bench", "throughput", "--emulated", "2", "--task", "vector_add", "--records", file, "--json"}, stdout: &out, stderr: &errs, stdin: strings.NewReader(""),
		getenv: func(name string) string {
			if name == "RIDGEPOINT_CACHE" {
				return filepath.Join(os.TempDir(), "ridgepoint-test")
			}
			return os.Getenv(name)
		}})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var got throughput
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if got.Evaluations != 2 || got.Failed != 0 || !got.Untimed || got.PerSecond != 0 || got.WallSeconds != 0 || len(got.MedianMS) != 0 {
		t.Errorf("%+v: want 2 evaluations and no time", got)
	}
	records, err := os.ReadFile(file)
	if err != nil || strings.Count(string(records), "\n") != 2 {
		t.Errorf("%d records, %v", strings.Count(string(records), "\n"), err)
	}
}

// TestThroughputSplit sums up records of a second: rates, whose trials held the device, and what verification took of it.
func TestThroughputSplit(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record := func(purpose string, from, to float64, split harness.Split) *harness.Record {
		at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
		split.Total = to - from
		return &harness.Record{Purpose: purpose, Report: harness.Report{Fault: harness.FaultNone, Started: at(from), Finished: at(to), Split: split}}
	}
	each := harness.Split{Device: 0.2, Flush: 0.08, Kernels: 0.06, Verify: 0.02, Measure: 0.2}
	raced := record("search", 0.75, 1, harness.Split{Device: 0.05})
	raced.Report.Censored = &harness.Censored{MeasuredSizes: 1, LowerBound: 1.2}
	got := summarise([]*harness.Record{record("aa", -5, -1, each), record("search", 0, 0.25, each), record("confirm", 0.25, 0.5, harness.Split{Device: 0.25}), record("search", 0.5, 0.75, each), raced})
	for name, pair := range map[string][2]float64{
		"evaluations": {got.PerSecond, 2}, "decided": {got.Decided, 3}, "busy": {got.DeviceBusy, 0.7}, "held": {got.WorkerHeld, 1}, "held by searches": {got.HeldBy["search"], 0.75},
		"held by confirmations": {got.HeldBy["confirm"], 0.25}, "verification": {got.Verification, 0.3}, "rest": {got.MedianMS["rest"], 30}, "flush": {got.MedianMS["flush"], 80},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	var text strings.Builder
	if err := got.print(&text); err != nil || !strings.Contains(text.String(), "verification takes 30 %") {
		t.Errorf("%v: %s", err, text.String())
	}
}
