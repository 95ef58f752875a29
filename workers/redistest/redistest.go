// Package redistest runs real redis-servers for tests: each in a temporary folder on a unix socket, or on a free loopback
// port, ended with its test. It must not be imported by anything but tests.
package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server that a test may kill, stop and start again.
type Server struct {
	// URL is where it listens: "unix:///..." or "redis://127.0.0.1:port/0".
	URL  string
	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
	done chan struct{}
}

// Persistence says what survives a kill.
type Persistence int

// The kinds of persistence.
const (
	None Persistence = iota + 1 // nothing survives
	AOF                         // append-only file, synced every second, as deploy/redis has it
)

// Skip skips the test when there is no redis-server.
func Skip(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server on this machine: apt-get install redis-server")
	}
}

// Start runs a redis-server on a unix socket until the test ends.
func Start(t testing.TB, p Persistence, extra ...string) *Server {
	t.Helper()
	return launch(t, p, "", extra)
}

func launch(t testing.TB, p Persistence, conf string, extra []string) *Server {
	t.Helper()
	Skip(t)
	dir, err := os.MkdirTemp("", "rp-redis-") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a leftover in the temporary folder harms nothing
	socket := filepath.Join(dir, "s")
	var args []string
	if conf != "" {
		args = []string{conf}
	}
	args = append(args, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700")
	return start(t, dir, "unix://"+socket, p, append(args, extra...))
}

// StartWith runs a redis-server with a configuration file, on a unix socket, until the test ends.
func StartWith(t testing.TB, conf string, extra ...string) *Server {
	t.Helper()
	return launch(t, None, conf, extra)
}

// StartTCP runs a redis-server on a free loopback port until the test ends.
func StartTCP(t testing.TB, p Persistence, extra ...string) *Server {
	t.Helper()
	Skip(t)
	port := FreePort(t)
	return start(t, t.TempDir(), fmt.Sprintf("redis://127.0.0.1:%d/0", port), p, append([]string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1"}, extra...))
}

// FreePort returns a loopback port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

func start(t testing.TB, dir, url string, p Persistence, args []string) *Server {
	t.Helper()
	args = append(args, "--dir", dir, "--save", "", "--daemonize", "no", "--loglevel", "warning")
	if p == AOF {
		args = append(args, "--appendonly", "yes", "--appendfsync", "everysec")
	}
	s := &Server{URL: url, t: t, dir: dir, args: args}
	s.Restart()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

// Restart starts the server again and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out strings.Builder
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) { // ends with the process
		_ = cmd.Wait() // a killed server's status says nothing
		close(done)
	}(s.cmd)
	if !s.answers(10 * time.Second) {
		s.end(syscall.SIGKILL)
		s.t.Fatalf("redis-server does not answer: %s", out.String())
	}
}

func (s *Server) answers(limit time.Duration) bool {
	o, err := redis.ParseURL(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	o.MaxRetries = -1
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }() // nothing was written
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		err := c.Ping(s.t.Context()).Err()
		if err == nil || strings.HasPrefix(err.Error(), "NOAUTH") || strings.HasPrefix(err.Error(), "WRONGPASS") {
			return true
		}
		select {
		case <-tick.C:
		case <-s.done:
			return false
		case <-deadline.C:
			return false
		}
	}
}

// Kill ends the server with SIGKILL and waits until it is gone.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // gone already is as good
	<-s.done
}

// Freeze stops the server (SIGSTOP): connections stay open and nothing answers. Thaw lets it go on.
func (s *Server) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Client returns a client of its own, closed with the test.
func (s *Server) Client() *redis.Client {
	s.t.Helper()
	o, err := redis.ParseURL(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	c := redis.NewClient(o)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}
