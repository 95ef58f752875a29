//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// computeCalls are what computing in threads needs, of the C library, OpenMP and the Go runtime. None opens a file, a socket or
// a process, and none reaches another process.
var computeCalls = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MINCORE, unix.SYS_MSYNC,
	unix.SYS_MLOCK, unix.SYS_MUNLOCK, unix.SYS_GET_MEMPOLICY, unix.SYS_MEMBARRIER,
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GETPARAM,
	unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_GETCPU,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRUSAGE, unix.SYS_GETRLIMIT,
	unix.SYS_SYSINFO, unix.SYS_UNAME, unix.SYS_GETRANDOM, unix.SYS_GETCWD,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_PPOLL, unix.SYS_FCNTL,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// programCalls are what compilers and interpreters use besides: files beneath what the file system shows, pipes, and children.
var programCalls = []uintptr{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
	unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
	unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_UTIMENSAT, unix.SYS_UMASK,
	unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_IOCTL, unix.SYS_FLOCK, unix.SYS_FADVISE64, unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE,
	unix.SYS_SPLICE, unix.SYS_MEMFD_CREATE, unix.SYS_PRCTL, unix.SYS_PRLIMIT64, unix.SYS_SETRLIMIT, unix.SYS_SET_MEMPOLICY, unix.SYS_MBIND, unix.SYS_SYNC_FILE_RANGE,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGQUEUEINFO,
	unix.SYS_SETITIMER, unix.SYS_GETITIMER, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_DELETE, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
	unix.SYS_SETPGID, unix.SYS_GETPGID, unix.SYS_SETSID, unix.SYS_GETSID, unix.SYS_GETGROUPS, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_CAPGET, unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY,
	unix.SYS_PSELECT6, unix.SYS_INOTIFY_INIT1, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_CLOSE_RANGE, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE,
	unix.SYS_LANDLOCK_RESTRICT_SELF,
}

// networkCalls are what a client of the network uses besides. Without capabilities no raw or packet socket can be made by them.
var networkCalls = []uintptr{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT, unix.SYS_SHUTDOWN,
}

// callNames name the calls that hostile code is likely to try, for messages.
var callNames = map[uintptr]string{
	unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2", unix.SYS_SOCKET: "socket", unix.SYS_SOCKETPAIR: "socketpair", unix.SYS_CONNECT: "connect", unix.SYS_BIND: "bind",
	unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg", unix.SYS_RECVFROM: "recvfrom", unix.SYS_RECVMSG: "recvmsg", unix.SYS_LISTEN: "listen", unix.SYS_ACCEPT: "accept",
	unix.SYS_ACCEPT4: "accept4", unix.SYS_CLONE: "clone (a new process)", unix.SYS_EXECVE: "execve", unix.SYS_EXECVEAT: "execveat", unix.SYS_PTRACE: "ptrace",
	unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev", unix.SYS_KILL: "kill", unix.SYS_TKILL: "tkill", unix.SYS_TGKILL: "tgkill (of another process)",
	unix.SYS_RT_SIGQUEUEINFO: "rt_sigqueueinfo", unix.SYS_RT_TGSIGQUEUEINFO: "rt_tgsigqueueinfo", unix.SYS_PIDFD_OPEN: "pidfd_open", unix.SYS_PIDFD_GETFD: "pidfd_getfd",
	unix.SYS_PIDFD_SEND_SIGNAL: "pidfd_send_signal", unix.SYS_CLOCK_SETTIME: "clock_settime", unix.SYS_CLOCK_ADJTIME: "clock_adjtime", unix.SYS_SETTIMEOFDAY: "settimeofday",
	unix.SYS_ADJTIMEX: "adjtimex", unix.SYS_SETITIMER: "setitimer", unix.SYS_TIMER_CREATE: "timer_create", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2", unix.SYS_UNSHARE: "unshare",
	unix.SYS_SETNS: "setns", unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_CHROOT: "chroot", unix.SYS_CHDIR: "chdir", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_UNLINKAT: "unlinkat",
	unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_LINKAT: "linkat", unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_FALLOCATE: "fallocate", unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_DUP: "dup", unix.SYS_DUP3: "dup3", unix.SYS_PIPE2: "pipe2", unix.SYS_SETUID: "setuid", unix.SYS_SETGID: "setgid",
	unix.SYS_SETRESUID: "setresuid", unix.SYS_CAPSET: "capset", unix.SYS_SETPRIORITY: "setpriority", unix.SYS_SCHED_SETSCHEDULER: "sched_setscheduler", unix.SYS_SETPGID: "setpgid", unix.SYS_SETSID: "setsid",
	unix.SYS_PRLIMIT64: "prlimit64 (a new limit)", unix.SYS_SETRLIMIT: "setrlimit", unix.SYS_BPF: "bpf", unix.SYS_PERF_EVENT_OPEN: "perf_event_open", unix.SYS_IO_URING_SETUP: "io_uring_setup",
	unix.SYS_USERFAULTFD: "userfaultfd", unix.SYS_KEYCTL: "keyctl", unix.SYS_ADD_KEY: "add_key", unix.SYS_INIT_MODULE: "init_module", unix.SYS_REBOOT: "reboot", unix.SYS_SHMGET: "shmget", unix.SYS_SHMAT: "shmat",
	unix.SYS_MSGGET: "msgget", unix.SYS_SEMGET: "semget", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_STATX: "statx", unix.SYS_READLINKAT: "readlinkat", unix.SYS_FACCESSAT: "faccessat",
	unix.SYS_FACCESSAT2: "faccessat2", unix.SYS_GETDENTS64: "getdents64", unix.SYS_SECCOMP: "seccomp", unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
	unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_SPLICE: "splice", unix.SYS_VMSPLICE: "vmsplice", unix.SYS_TEE: "tee", unix.SYS_SENDFILE: "sendfile",
}
