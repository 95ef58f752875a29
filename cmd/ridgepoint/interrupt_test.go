package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ridgepoint/harness"
)

// stuckHarness does not come back from a search's measurement, whatever its context says.
type stuckHarness struct{ harness.Harness }

// Benchmark answers for the baseline only.
func (s stuckHarness) Benchmark(ctx context.Context, r *harness.Request, b *harness.Build) (*harness.Report, error) {
	if r.Plan.Rounds == 0 {
		if dir := os.Getenv("RIDGEPOINT_TEST_STUCK"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "stuck"), nil, 0o600); err != nil {
				return nil, err
			}
		}
		<-context.Background().Done() // never
	}
	return s.Harness.Benchmark(ctx, r, b)
}

// shortCampaign is a campaign file that ends after so many evaluations.
func shortCampaign(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "short.yaml")
	text := "name: short\ntask: softmax_2d\ntarget: cpu\nseed: 7\nbudget: {wall: 5m, evaluations: 12}\noptimizer: random\nprobes: 1\nconfirm: {aa_rounds: 6, min_rounds: 4, max_rounds: 8, share: 0.25}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSecondInterruptEndsAtOnce stops a run that cannot stop cleanly: the first interrupt lays the campaign down and says that
// another one ends the process; the second does, and the store takes the campaign up again.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	flag := t.TempDir()
	p := start(t, "stuck", []string{"RIDGEPOINT_TEST_STUCK=" + flag}, "run", shortCampaign(t), "--data", dir)
	p.until(t, "a measurement", time.Minute, func() bool { _, err := os.Stat(filepath.Join(flag, "stuck")); return err == nil })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.until(t, "the word of the second interrupt", time.Minute, func() bool { return strings.Contains(p.stderr.String(), "another interrupt ends the process at once") })
	select {
	case <-p.ended:
		t.Fatalf("the process ended by one interrupt although its worker is stuck: %v", p.err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wait(t, 20*time.Second)
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() || ws.Signal() != syscall.SIGINT {
		t.Errorf("ended by %v; want the signal's default effect", p.cmd.ProcessState)
	}
	again := start(t, "scripted", nil, "resume", "last", "--data", dir)
	if code := again.wait(t, 2*time.Minute); code != exitOK && code != exitVerdict {
		t.Errorf("resume ended with %d:\n%s", code, again.stderr.String())
	}
	if text := again.stdout.String(); !strings.Contains(text, "softmax") {
		t.Errorf("resume printed\n%s", text)
	}
}

// TestOneInterruptStopsCleanly shows what the second one is spared: one interrupt ends a run that can stop, with its own exit code and
// the command that goes on.
func TestOneInterruptStopsCleanly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, "scripted", nil, "run", shortCampaign(t), "--data", dir, "--evaluations", "1000000")
	p.until(t, "the search", time.Minute, func() bool { l := readLog(t, dir); return l != nil && len(l.events) > 10 })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t, time.Minute); code != exitStopped || !strings.Contains(p.stderr.String(), "ridgepoint resume ") {
		t.Errorf("ended with %d:\n%s\nwant %d and how to go on", code, p.stderr.String(), exitStopped)
	}
}
