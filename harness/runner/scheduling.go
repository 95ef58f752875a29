//go:build linux

package runner

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Scheduling policies of sched(7).
const (
	schedOther = 0 // the default
	schedIdle  = 5 // runs on a core that nobody else wants
)

// setPolicy gives one thread a policy. ESRCH: there is no such thread.
func setPolicy(tid, policy int) error {
	var priority int32 // struct sched_param: 0 for all of these policies
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(policy), uintptr(unsafe.Pointer(&priority))); errno != 0 {
		return fmt.Errorf("set the scheduling policy of thread %d to %d: %w", tid, policy, errno)
	}
	return nil
}

// quieten leaves the cores of a child to its kernels: the calling thread, which runs them and starts their threads, keeps the
// default policy, and all other threads of the Go runtime get a core only when nobody wants it. The runtime's monitor wakes
// every 20 microseconds during a call into C; with as many OpenMP threads as cores each wake took a core from one of them, and
// on two cores nearly every launch of over a millisecond counted an involuntary switch and was dropped.
func quieten() error {
	self := unix.Gettid()
	if err := setPolicy(self, schedOther); err != nil { // the parent's own policy was inherited
		return err
	}
	for _, tid := range ownThreads() {
		if tid == self {
			continue
		}
		if err := setPolicy(tid, schedIdle); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// ownThreads lists this process's threads: by /proc, or without one, in a namespace of its own where numbers are given in order
// from 1, the numbers that can be theirs.
func ownThreads() []int {
	var out []int
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		for tid := os.Getpid(); tid < os.Getpid()+64; tid++ {
			out = append(out, tid)
		}
		return out
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

// queues reads for how long a child's kernel threads have waited for a core so far.
type queues struct {
	dir  string // /proc/PID/task of the child, as this process sees it
	buf  [96]byte
	last map[int]time.Duration
}

func newQueues(pid int) *queues {
	return &queues{dir: fmt.Sprintf("/proc/%d/task", pid), last: map[int]time.Duration{}}
}

// waited returns by how much the waits of the child's threads have grown since the last call, all threads together, by the
// kernel's own account (the second number of /proc/PID/task/TID/schedstat, in nanoseconds; needs CONFIG_SCHED_INFO). Threads of
// the idle policy are the runtime's, not the candidate's. It reports false where the kernel does not tell.
func (q *queues) waited() (time.Duration, bool) {
	tasks, err := os.ReadDir(q.dir)
	if err != nil {
		return 0, false
	}
	var grown time.Duration
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		policy, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
		if errno != 0 {
			continue // it has ended
		}
		if policy == schedIdle {
			continue
		}
		ran, wait, ok := q.read(tid)
		if !ok || ran == 0 {
			return 0, false
		}
		grown += wait - q.last[tid]
		q.last[tid] = wait
	}
	return grown, true
}

// read returns for how long a thread has run and has waited for a core.
func (q *queues) read(tid int) (ran, wait time.Duration, ok bool) {
	fd, err := unix.Open(q.dir+"/"+strconv.Itoa(tid)+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, false
	}
	n, err := unix.Read(fd, q.buf[:])
	_ = unix.Close(fd) // read only
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(q.buf[:n]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	a, errA := strconv.ParseInt(fields[0], 10, 64)
	b, errB := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(a), time.Duration(b), errA == nil && errB == nil
}
