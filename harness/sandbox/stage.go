//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageArgument is the hidden first argument that makes a process the sandbox's first stage.
const stageArgument = "__sandbox"

// order is what the parent tells stage one.
type order struct {
	Policy Policy `json:"policy"`
	Level  Level  `json:"level"`
	Become bool   `json:"become,omitempty"` // become insideUser before executing
}

// Command returns a command that runs path with args under the policy: level full, or reduced where the caller's person
// allowed it. The caller sets Stdin, Stdout, Stderr and ExtraFiles (inherited as descriptors 3, 4, ...), and starts it. path is
// an absolute path, or "self" for this binary. The process leads its own process group; in a full sandbox it is process 1 of
// its pid namespace, so that its death ends everything it started. The environment is env alone.
func Command(p Policy, level Level, env []string, path string, args ...string) (*exec.Cmd, error) {
	if level == LevelFull {
		if c := Probe(); c.Level() != LevelFull {
			return nil, fmt.Errorf("%w: %s; `ridgepoint doctor` says what would help", ErrIncomplete, c)
		}
	}
	text, err := json.Marshal(order{Policy: p, Level: level, Become: level == LevelFull && os.Getuid() == 0})
	if err != nil {
		return nil, fmt.Errorf("write sandbox order: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", append([]string{stageArgument, string(text), path}, args...)...)
	cmd.Args[0] = "ridgepoint-sandbox"
	cmd.Env = env
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.Dir = p.WorkDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if level == LevelFull {
		isolate(cmd.SysProcAttr, p.Network)
	}
	return cmd, nil
}

// isolate asks for the namespaces, with this user mapped to root inside, and for root an unprivileged user beside.
func isolate(attr *syscall.SysProcAttr, network bool) {
	attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if !network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	if os.Getuid() == 0 {
		attr.UidMappings = append(attr.UidMappings, syscall.SysProcIDMap{ContainerID: insideUser, HostID: outsideUser, Size: 1})
		attr.GidMappings = append(attr.GidMappings, syscall.SysProcIDMap{ContainerID: insideUser, HostID: outsideUser, Size: 1})
		attr.GidMappingsEnableSetgroups = true
	}
}

// A sandbox that root starts is built as root and then becomes this user, who owns nothing outside: the kernel exempts root from
// the limit on processes, in user namespaces too. 65534 is nobody.
const (
	insideUser  = 1
	outsideUser = 65534
)

// Main runs stage one when args (without the program's name) ask for it, and reports whether they did. It must be called
// before anything else in main, and in TestMain of every test that uses Command. On success it does not return: the process
// has become the program. On failure it exits with 125 and one line on stderr, which the parent reads as broken infrastructure.
func Main(args []string) bool {
	staged.Store(true)
	if len(args) == 0 || args[0] != stageArgument {
		return false
	}
	err := fmt.Errorf("stage one wants an order and a program, got %d arguments", len(args)-1)
	if len(args) >= 3 {
		err = enter(args[1], args[2], args[3:])
	}
	fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
	os.Exit(StageFailed)
	return true
}

// staged is set once Main was called: without it, re-executing this binary would not build a sandbox but run the program again.
var staged atomic.Bool

// StageFailed is the exit status of a stage one that could not build the sandbox.
const StageFailed = 125

// enter builds the sandbox around this process and executes path.
func enter(text, path string, args []string) error {
	runtime.LockOSThread() // landlock and capabilities belong to the thread that executes
	debug.SetGCPercent(-1) // its threads would allocate under the limits
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	program, err := openProgram(path)
	if err != nil {
		return err
	}
	if o.Level == LevelFull {
		if err := buildRoot(o.Policy); err != nil {
			return fmt.Errorf("build the file system: %w", err)
		}
	} else if o.Policy.WorkDir != "" {
		if err := os.Chdir(o.Policy.WorkDir); err != nil {
			return err
		}
	}
	if err := dropBounding(); err != nil {
		return err
	}
	if o.Become {
		if err := become(o.Policy); err != nil {
			return fmt.Errorf("become an unprivileged user: %w", err)
		}
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	if err := restrictFiles(o); err != nil {
		return err
	}
	if !o.Policy.Locks {
		if err := installFilter(stageFilter(o.Policy.Network), 0); err != nil && o.Level == LevelFull {
			return fmt.Errorf("install the system-call filter: %w", err)
		}
	}
	return execFD(program, append([]string{path}, args...), os.Environ(), o.Policy.Limits)
}

// openProgram opens the program for execution before the file system changes.
func openProgram(path string) (int, error) {
	if path == "self" {
		path = "/proc/self/exe"
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open program %s: %w", path, err)
	}
	return fd, nil
}

// execFD sets the limits and replaces this process by the opened program.
func execFD(fd int, argv, envv []string, limits Limits) error {
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	argp, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(envv)
	if err != nil {
		return err
	}
	// The limit of memory is far below what the Go runtime has reserved: it comes last, when nothing is allocated any more.
	if err := setLimits(limits); err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&argp[0])), uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(argp)
	runtime.KeepAlive(envp)
	return fmt.Errorf("execute %s (descriptor %s): %w", argv[0], strconv.Itoa(fd), errno)
}
