//go:build linux

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/verify"
)

// process is one child, started and waiting for orders, or serving a program.
type process struct {
	cmd     *exec.Cmd
	dir     string   // its work folder
	control *os.File // packets
	output  *tail    // what it printed
	queues  *queues
	done    chan struct{}
	waitErr error // of cmd.Wait, once done is closed

	watching  *sandbox.Watcher
	watchStop context.CancelFunc
	watchDone chan struct{}

	mu        sync.Mutex
	violation *sandbox.Violation
	killed    bool // by this parent
}

// spawner starts children from one thread that lives as long as the engine: a child is killed when the thread that started it
// ends (PR_SET_PDEATHSIG), so that no child outlives this process. The thread outlives the engine: it may have started others' children
// before it was the spawner's, a compiler or a model's program, which would be killed with it.
type spawner struct {
	orders chan func()
	done   chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{orders: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for do := range s.orders {
			do()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1) // one answer
	s.orders <- func() { result <- cmd.Start() }
	return <-result
}

func (s *spawner) close() {
	close(s.orders)
	<-s.done
}

// startTimeout bounds making the sandbox and the binary's own start.
const startTimeout = 20 * time.Second

// outputLimit is how much a candidate may print before it is ended: its output goes nowhere.
const outputLimit = 1 << 20

// spawn starts a child with an empty work folder of its own.
func (e *Engine) spawn(verifying bool) (*process, error) {
	dir, err := os.MkdirTemp(e.runDir, "child-")
	if err != nil {
		return nil, fmt.Errorf("make a work folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the child may run as another user
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, err := e.spawnIn(dir, verifying)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a runner child: %w", err), os.RemoveAll(dir))
	}
	return p, nil
}

func (e *Engine) spawnIn(dir string, verifying bool) (*process, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	defer func() { _ = theirs.Close() }() // the child has its copy
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]))
	}
	p := &process{dir: dir, control: os.NewFile(uintptr(fds[0]), "control"), output: &tail{limit: outputLimit}, done: make(chan struct{})}
	policy := sandbox.Policy{Name: "candidate", WorkDir: dir, Locks: sandbox.Probe().Notify, Limits: e.limits()}
	cmd, err := sandbox.Command(policy, e.level, e.environment(verifying), "self", childArgument, e.coreList())
	if err != nil {
		return nil, errors.Join(err, p.control.Close())
	}
	p.output.overflow = p.kill
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.WaitDelay = time.Second // a process that escaped the group may hold the pipe
	cmd.ExtraFiles = []*os.File{theirs, e.arena.file, e.lock}
	p.cmd = cmd
	if err := e.spawner.start(cmd); err != nil {
		return nil, errors.Join(err, p.control.Close())
	}
	p.queues = newQueues(cmd.Process.Pid)
	go func() {
		p.waitErr = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// environment is all that a child sees of the environment. With one processor the Go runtime would take it from every call into
// C that lasts 20 us, and wake its monitor each time the call ends; with an idle second one it leaves calls alone for 10 ms.
// Fresh memory is filled with a pattern while verifying: scratch that
// is used before it is written then gives wrong results instead of lucky ones. OpenMP threads have a core each, and spin for a
// tenth of a millisecond where libgomp's default is several: unbound, both threads of a pair were put on one core by a busy
// scheduler, and one spun for a millisecond while the other waited for its place (256 x 256 softmax: 1070 us instead of 41).
func (e *Engine) environment(verifying bool) []string {
	cores := strconv.Itoa(len(e.cores))
	env := []string{"LC_ALL=C", "GOTRACEBACK=none", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=2", "OMP_NUM_THREADS=" + cores, "OMP_DYNAMIC=false", "OMP_PROC_BIND=true", "OMP_PLACES=" + e.places(), "GOMP_SPINCOUNT=3000", "OPENBLAS_NUM_THREADS=" + cores}
	if verifying {
		env = append(env, "MALLOC_PERTURB_=165")
	}
	return env
}

// places lists the cores as OpenMP writes places. Left to itself libgomp reads them from sysfs, which the sandbox does not show,
// and then binds nothing, whatever OMP_PROC_BIND says: both threads of a softmax then shared one core in three launches of four
// of over 200 us (1024 x 512: 840 us instead of 350).
func (e *Engine) places() string {
	words := make([]string, len(e.cores))
	for i, c := range e.cores {
		words[i] = fmt.Sprintf("{%d}", c)
	}
	return strings.Join(words, ",")
}

func (e *Engine) limits() sandbox.Limits {
	l := sandbox.Limits{OpenFiles: 64, FileBytes: 1, Processes: 512}
	if !raceEnabled { // the race detector reserves terabytes
		l.MemoryBytes = childMemoryBytes
	}
	return l
}

// childMemoryBytes bounds a child's address space: the Go runtime's reservations, the buffers, and what a kernel allocates.
const childMemoryBytes = 64 << 30

// processorTime returns what all threads of the child have used so far, by the kernel's account; 0 once it has ended.
func (p *process) processorTime() time.Duration {
	const schedClock = 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3) makes the number (~pid << 3) | 2
	var ts unix.Timespec
	if unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|schedClock), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// kill ends the child's whole process group.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // ESRCH: it has ended already
}

// close ends the child and removes its folder.
func (p *process) close() error {
	p.kill()
	<-p.done
	if p.watchDone != nil {
		p.watchStop()
		<-p.watchDone
		_ = p.watching.Close() // three descriptors; nothing to do about a failure
	}
	return errors.Join(p.control.Close(), os.RemoveAll(p.dir))
}

// ask sends a packet and waits for the answer. Silence past the limit is a hang, a closed connection the child's end: both
// are *verify.Stop.
func (p *process) ask(ctx context.Context, packet []byte, limit time.Duration, buf []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.control.SetDeadline(time.Now()) }) // wakes the read below
	defer stop()
	if err := p.control.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := p.control.Write(packet); err != nil {
		return nil, p.ended(ctx, err, limit)
	}
	n, err := p.control.Read(buf)
	if err != nil || n == 0 {
		if err == nil {
			err = io.EOF
		}
		return nil, p.ended(ctx, err, limit)
	}
	if buf[0] == answerFail {
		return nil, &verify.Stop{Fault: harness.FaultLaunch, Reason: string(buf[1:n]), Evidence: harness.Evidence{Kind: verify.KindLaunch}}
	}
	return buf[:n], nil
}

// ended finds out why a child no longer answers.
func (p *process) ended(ctx context.Context, cause error, limit time.Duration) error {
	if ctx.Err() != nil {
		p.kill()
		<-p.done
		return ctx.Err()
	}
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		p.kill()
		<-p.done
		return &verify.Stop{Fault: harness.FaultTimeout, Reason: fmt.Sprintf("still running after %s: killed", limit.Round(time.Millisecond)), Evidence: harness.Evidence{Kind: verify.KindTimeout}}
	}
	select {
	case <-p.done:
	case <-time.After(2 * time.Second): // it closed its descriptors and goes on
		p.kill()
		<-p.done
		return &verify.Stop{Fault: harness.FaultCrash, Reason: "closed the connection to the harness", Evidence: harness.Evidence{Kind: verify.KindExit}}
	}
	return p.autopsy()
}

// signalText finds the signal in what the Go runtime prints when code below it dies.
var signalText = regexp.MustCompile(`\b(SIG[A-Z]{2,6})\b`)

// autopsy names the end of a child that has ended by itself.
func (p *process) autopsy() error {
	p.mu.Lock()
	violation, killed := p.violation, p.killed
	p.mu.Unlock()
	printed := p.output.String()
	stop := &verify.Stop{Fault: harness.FaultCrash, Evidence: harness.Evidence{Kind: verify.KindCrash}}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch code := p.cmd.ProcessState.ExitCode(); {
	case violation != nil:
		stop.Evidence.Kind, stop.Reason = verify.KindSandbox, "tried what the sandbox forbids: "+violation.String()
	case p.output.full():
		stop.Evidence.Kind, stop.Reason = verify.KindOutput, fmt.Sprintf("printed over %d bytes: killed", outputLimit)
	case status.Signaled() && !killed:
		stop.Evidence.Signal = unix.SignalName(status.Signal())
		stop.Reason = "died of " + stop.Evidence.Signal
	case code == sandbox.StageFailed:
		return fmt.Errorf("runner child: %s", lastLine(printed))
	case code == 2 && signalText.MatchString(printed):
		stop.Evidence.Signal = signalText.FindString(printed)
		stop.Reason = "died of " + stop.Evidence.Signal
	case code >= 0:
		stop.Evidence.Kind, stop.Reason = verify.KindExit, fmt.Sprintf("ended its process: exit(%d)", code)
	default:
		stop.Reason = fmt.Sprintf("ended: %v", p.waitErr)
	}
	return stop
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// load gives the child a shared object and waits until its kernels are found.
func (p *process) load(ctx context.Context, object string, kernels []string, locked bool, limit time.Duration) error {
	name := "kernel.so"
	if err := copyFile(object, filepath.Join(p.dir, name)); err != nil {
		return fmt.Errorf("hand over the shared object: %w", err)
	}
	order, err := json.Marshal(loadOrder{Path: "./" + name, Kernels: kernels, Lock: locked})
	if err != nil {
		return err
	}
	buf := make([]byte, maxPacket)
	answer, err := p.ask(ctx, append([]byte{opLoad}, order...), limit, buf)
	if err != nil {
		return err
	}
	if answer[0] != answerListen {
		return nil
	}
	listener, err := strconv.Atoi(string(answer[1:]))
	if err != nil {
		return fmt.Errorf("listener %q of a runner child: want a number", answer[1:])
	}
	if err := p.watch(listener, name); err != nil {
		return err
	}
	_, err = p.ask(ctx, []byte{opWatch}, limit, buf)
	return err
}

// watch answers the child's unusual system calls until it ends; a forbidden one ends it.
func (p *process) watch(listener int, object string) error {
	w, err := sandbox.Watch(p.cmd.Process.Pid, listener, []string{"./" + object, sandbox.InsideWorkDir + "/" + object, p.dir + "/" + object, "/usr/", "/lib", "/etc/ld.so.cache",
		"/sys/devices/system/cpu", "/sys/kernel/mm", "/proc/stat", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/maps"})
	if err != nil {
		return fmt.Errorf("watch a runner child: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // as long as the child: ended by close
	p.watching, p.watchStop, p.watchDone = w, cancel, make(chan struct{})
	go func() {
		defer close(p.watchDone)
		v, err := w.Run(ctx)
		if v == nil && err == nil {
			return
		}
		if v != nil {
			p.mu.Lock()
			p.violation = v
			p.mu.Unlock()
		}
		p.kill()
	}()
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}
