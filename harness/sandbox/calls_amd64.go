package sandbox

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_X86_64.
const auditArch = unix.AUDIT_ARCH_X86_64

// legacyComputeCalls are amd64's older forms of computeCalls.
var legacyComputeCalls = []uintptr{unix.SYS_POLL, unix.SYS_EPOLL_WAIT, unix.SYS_TIME, unix.SYS_ARCH_PRCTL, unix.SYS_PAUSE}

// legacyProgramCalls are amd64's older forms of programCalls.
var legacyProgramCalls = []uintptr{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_FORK, unix.SYS_VFORK,
	unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_READLINK, unix.SYS_CHMOD, unix.SYS_GETDENTS, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_TIME,
	unix.SYS_ARCH_PRCTL, unix.SYS_GETPGRP, unix.SYS_ALARM, unix.SYS_PAUSE, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_SYMLINK, unix.SYS_LINK,
}

func init() {
	for n, name := range map[uintptr]string{unix.SYS_OPEN: "open", unix.SYS_CREAT: "creat", unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork", unix.SYS_STAT: "stat",
		unix.SYS_LSTAT: "lstat", unix.SYS_ACCESS: "access", unix.SYS_UNLINK: "unlink", unix.SYS_RENAME: "rename", unix.SYS_SYMLINK: "symlink", unix.SYS_LINK: "link", unix.SYS_MKDIR: "mkdir",
		unix.SYS_READLINK: "readlink", unix.SYS_CHMOD: "chmod", unix.SYS_DUP2: "dup2", unix.SYS_PIPE: "pipe", unix.SYS_ALARM: "alarm"} {
		callNames[n] = name
	}
}

// legacyPathArgument is pathArgument for amd64's older calls.
var legacyPathArgument = map[uintptr]int{unix.SYS_OPEN: 0, unix.SYS_STAT: 0, unix.SYS_LSTAT: 0, unix.SYS_ACCESS: 0, unix.SYS_READLINK: 0}

func isLegacyOpen(number uintptr) bool { return number == unix.SYS_OPEN }
