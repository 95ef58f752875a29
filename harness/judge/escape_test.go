package judge

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
)

// attempt is one row of testdata/escapes/attempts.json: a kernel that computes the right answer and tries one of Calls.
type attempt struct {
	File  string   `json:"file"`
	Calls []string `json:"calls"` // acceptable names of the refused call: libraries differ
}

// Every attempt of a candidate to reach beyond its computing fails, is named, ends that candidate alone, and leaves no trace:
// the secret unread, the listener unvisited, nothing written, this process alive, and the next candidate judged as always.
func TestEscapes(t *testing.T) {
	if c := sandbox.Probe(); c.Level() != sandbox.LevelFull {
		t.Skipf("this machine gives only a %s sandbox", c)
	}
	b, err := os.ReadFile(filepath.Join("testdata", "escapes", "attempts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var attempts []attempt
	if err := json.Unmarshal(b, &attempts); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("planted"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	var visits atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return // closed at the end of the test
			}
			visits.Add(1)
			_ = c.Close()
		}
	}()
	fill := strings.NewReplacer("@SECRET@", secret, "@OUTSIDE@", outside, "@PID@", strconv.Itoa(os.Getpid()), "@PORT@", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))

	j := newJudge(t, 2*time.Second)
	tk := loadTask(t, "vadd")
	before := time.Now()
	for _, a := range attempts {
		t.Run(strings.TrimSuffix(a.File, ".c"), func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join("testdata", "escapes", a.File))
			if err != nil {
				t.Fatal(err)
			}
			r := evaluate(t, j, sourceRequest(t, tk, a.File, fill.Replace(string(source))))
			if r.Fault != harness.FaultCrash || r.Evidence == nil || r.Evidence.Kind != "sandbox" {
				t.Fatalf("judged %s (%s) with evidence %+v, want a crash by the sandbox", r.Fault, r.Reason, r.Evidence)
			}
			if !slices.ContainsFunc(a.Calls, func(call string) bool { return strings.Contains(r.Reason, call) }) {
				t.Errorf("reason %q names none of %v", r.Reason, a.Calls)
			}
			files, err := os.ReadDir(outside)
			if err != nil || len(files) != 1 {
				t.Errorf("outside lie %v (%v), want the secret alone", files, err)
			}
		})
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("the listener was visited %d times", n)
	}
	if wall := time.Since(before.Round(0)); wall < 0 || wall > time.Hour {
		t.Errorf("the clock was set: the test took %v", wall)
	}
	if r := evaluate(t, j, request(t, tk, "honest_vadd.c", harness.Plan{Stage: harness.StageSearch, Seed: 1})); !r.Fault.Measured() {
		t.Errorf("the next candidate is judged %s (%s)", r.Fault, r.Reason)
	}
}

// sourceRequest asks for a kernel given as text.
func sourceRequest(t *testing.T, tk *harness.Task, name, source string) *harness.Request {
	t.Helper()
	s, err := task.ParseStructure(strings.TrimSuffix(name, ".c"), source, tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &harness.Request{Task: tk, Candidate: c, Plan: harness.Plan{Stage: harness.StageSearch, Seed: 7}}
}
