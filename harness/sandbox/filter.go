//go:build linux

package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seccompData is struct seccomp_data's layout: number, architecture, instruction pointer, six arguments.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// Actions of a filter.
const (
	actionAllow  = unix.SECCOMP_RET_ALLOW
	actionNotify = unix.SECCOMP_RET_USER_NOTIF
	actionKill   = unix.SECCOMP_RET_KILL_PROCESS
)

func actionErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// rule decides one system call. Without a condition it applies always; with one, when the low 32 bits of argument arg, masked,
// equal value; else otherwise applies.
type rule struct {
	number      uintptr
	action      uint32
	conditional bool
	arg         int
	mask, value uint32
	otherwise   uint32
}

// assemble makes a program that kills on a foreign architecture, applies the rules in order, and falls back to fallback.
// Calls of amd64's x32 numbering are killed: they would pass by every rule.
func assemble(rules []rule, fallback uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	jump := func(op uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	program := []unix.SockFilter{load(offsetArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(actionKill), load(offsetNumber)}
	if runtime.GOARCH == "amd64" {
		const x32Bit = 0x40000000
		program = append(program, jump(unix.BPF_JGE, x32Bit, 0, 1), ret(actionKill))
	}
	for _, r := range rules {
		if !r.conditional {
			program = append(program, jump(unix.BPF_JEQ, uint32(r.number), 0, 1), ret(r.action))
			continue
		}
		program = append(program,
			jump(unix.BPF_JEQ, uint32(r.number), 0, 5),
			load(offsetArgs+uint32(r.arg)*8),
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: r.mask},
			jump(unix.BPF_JEQ, r.value, 0, 1),
			ret(r.action),
			ret(r.otherwise),
		)
	}
	return append(program, ret(fallback))
}

// installFilter installs the program on the calling thread (and what it becomes), or with flags on all threads. It returns
// an error when the kernel refuses.
func installFilter(program []unix.SockFilter, flags uintptr) error {
	_, err := installFilterFD(program, flags)
	return err
}

// installFilterFD is installFilter that also returns the listener's descriptor when flags ask for one.
func installFilterFD(program []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// namespaceFlags are the clone flags that make new namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWUTS |
	unix.CLONE_NEWCGROUP

// stageFilter is the allow-list for confined programs: what compilers, interpreters and the Go runtime use. Everything else,
// sockets, mounts, namespaces, tracing, keys, BPF, io_uring, clocks and modules among it, does not exist for them (ENOSYS).
// With network, those calls of sockets are there that a client needs.
func stageFilter(network bool) []unix.SockFilter {
	rules := []rule{
		{number: unix.SYS_CLONE, conditional: true, arg: 0, mask: namespaceFlags, value: 0, action: actionAllow, otherwise: actionErrno(unix.EPERM)},
		{number: unix.SYS_CLONE3, action: actionErrno(unix.ENOSYS)}, // its flags are in memory: the C library falls back to clone
		{number: unix.SYS_SECCOMP, action: actionAllow},             // only ever adds filters
	}
	for _, n := range append(append([]uintptr{}, computeCalls...), programCalls...) {
		rules = append(rules, rule{number: n, action: actionAllow})
	}
	for _, n := range legacyProgramCalls {
		rules = append(rules, rule{number: n, action: actionAllow})
	}
	if network {
		for _, n := range networkCalls {
			rules = append(rules, rule{number: n, action: actionAllow})
		}
	}
	return assemble(rules, actionErrno(unix.ENOSYS))
}

// lockFilter is the filter of a process that runs a candidate's code in its own address space: computing, memory, threads and
// the descriptors that are open, nothing else. Every other call is reported to the parent.
func lockFilter(pid int) []unix.SockFilter {
	rules := []rule{
		{number: unix.SYS_CLONE, conditional: true, arg: 0, mask: unix.CLONE_THREAD, value: unix.CLONE_THREAD, action: actionAllow, otherwise: actionNotify},
		{number: unix.SYS_CLONE3, action: actionErrno(unix.ENOSYS)},
		{number: unix.SYS_TGKILL, conditional: true, arg: 0, mask: 0xffffffff, value: uint32(pid), action: actionAllow, otherwise: actionNotify},
		{number: unix.SYS_PRLIMIT64, conditional: true, arg: 2, mask: 0xffffffff, value: 0, action: actionAllow, otherwise: actionNotify},
		{number: unix.SYS_IOCTL, action: actionErrno(unix.ENOTTY)},
		// Naming threads and mappings does nothing for a candidate: it looks done.
		{number: unix.SYS_PRCTL, action: actionErrno(0)},
	}
	for _, n := range append(append([]uintptr{}, computeCalls...), legacyComputeCalls...) {
		rules = append(rules, rule{number: n, action: actionAllow})
	}
	return assemble(rules, actionNotify)
}
