package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/llm"
	"ridgepoint/llm/scripted"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// asProcess is the variable that makes the test binary a ridgepoint: "real" judges kernels with the real harness, "scripted" with
// nightHarness, "stuck" with one that never answers in the search.
const asProcess = "RIDGEPOINT_TEST_PROCESS"

// processMain is main, with a scripted harness where the variable says so.
func processMain() {
	if os.Getenv(asProcess) == "real" {
		main()
		os.Exit(exitOK)
	}
	os.Exit(untilSignal(func(ctx context.Context) int {
		return run(ctx, environment{args: os.Args[1:], getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
			harnessFunc: func(context.Context, harnessConfig) (harness.Harness, func() error, error) {
				if os.Getenv(asProcess) == "stuck" {
					return stuckHarness{nightHarness()}, func() error { return nil }, nil
				}
				return nightHarness(), func() error { return nil }, nil
			}})
	}))
}

// nightHarness knows the kernels of the thirty scripted drafts: three are fast, two are cheats, the others are worse than what is shipped.
func nightHarness() *harnesstest.Scripted {
	number := func(c *harness.Candidate, name string) float64 { v, _ := c.Configuration[name].AsFloat(); return v }
	speed := func(c *harness.Candidate) float64 {
		switch c.Structure.Launches[0].Kernel {
		case "softmax":
			return 1
		case "softmax_buffered":
			return 0.2 + 0.02*number(c, "TEAM")
		case "softmax_tiles":
			return 0.3 + 0.01*number(c, "TEAM")
		case "softmax_pairs":
			return 0.28 + 0.01*number(c, "TEAM")
		case "softmax_blocked", "softmax_online":
			return 0.45 + 0.01*number(c, "UNROLL")
		default:
			return 0.8
		}
	}
	return &harnesstest.Scripted{NoiseSD: 0.003, Latency: 4 * time.Millisecond,
		TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
			rows, _ := size.Get("rows")
			return float64(rows) * speed(c)
		},
		FaultFunc: func(c *harness.Candidate, _ *harness.Plan) harness.Fault {
			if k := c.Structure.Launches[0].Kernel; k == "softmax_known" || k == "softmax_remember" {
				return harness.FaultIncorrect
			}
			return harness.FaultNone
		}}
}

// process is a ridgepoint running by itself.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr safeBuffer
	ended          chan struct{}
	err            error // of Wait; to be read after ended
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends.
func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts a ridgepoint. It is killed with the test.
func start(t *testing.T, kind string, env []string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(append(os.Environ(), asProcess+"="+kind, "GOMEMLIMIT=1GiB"), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(p.kill)
	return p
}

// kill is kill -9, of the process and what it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone already: nothing to kill
	<-p.ended
}

// wait waits for the end and returns the exit code.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.kill()
		t.Fatalf("no end within %s:\n%s", limit, p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// until waits for what a person would wait for, and fails when the process ends before.
func (p *process) until(t *testing.T, what string, limit time.Duration, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !reached(); {
		select {
		case <-p.ended:
			if !reached() {
				t.Fatalf("the process ended before %s: %v\n%s%s", what, p.err, p.stdout.String(), p.stderr.String())
			}
			return
		case <-time.After(60 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s\n%s", limit, what, p.stderr.String())
		}
	}
}

// logged is what a campaign's log tells.
type logged struct {
	*campaignView
	exchanges []*scheduler.Exchange
	drafts    map[string]*scheduler.Draft // by name, the last word on each
	controls  []*scheduler.Control
	notes     []string
	events    []any // their data, in order
}

// read folds the log of a store's only campaign; nil while there is none.
func readLog(t *testing.T, dir string) *logged {
	t.Helper()
	store, err := memory.OpenReader(t.Context(), dir)
	if err != nil {
		return nil
	}
	defer func() { _ = store.Close() }() // only read
	l := &logged{drafts: map[string]*scheduler.Draft{}}
	l.campaignView, err = viewOf(t.Context(), store, "last", func(_ *scheduler.Event, data any, _ *decide.State) {
		l.events = append(l.events, data)
		switch d := data.(type) {
		case *scheduler.Exchange:
			l.exchanges = append(l.exchanges, d)
		case *scheduler.Draft:
			l.drafts[d.Name] = d
		case *scheduler.Control:
			l.controls = append(l.controls, d)
		case *scheduler.Note:
			l.notes = append(l.notes, d.Text)
		}
	})
	if err != nil {
		return nil
	}
	return l
}

// thirty is the script of thirty drafts, with another delay.
func thirty(t *testing.T, delay time.Duration) *scripted.Script {
	t.Helper()
	s, err := scripted.Load("../../scheduler/proposer/testdata/softmax30/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Delay = delay
	return s
}

// serve serves a script to callers with the key; wrap, if given, stands before it.
func serve(t *testing.T, script *scripted.Script, wrap func(http.Handler) http.Handler) (*scripted.Server, string) {
	t.Helper()
	s, err := scripted.New(script, llm.NewSecret(processKey))
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = s
	if wrap != nil {
		h = wrap(s)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections() // hanging answers are part of scripts
		web.Close()
	})
	return s, web.URL + "/v1"
}

// processKey is planted: it may be found nowhere but in the process's own environment.
const processKey = "sk-planted-5d1c7e90aa31b264"

const keyVariable = "RIDGEPOINT_TEST_MODEL_KEY"

// nightFile writes a campaign file whose models are at url. more are lines of its llm section.
func nightFile(t *testing.T, task, url, wall, more string) string {
	t.Helper()
	text := fmt.Sprintf(`name: night
task: %s
target: cpu
seed: 7
budget: {wall: %s}
optimizer: random
probes: 1
racing: false
confirm: {aa_rounds: 6, min_rounds: 4, max_rounds: 8, share: 0.25}
llm:
  models:
    - {name: scripted, base_url: %s, model: scripted, key_env: %s, retries: 1, stall_timeout: 400ms, price: {prompt: 1, completion: 5}}
%s`, task, wall, url, keyVariable, more)
	path := filepath.Join(t.TempDir(), "night.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// patient lets the model of a file of nightFile's be silent for as long as a test holds its calls, however slow the machine is.
func patient(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("stall_timeout: 400ms"), []byte("stall_timeout: 5m"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// keyed is the environment of a process that may use the model.
func keyed() []string { return []string{keyVariable + "=" + processKey} }

// gate lets a counted number of calls through to the server and holds the others until their caller goes away.
type gate struct {
	next    http.Handler
	permits chan struct{}
	waiting atomic.Int64 // calls that have no permit yet
}

func newGate(h http.Handler) *gate {
	return &gate{next: h, permits: make(chan struct{}, 1000)} // room for more permits than a test gives
}

// ServeHTTP waits for a permit. The body is read first: only then does the server notice that a caller has gone.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.waiting.Add(1)
	select {
	case <-g.permits:
		g.waiting.Add(-1)
		g.next.ServeHTTP(w, r)
	case <-r.Context().Done():
		g.waiting.Add(-1)
	}
}

// left waits until the server has noticed that the callers of a killed process are gone: one of them would take the next permit, for a
// reply that reaches nobody.
func (g *gate) left(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); g.waiting.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("callers of a killed process still wait at the gate after a minute")
		}
	}
}

func (g *gate) let(n int) {
	for range n {
		g.permits <- struct{}{}
	}
}

func finished(s *scripted.Server) int {
	n := 0
	for _, c := range s.Calls() {
		if c.Finished {
			n++
		}
	}
	return n
}

// ctl says a word to the campaign of a store, as a person would.
func ctl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	code, out, errs := ctlRun(t, dir, append([]string{"ctl", "last"}, args...)...)
	if code != exitOK || !strings.Contains(out, "taken in") {
		t.Fatalf("ctl %v: exit code %d: %s%s", args, code, out, errs)
	}
	return out
}
