package queue

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/workers"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/spool"
)

// roleEnv makes the test binary a process of a fleet instead of running tests: a JSON role.
const roleEnv = "RIDGEPOINT_QUEUE_TEST_ROLE"

// role is what a child process of a test does.
type role struct {
	Kind      string // compile, gpu, scheduler
	URL       string
	Host      string
	Dir       string // spool or store
	Journal   string // file to which starts and ends of measurements are appended
	Slots     int
	CompileMS int
	MeasureMS int
	Campaign  bool // workers judge the scripted campaign's candidates, not testJob's
	Trials    int
	Key       string
}

func TestMain(m *testing.M) {
	text := os.Getenv(roleEnv)
	if text == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "12"); err != nil { // these tests wait; they do not compute
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(m.Run())
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err = r.run(ctx)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r role) config() (Config, error) {
	ring, err := workers.ParseKeyFile([]byte(r.Key))
	return Config{Redis: r.URL, Keyring: ring}, err
}

func (r role) run(ctx context.Context) error {
	cfg, err := r.config()
	if err != nil {
		return err
	}
	log := zerolog.New(os.Stderr).With().Timestamp().Str("host", r.Host).Logger()
	n, err := openPatiently(ctx, cfg, Options{Host: r.Host, Log: log})
	if err != nil {
		return err
	}
	alive := make(chan error, 1)
	go func() { alive <- n.Run(ctx) }() // ends with ctx; waited for below
	switch r.Kind {
	case "compile", "gpu":
		err = r.work(ctx, n)
	case "scheduler":
		err = r.schedule(ctx, n, log)
	default:
		err = fmt.Errorf("role %q", r.Kind)
	}
	return errors.Join(err, <-alive, n.Close())
}

// openPatiently opens a node, trying for a while: a supervisor would start the process again.
func openPatiently(ctx context.Context, cfg Config, opt Options) (*Node, error) {
	for {
		n, err := Open(ctx, cfg, opt)
		if err == nil || sleep(ctx, 100*time.Millisecond) != nil {
			return n, err
		}
	}
}

func (r role) work(ctx context.Context, n *Node) error {
	s, err := spool.Open(r.Dir)
	if err != nil {
		return err
	}
	h := newScripted()
	h.compileTime, h.measureTime = time.Duration(r.CompileMS)*time.Millisecond, time.Duration(r.MeasureMS)*time.Millisecond
	f, err := os.OpenFile(r.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	note := func(what string) func(int64) {
		return func(x int64) { fmt.Fprintf(f, "%s %d %s %d\n", what, x, r.Host, time.Now().UnixMilli()) }
	}
	h.onStart, h.onMeasure = note("start"), note("end")
	cfg := WorkerConfig{Spool: s, Grace: time.Second}
	var judge harness.Harness = h
	target, arch := harness.TargetCUDA, "sm_90"
	if r.Campaign {
		judge, target, arch = r.campaignHarness(), harness.TargetCPU, "x86-64"
	}
	if r.Kind == "compile" {
		cfg.Compile, cfg.CompileSlots, cfg.Targets = &compile.Handler{Harness: judge}, r.Slots, []harness.Target{target}
	}
	if r.Kind == "gpu" {
		for i := range r.Slots {
			cfg.Devices = append(cfg.Devices, gpu.Device{ID: fmt.Sprintf("gpu%d", i), Arch: arch, Target: target, Harness: judge})
		}
	}
	return errors.Join(n.Worker(ctx, cfg), s.Close())
}

// process is a running role.
type process struct {
	t    *testing.T
	role role
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts a role as a process of its own, which dies with the test.
func spawn(t *testing.T, r role) *process {
	t.Helper()
	if r.Key == "" {
		r.Key = strings.Repeat("ab", 32)
	}
	p := &process{t: t, role: r}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	text, err := json.Marshal(p.role)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if testing.Verbose() && os.Getenv("RIDGEPOINT_LOG") != "" {
		p.cmd.Stderr = os.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	p.done = done
	go func(cmd *exec.Cmd) { // ends with the process
		_ = cmd.Wait() // killed on purpose
		close(done)
	}(p.cmd)
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	<-p.done
}

// event is a line of the journal.
type event struct {
	what string
	x    int64
	host string
	at   time.Time
}

// journal reads what the workers have noted so far.
func journal(t *testing.T, path string) []event {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []event
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e event
		var ms int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %s %d", &e.what, &e.x, &e.host, &ms); err == nil {
			e.at = time.UnixMilli(ms)
			out = append(out, e)
		}
	}
	return out
}

// waitFor polls a condition that another process brings about.
func waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %v: still not %s", limit, what)
		}
	}
}

func isLong() bool { return os.Getenv("RIDGEPOINT_LONG") == "1" }

func roleOf(t *testing.T, kind, url, host string, slots int) role {
	dir := t.TempDir()
	return role{Kind: kind, URL: url, Host: host, Dir: filepath.Join(dir, "spool"), Journal: filepath.Join(dir, "journal"), Slots: slots}
}
