//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if Main(os.Args[1:]) {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "__victim" {
		victim(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// full skips where this machine cannot make the whole sandbox.
func full(t *testing.T) {
	t.Helper()
	if c := Probe(); c.Level() != LevelFull {
		t.Skipf("this machine gives only a %s sandbox", c)
	}
}

// inside runs a shell script in a full sandbox and returns what it printed and its error.
func inside(t *testing.T, p Policy, script string) (string, error) {
	t.Helper()
	cmd, err := Command(p, LevelFull, []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatalf("command: %v", err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func TestFullSandboxShowsOnlyWhatThePolicyNames(t *testing.T) {
	t.Parallel()
	full(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("planted"), 0o644); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "in.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port

	p := Policy{Name: "test", WorkDir: work, Writable: true, Limits: Limits{FileBytes: 1 << 20, Processes: 64, CPUSeconds: 10, OpenFiles: 64, ScratchBytes: 1 << 20}}
	for _, c := range []struct {
		name, script string
		want         string // in the output
		fails        bool
	}{
		{"work folder is readable", "cat in.txt", "hello", false},
		{"work folder is writable", "echo x > out.txt && cat out.txt", "x", false},
		{"a secret outside is not there", "cat " + secret, "No such file", true},
		{"the password file is not there", "cat /etc/passwd", "No such file", true},
		{"the root is read-only", "echo x > /x", "Read-only file system", true},
		{"the system is read-only", "echo x > /usr/x", "Read-only file system", true},
		{"other processes are not seen", "ls /proc | grep -c '^[0-9]' || true", "", false},
		{"the host's parent cannot be signalled", fmt.Sprintf("kill -9 %d", os.Getpid()), "No such process", true},
		{"no socket reaches a listener", fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d'", port), "", true},
		{"files are limited", "head -c 2000000 /dev/zero > big", "", true},
		{"scratch is limited", "i=0; while [ $i -lt 4 ]; do head -c 900000 /dev/zero > /tmp/f$i || exit 1; i=$((i+1)); done", "No space left", true},
		{"setuid programs gain nothing", "su -c true", "", true},
		{"namespaces cannot be made", "unshare -U true", "", true},
		{"mounts cannot be made", "mount -t tmpfs x /tmp", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := inside(t, p, c.script)
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want failure %v; output:\n%s", err, c.fails, out)
			}
			if !strings.Contains(out, c.want) {
				t.Errorf("output %q, want %q in it", out, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(work, "out.txt")); err != nil {
		t.Errorf("what was written in the work folder is not there outside: %v", err)
	}
}

// The death of the sandbox's first process ends everything in it: the pipe that every descendant holds closes.
func TestForkBombEndsWithItsFirstProcess(t *testing.T) {
	t.Parallel()
	full(t)
	p := Policy{Name: "bomb", WorkDir: t.TempDir(), Limits: Limits{Processes: 32, CPUSeconds: 5}}
	cmd, err := Command(p, LevelFull, []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c", "b() { b | b & }; b; while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { _ = cmd.Process.Kill() }) // it may have ended by itself
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the bomb ended well")
	}
}

func TestProcessesAreLimited(t *testing.T) {
	t.Parallel()
	full(t)
	out, err := inside(t, Policy{Name: "processes", WorkDir: t.TempDir(), Limits: Limits{Processes: 8}},
		"i=0; while [ $i -lt 20 ]; do sleep 30 & i=$((i+1)); done; echo started all")
	if err == nil || strings.Contains(out, "started all") {
		t.Errorf("20 processes started under a limit of 8: %v\n%s", err, out)
	}
}

func TestCompilerRunsInside(t *testing.T) {
	t.Parallel()
	full(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc): install gcc")
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "k.c"), []byte("#include <math.h>\nfloat f(float x){return expf(x);}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := Policy{Name: "compile", WorkDir: work, Writable: true, Limits: Limits{MemoryBytes: 2 << 30, CPUSeconds: 20, Processes: 64, FileBytes: 64 << 20}}
	if out, err := inside(t, p, "cc -O2 -fopenmp -shared -fPIC k.c -o k.so -lm"); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(work, "k.so")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(work, "k.c"), []byte("#include \"/etc/passwd\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := inside(t, p, "cc -c k.c"); err == nil || !strings.Contains(out, "No such file") {
		t.Errorf("a host file was included: %v\n%s", err, out)
	}
}

// victim is a locked process that tries what its arguments say, after telling its parent the listener.
func victim(args []string) {
	listener, err := Lock()
	if err != nil {
		fmt.Println("lock:", err)
		os.Exit(9)
	}
	fmt.Println(listener)
	var answer [1]byte
	if _, err := os.Stdin.Read(answer[:]); err != nil {
		os.Exit(8)
	}
	if err := Seal(listener); err != nil {
		os.Exit(7)
	}
	var errno error
	switch args[0] {
	case "compute":
		done := make(chan int)
		for range 8 {
			go func() {
				b := make([]byte, 1<<20)
				done <- len(b)
			}()
		}
		for range 8 {
			<-done
		}
	case "open":
		_, errno = unix.Open(args[1], unix.O_RDONLY, 0)
	case "write":
		_, errno = unix.Open(args[1], unix.O_WRONLY|unix.O_CREAT, 0o644)
	case "socket":
		_, errno = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	case "exec":
		errno = unix.Exec("/bin/true", []string{"true"}, nil)
	case "fork":
		_, _, e := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		errno = e
	case "kill":
		errno = unix.Kill(unix.Getppid(), unix.SIGTERM)
	case "ptrace":
		errno = unix.PtraceAttach(unix.Getppid())
	case "clock":
		errno = unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: 1})
	case "limit":
		errno = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 10, Max: 10})
	}
	fmt.Println("ended", errno)
}

func TestLockedProcess(t *testing.T) {
	t.Parallel()
	if c := Probe(); !c.Notify {
		t.Skipf("this machine gives only a %s sandbox", c)
	}
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	readable := filepath.Join(dir, "lib")
	for _, f := range []string{secret, readable} {
		if err := os.WriteFile(f, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		want string // the violation; "" for none
	}{
		{"computing in threads is free", []string{"compute"}, ""},
		{"a named file opens", []string{"open", readable}, ""},
		{"a secret does not", []string{"open", secret}, "openat " + secret},
		{"nothing opens for writing", []string{"write", readable}, "openat " + readable + " for writing"},
		{"no socket", []string{"socket"}, "socket"},
		{"no program", []string{"exec"}, "execve /bin/true"},
		{"no process", []string{"fork"}, "clone (a new process)"},
		{"no signal", []string{"kill"}, fmt.Sprintf("kill process %d", os.Getpid())},
		{"no tracing", []string{"ptrace"}, "ptrace"},
		{"no clock", []string{"clock"}, "clock_settime"},
		{"no new limits", []string{"limit"}, "prlimit64 (a new limit)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, out := watchVictim(t, []string{readable, "/sys/kernel/mm", "/usr/"}, c.args)
			if got != c.want {
				t.Errorf("violation %q, want %q; output %q", got, c.want, out)
			}
			if c.want == "" && !strings.Contains(out, "ended <nil>") {
				t.Errorf("output %q, want it to end well", out)
			}
			if c.want != "" && !strings.Contains(out, "operation not permitted") {
				t.Errorf("output %q, want the call refused", out)
			}
		})
	}
}

// watchVictim runs a victim under a Watcher and returns the violation and what it printed.
func watchVictim(t *testing.T, readable, args []string) (violation, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"__victim"}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var listener int
	if _, err := fmt.Fscanln(stdout, &listener); err != nil {
		t.Fatalf("read the listener: %v", err)
	}
	w, err := Watch(cmd.Process.Pid, listener, readable)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	v, err := w.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// A refused call has failed in the child, which goes on to say so; later calls of its own exit may be refused too.
	for v2, err := w.Run(ctx); v2 != nil && err == nil; v2, err = w.Run(ctx) {
		continue
	}
	_, _ = out.ReadFrom(stdout)
	_ = cmd.Wait() // its status is not what is tested
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if v == nil {
		return "", out.String()
	}
	return v.String(), out.String()
}
