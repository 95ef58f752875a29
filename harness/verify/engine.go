package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// Engine is one device as verification and measurement see it. It is used by one goroutine at a time.
//
// The expected values of a Set must stay where candidate code cannot read them until the outputs of a launch are final: the
// cpu engine keeps them in the parent process; a GPU engine brings them to the device in Compare and overwrites them before it
// returns.
type Engine interface {
	// Traits says how this device is measured.
	Traits() Traits
	// Open loads a built module into a state that no earlier launch has touched: a fresh process, a fresh module load. Loading
	// failures that the candidate causes are a *Stop with fault launch or crash.
	Open(ctx context.Context, m Module) (Program, error)
	// Close ends every program and gives the device back.
	Close() error
}

// Traits are constants of a device that shape verification and timing.
type Traits struct {
	Target harness.Target
	// FlushPerLaunch flushes caches before every timed launch (GPUs); otherwise Flush is called once per size ("block").
	FlushPerLaunch bool
	// WholeCompareBytes is the largest output that every timed launch compares whole; above it, projections are compared and
	// the first, the last and one random launch whole.
	WholeCompareBytes int64
	// HidesInputs says that Launch can write-protect inputs (Shot.Protect).
	HidesInputs bool
	// MemoryBytes bounds the buffers of one size together; a hidden size that needs more is not drawn.
	MemoryBytes int64
	// Untimed says that no time measured on this device means anything (the emulator): launches are judged as everywhere, and
	// no times are reported.
	Untimed bool
	// BytesPerSecond and FLOPsPerSecond are the device's measured ceilings; 0: unknown, and no floor is checked.
	BytesPerSecond, FLOPsPerSecond float64
}

// FloorUS returns 0.9 of the least time, in microseconds, that flops and bytes can take on the device: a runtime below it is
// not believed. It is 0 where the ceilings or the work are unknown.
func (t Traits) FloorUS(flops, bytes float64) float64 {
	var seconds float64
	if t.BytesPerSecond > 0 {
		seconds = bytes / t.BytesPerSecond
	}
	if t.FLOPsPerSecond > 0 {
		seconds = max(seconds, flops/t.FLOPsPerSecond)
	}
	return 0.9e6 * seconds
}

// Module is a built candidate ready to be loaded.
type Module struct {
	Build     *harness.Build
	Path      string // of the artifact on this host
	Candidate *harness.Candidate
	// Verifying is set for the load that verification uses and unset for the one that is timed: an engine may fill fresh
	// memory with a pattern in the former, which costs time.
	Verifying bool
	Limit     time.Duration // for loading
}

// Program is a loaded module.
type Program interface {
	// Bind makes the buffers of one size with red zones on both sides of each and resolves the kernels. Binding the same
	// layout again, by another Program of the same Engine too, gives the same memory. A kernel that is not in the module is a
	// *Stop with fault launch.
	Bind(ctx context.Context, l *Layout) (Bench, error)
	// Close ends the program. It does not fail because the candidate did.
	Close() error
}

// Layout is everything that the launches of one size need.
type Layout struct {
	Size     harness.Size
	Hidden   bool
	Plan     *task.Launches // launches with arguments, tensors and workspaces in numbers
	Task     *harness.Task
	Source   *harness.Structure    // tensor maps
	Config   harness.Configuration // for tensor maps' boxes
	SetCount int                   // how many distinct sets will be written at this size: what may be kept on the device
}

// Outputs returns the indices of the tensors that are compared: roles out and inout.
func (l *Layout) Outputs() []int {
	var out []int
	for i, e := range l.Plan.Tensors {
		if e.Role == harness.RoleOut || e.Role == harness.RoleInOut {
			out = append(out, i)
		}
	}
	return out
}

// Mixes reports whether elements of a tensor change places in inputs never met before. Where there are floats, integers keep theirs: they
// are often places in another tensor, such as where rows start, and an honest kernel that follows exchanged ones leaves its buffers.
func (l *Layout) Mixes(tensor int) bool {
	floats := slices.ContainsFunc(l.Plan.Tensors, func(x task.Extent) bool { return x.Role != harness.RoleOut && x.DType.IsFloat() })
	return l.Plan.Tensors[tensor].DType.IsFloat() || !floats
}

// Shot says how one Launch is run.
type Shot struct {
	Limit   time.Duration // after it the candidate has hung: a *Stop with fault timeout
	Repeats int           // launches of the whole plan back to back within one pair of clock reads; 0 and 1 mean one
	Seed    uint64        // where the engine looks for late writes
	Protect bool          // write-protect the inputs: a write to them ends the candidate (Traits.HidesInputs)
}

// Lap is what one Launch took.
type Lap struct {
	Kernels  time.Duration // by the device's clock, all launches of the plan, workspace clears included
	Wall     time.Duration // by the parent's clock, for engines whose reporter shares a process with candidate code; else 0
	Busy     time.Duration // processor time by the parent's clock, per core that the candidate may keep busy; like Wall
	Switches int64         // involuntary context switches of the candidate's threads
	Waited   time.Duration // for a core, all of the candidate's threads together, when there were switches; Unknown where the kernel does not tell
	Steal    bool          // the hypervisor took time from a core during the launch
	Throttle bool          // the device was throttled during the launch
	Late     *Late         // an output changed after the kernels had returned
	ClockMHz int           // 0: unknown
}

// Unknown is a Lap's Waited where nobody knows.
const Unknown time.Duration = -1

// Late says that an output element changed after the launch had returned.
type Late struct {
	Tensor int
	Offset int64 // bytes into the buffer
}

// Bench is a program bound to the buffers of one size. Operations may be queued; Launch, Breach and Compare wait. Each returns
// a *Stop when the candidate is at fault.
type Bench interface {
	// Write rewrites all inputs (roles in and inout) in place from s. An engine may keep copies on the device under s.Key.
	Write(ctx context.Context, s *Set) error
	// Poison fills outputs and scratch without an init with Poison(seed)'s finite random values, and restores damaged red zones.
	Poison(ctx context.Context, seed uint64) error
	// Flush sweeps the caches as the device's protocol says.
	Flush(ctx context.Context) error
	// Launch runs the plan's kernels in order.
	Launch(ctx context.Context, shot Shot) (Lap, error)
	// Breach reports the first damaged red zone or changed input since Write and Poison, or nil.
	Breach(ctx context.Context, s *Set) (*Breach, error)
	// Compare compares every output with s.Expected under s.Tolerances, whole or by projections, and reports one Comparison
	// per output in the order of Layout.Outputs. seed is the one that Poison had.
	Compare(ctx context.Context, s *Set, seed uint64, whole bool) ([]Comparison, error)
	// Close releases the binding.
	Close() error
}

// Set is one input set of one size with its expected outputs. It is never changed once made.
type Set struct {
	Key          string // content address: task, size, distribution, seed
	Size         harness.Size
	Distribution string
	Index        int         // within its size
	Inputs       [][]byte    // per tensor of the task, in its dtype and strides; nil for role out
	Expected     [][]float64 // per tensor of the task, logical row-major order; nil for role in
	Tolerances   []Tolerance // per tensor of the task; zero for role in
}

// Tolerance is what one output of one Set must meet: an element passes when |got-want| <= Abs + Rel*|want|.
type Tolerance struct {
	Abs, Rel float64
}

// Breach is memory that a candidate had no right to write.
type Breach struct {
	Kind   string // KindRedZone or KindInputsChanged
	Tensor string // or workspace
	Offset int64  // red zones: bytes before the buffer's start (negative) or past its end
	Index  int64  // inputs: the element
}

// Comparison is what comparing one output found.
type Comparison struct {
	Tensor     int // index into the task's tensors
	Elements   int64
	MaxAbs     float64
	SumAbs     float64 // over finite elements
	Mismatches int64   // out of tolerance, not finite or unwritten
	NonFinite  int64   // not finite where the expected value is
	Unwritten  int64   // still the poison
	First      int64   // logical index of the first mismatch; -1 without one
	Got, Want  float64 // at First
	FirstKind  string  // KindMismatch, KindNonFinite or KindUnwritten: of First
	Pattern    string  // of all mismatches; "" without one
	Projected  bool    // compared by projections: only MaxAbs (of the projections, relative to their bound) and Mismatches (0 or 1) hold
}

// The kinds of harness.Evidence that verification gives.
const (
	KindMismatch      = "mismatch"
	KindNonFinite     = "non_finite"
	KindUnwritten     = "unwritten"
	KindRedZone       = "red_zone"
	KindInputsChanged = "inputs_changed"
	KindLateWrite     = "late_write"
	KindNotRepeatable = "not_repeatable"
	KindCached        = "cached"
	KindClock         = "clock"
	KindProjection    = "projection"
	KindCrash         = "crash"
	KindExit          = "exit"
	KindTimeout       = "timeout"
	KindOutput        = "output"  // wrote more to its standard output or error than is allowed
	KindSandbox       = "sandbox" // tried a system call that it may not make
	KindLaunch        = "launch"
)

// Stop is a candidate's own fault. It is an error only within the harness; a Report carries it outside.
type Stop struct {
	Fault    harness.Fault
	Reason   string
	Evidence harness.Evidence
}

// Error says what happened.
func (s *Stop) Error() string { return fmt.Sprintf("%s: %s", s.Fault, s.Reason) }
