//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lock confines this whole process, all of its threads, to computing: it is called right before hostile code is loaded. It
// returns the descriptor (in this process) of the listener that refused calls are reported to. The caller tells the parent
// its number, the parent calls Watch and answers, and the caller then calls Seal. Between Lock and Watch a refused call waits.
func Lock() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("refuse new privileges: %w", err)
	}
	fd, err := installFilterFD(lockFilter(unix.Getpid()), unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return -1, fmt.Errorf("lock this process: %w", err)
	}
	return fd, nil
}

// Seal closes this process's own copy of the listener once the parent watches.
func Seal(listener int) error { return unix.Close(listener) }

// Violation is a system call that hostile code tried.
type Violation struct {
	Call   string `json:"call"`
	Detail string `json:"detail,omitempty"` // a path, a family, a target
}

// String returns "openat /etc/shadow".
func (v *Violation) String() string {
	if v.Detail == "" {
		return v.Call
	}
	return v.Call + " " + v.Detail
}

// Watcher receives the refused calls of one locked process.
type Watcher struct {
	pid      int
	listener int
	pidfd    int
	wake     int // eventfd that ends Run
	readable []string
	once     sync.Once
}

// Watch takes over the listener of the locked child pid. readable are the path prefixes that the child may still open for
// reading (the candidate's own file, the system's libraries).
func Watch(pid, listener int, readable []string) (*Watcher, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	fd, err := unix.PidfdGetfd(pidfd, listener, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the listener of process %d: %w", pid, err), unix.Close(pidfd))
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make an event descriptor: %w", err), unix.Close(fd), unix.Close(pidfd))
	}
	return &Watcher{pid: pid, listener: fd, pidfd: pidfd, wake: wake, readable: readable}, nil
}

// Close releases the descriptors; Run must have returned.
func (w *Watcher) Close() error {
	var err error
	w.once.Do(func() { err = errors.Join(unix.Close(w.listener), unix.Close(w.pidfd), unix.Close(w.wake)) })
	return err
}

// Run answers the child's calls until it tries one that is forbidden, which it returns; the call fails with EPERM and the
// caller should end the child. It returns nil when the child has ended or ctx is done.
func (w *Watcher) Run(ctx context.Context) (*Violation, error) {
	stop := context.AfterFunc(ctx, func() { _, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }) // an eventfd takes 8 bytes; it cannot be full
	defer stop()
	for {
		fds := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}, {Fd: int32(w.pidfd), Events: unix.POLLIN}, {Fd: int32(w.wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return nil, fmt.Errorf("wait for system calls of process %d: %w", w.pid, err)
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			v, err := w.answer()
			if v != nil || err != nil {
				return v, err
			}
			continue
		}
		if fds[1].Revents != 0 || fds[2].Revents != 0 || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			return nil, nil
		}
	}
}

// notification and response are struct seccomp_notif and struct seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// answer receives one call and lets it go on or refuses it.
func (w *Watcher) answer() (*Violation, error) {
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		if errno == unix.ENOENT || errno == unix.EINTR {
			return nil, nil // the thread died while it waited
		}
		return nil, fmt.Errorf("receive a system call of process %d: %w", w.pid, errno)
	}
	v := w.judge(&n)
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if v != nil {
		r = response{id: n.id, err: -int32(unix.EPERM)}
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r))); errno != 0 && errno != unix.ENOENT {
		return v, fmt.Errorf("answer a system call of process %d: %w", w.pid, errno)
	}
	return v, nil
}

// pathArgument says which argument of a call is a path that a reader may be allowed.
var pathArgument = map[uintptr]int{
	unix.SYS_OPENAT: 1, unix.SYS_NEWFSTATAT: 1, unix.SYS_STATX: 1, unix.SYS_READLINKAT: 1, unix.SYS_FACCESSAT: 1, unix.SYS_FACCESSAT2: 1, unix.SYS_EXECVE: 0,
}

// judge returns the violation that a call is, or nil when it may go on. A call that goes on is bounded by the outer file
// system, landlock and limits even if its memory changes after this look.
func (w *Watcher) judge(n *notification) *Violation {
	number := uintptr(n.nr)
	v := &Violation{Call: callNames[number]}
	if v.Call == "" {
		v.Call = fmt.Sprintf("system call %d", n.nr)
	}
	argument, hasPath := pathArgument[number]
	if !hasPath {
		argument, hasPath = legacyPathArgument[number]
	}
	if !hasPath {
		if number == unix.SYS_KILL {
			v.Detail = fmt.Sprintf("process %d", int32(n.args[0]))
		}
		return v
	}
	path, err := readString(int(n.pid), n.args[argument])
	if err != nil {
		return v
	}
	v.Detail = path
	if number == unix.SYS_EXECVE {
		return v
	}
	if flags, opens := openFlags(number, n); opens && flags&(unix.O_ACCMODE|unix.O_CREAT|unix.O_TRUNC) != 0 {
		v.Detail += " for writing"
		return v
	}
	if path == "" { // a descriptor: fstat by another name
		return nil
	}
	for _, prefix := range w.readable {
		if strings.HasPrefix(path, prefix) && !strings.Contains(path, "..") {
			return nil
		}
	}
	return v
}

func openFlags(number uintptr, n *notification) (flags uint64, opens bool) {
	if number == unix.SYS_OPENAT {
		return n.args[2], true
	}
	if isLegacyOpen(number) {
		return n.args[1], true
	}
	return 0, false
}

// readString reads a path of at most 4096 bytes from the child's memory.
func readString(pid int, address uint64) (string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	buf := make([]byte, 4096)
	n, err := f.ReadAt(buf, int64(address))
	if n == 0 && err != nil {
		return "", err
	}
	if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
		return string(buf[:i]), nil
	}
	return "", errors.New("path is longer than 4096 bytes")
}
