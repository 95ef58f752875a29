package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFeedbackExperiment runs the script of structured against plain feedback, two repeats of each, with real processes and the scripted
// server, and holds what the models were told against the schema.
func TestFeedbackExperiment(t *testing.T) {
	t.Parallel()
	server, url := serve(t, thirty(t, 0), nil)
	dir := t.TempDir()
	file := nightFile(t, "softmax_2d", url, "10m", "  max_drafts: 4\n")
	cmd := exec.Command("../../deploy/feedback-experiment", file, "2", filepath.Join(dir, "store"), "--evaluations", "40")
	cmd.Env = append(append(os.Environ(), keyed()...), "RIDGEPOINT="+os.Args[0], asProcess+"=scripted")
	var errs safeBuffer
	cmd.Stderr = &errs
	started := time.Now()
	out, err := cmd.Output()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "store.log")) // there may be none
		t.Fatalf("%v after %s\n%s%s", err, time.Since(started).Round(time.Second), errs.String(), log)
	}
	for _, want := range []string{"(n=2)", "speedup", "best at 5 evaluations", "device-seconds", "tokens", "US dollars", "["} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the comparison lacks %q:\n%s", want, out)
		}
	}
	structured, plain := 0, 0
	for _, c := range server.Calls() {
		if strings.Contains(c.Messages, "NUMERICAL_STATUS :") {
			structured++
		} else if strings.Contains(c.Messages, "Attempt ") {
			plain++
		}
	}
	if structured == 0 || plain == 0 {
		t.Errorf("of %d calls %d told the structured record and %d plain words; want both", len(server.Calls()), structured, plain)
	}
	if code, listed, _ := ctlRun(t, filepath.Join(dir, "store"), "ls"); code != exitOK || strings.Count(listed, "softmax_2d-cpu-") != 4 {
		t.Errorf("exit code %d, want four campaigns:\n%s", code, listed)
	}
}
