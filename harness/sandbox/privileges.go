//go:build linux

package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// setLimits sets the resource limits of this process and what it becomes.
func setLimits(l Limits) error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("turn core files off: %w", err)
	}
	limits := []struct {
		name     string
		resource int
		value    uint64
	}{
		{"cpu time", unix.RLIMIT_CPU, l.CPUSeconds},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"stack", unix.RLIMIT_STACK, l.StackBytes},
		{"memory", unix.RLIMIT_AS, l.MemoryBytes},
	}
	for _, r := range limits {
		if r.value == 0 {
			continue
		}
		if err := lowerLimit(r.resource, r.value); err != nil {
			return fmt.Errorf("limit %s to %d: %w", r.name, r.value, err)
		}
	}
	return nil
}

// lowerLimit sets both limits to value, or leaves a hard limit that is lower.
func lowerLimit(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}

// dropBounding empties the bounding set: no program can hand out a capability again.
func dropBounding() error {
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		// EINVAL: a capability this kernel does not have; EPERM: an unprivileged user of a reduced sandbox, who has none.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// become hands the work folder to insideUser and makes this thread that user, without groups.
func become(p Policy) error {
	if p.WorkDir != "" {
		if err := os.Chown(InsideWorkDir, insideUser, insideUser); err != nil && p.Writable {
			return err
		}
	}
	for _, call := range []struct {
		number uintptr
		args   [3]uintptr
	}{
		{unix.SYS_SETGROUPS, [3]uintptr{}},
		{unix.SYS_SETRESGID, [3]uintptr{insideUser, insideUser, insideUser}},
		{unix.SYS_SETRESUID, [3]uintptr{insideUser, insideUser, insideUser}},
		{unix.SYS_PRCTL, [3]uintptr{unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)}}, // a change of user clears it
	} {
		if _, _, errno := unix.RawSyscall(call.number, call.args[0], call.args[1], call.args[2]); errno != 0 {
			return fmt.Errorf("system call %d: %w", call.number, errno)
		}
	}
	return nil
}

// dropPrivileges takes every capability and the way to gain new ones.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return nil
}
