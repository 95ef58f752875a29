// Package sandbox confines host code that a stranger wrote: compilers reading a candidate's source, candidates of the cpu
// target, reference commands and model commands. It must not know what it confines.
//
// Confinement has two steps. Command starts a program through a first stage of this same binary, which makes the
// namespaces, the read-only file system, landlock, limits and a system-call filter, and then executes the program. Lock is
// called inside a process that is about to run hostile code in its own address space: it installs a much tighter filter
// whose refusals are reported to the parent, which names and ends the offender (Supervise).
//
//	parent ── Command ──> stage one: user, mount, pid, ipc, net, uts namespaces; limits; landlock; filter
//	   ^                      └── execve ──> program (a compiler, a runner child)
//	   └── Supervise <── refused system calls ── Lock, before the hostile code is loaded
//
// Sources: seccomp(2), seccomp_unotify(2), landlock(7), user_namespaces(7), pivot_root(2).
package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// Policy says what one confined program may use.
type Policy struct {
	// Name is the policy's name in messages.
	Name string `json:"name"`
	// WorkDir is the program's folder. It is seen as /work in a full sandbox, is the program's working folder, and is
	// writable when Writable is set.
	WorkDir  string `json:"work_dir"`
	Writable bool   `json:"writable"`
	// ReadOnly are further files and folders the program may read, at their own paths.
	ReadOnly []string `json:"read_only,omitempty"`
	// Network leaves the program this machine's network. Compilers and candidates never have it.
	Network bool `json:"network,omitempty"`
	// Locks says that the program calls Lock before hostile code runs: stage one then installs no filter of its own, which
	// would refuse calls silently before Lock's could report them.
	Locks  bool   `json:"locks,omitempty"`
	Limits Limits `json:"limits"`
}

// Limits bound what a confined program may use. Zero fields are not limited.
type Limits struct {
	MemoryBytes  uint64 `json:"memory_bytes,omitempty"`  // address space of each process
	CPUSeconds   uint64 `json:"cpu_seconds,omitempty"`   // of each process
	FileBytes    uint64 `json:"file_bytes,omitempty"`    // largest file written
	Processes    uint64 `json:"processes,omitempty"`     // processes and threads of the sandbox together
	OpenFiles    uint64 `json:"open_files,omitempty"`    // of each process
	StackBytes   uint64 `json:"stack_bytes,omitempty"`   // of the main thread
	ScratchBytes uint64 `json:"scratch_bytes,omitempty"` // /tmp inside, in memory; 0: 64 MiB
}

// Level is how much of the sandbox a machine gives.
type Level string

// The levels.
const (
	LevelFull    Level = "full"    // everything of the package comment
	LevelReduced Level = "reduced" // limits, no new privileges and whatever else the kernel gives
)

// ErrIncomplete says that this machine cannot make the full sandbox.
var ErrIncomplete = errors.New("the full sandbox is not available on this machine")

// Capabilities is what this machine gives; Missing names what is not there and how to get it.
type Capabilities struct {
	Namespaces bool     `json:"namespaces"`
	Mounts     bool     `json:"mounts"`
	Seccomp    bool     `json:"seccomp"`
	Notify     bool     `json:"notify"`   // refused system calls can be reported
	Landlock   int      `json:"landlock"` // ABI version, 0: none
	Missing    []string `json:"missing,omitempty"`
}

// Level returns what the capabilities amount to. Landlock is a second wall and not required: kernels before 5.13 lack it.
func (c Capabilities) Level() Level {
	if c.Namespaces && c.Mounts && c.Seccomp && c.Notify {
		return LevelFull
	}
	return LevelReduced
}

// String returns one line for records and doctor: "full (landlock 7)" or "reduced: no user namespaces".
func (c Capabilities) String() string {
	if c.Level() == LevelFull {
		return fmt.Sprintf("full (landlock %d)", c.Landlock)
	}
	return "reduced: " + strings.Join(c.Missing, "; ")
}
