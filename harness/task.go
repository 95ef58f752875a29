package harness

import "fmt"

// Target is a kind of machine code.
type Target uint8

// The targets. The zero Target is invalid.
const (
	TargetInvalid Target = iota
	TargetCPU            // C, by the system's C compiler, in a child process
	TargetCUDA           // CUDA C++, by NVRTC or nvcc
	TargetHIP            // HIP C++, by hiprtc or hipcc
)

var targetNames = [...]string{"invalid", "cpu", "cuda", "hip"}

// String returns the target's name as task files and queues spell it.
func (t Target) String() string {
	if int(t) < len(targetNames) {
		return targetNames[t]
	}
	return fmt.Sprintf("Target(%d)", uint8(t))
}

// ParseTarget reads a target's name.
func ParseTarget(name string) (Target, error) {
	for i, n := range targetNames {
		if i > 0 && n == name {
			return Target(i), nil
		}
	}
	return TargetInvalid, fmt.Errorf("target %q is not known; want cpu, cuda or hip", name)
}

// MarshalText writes the target's name.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the target's name.
func (t *Target) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTarget(string(b))
	return err
}

// Task says what to compute: tensors, dims, sizes, reference, tolerances, rules and build options per target. A loaded
// Task has every default filled in and is never changed afterwards.
type Task struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Dims        []string `json:"dims"`    // in the order of problem_shape
	Problem     Size     `json:"problem"` // problem_shape
	Tensors     []Tensor `json:"tensors"` // in the order written
	Scalars     []Scalar `json:"scalars,omitempty"`
	Sizes       []Size   `json:"sizes"` // scored, unless the target has its own
	Vary        Vary     `json:"vary"`
	Work        Work     `json:"work"`

	Reference Reference `json:"reference"`
	Eval      Eval      `json:"eval"`
	Rules     Rules     `json:"rules"`
	Agent     Agent     `json:"agent"`
	Reward    Reward    `json:"reward"`

	Targets       []TargetSpec `json:"targets"`
	DefaultLaunch *Launch      `json:"default_launch,omitempty"`
	Structures    []string     `json:"structures,omitempty"` // globs, relative to the task file

	File   string `json:"-"`      // where it was read
	Digest string `json:"digest"` // SHA-256 over everything above but File, hex
}

// Target returns the spec for t, or false.
func (t *Task) Target(target Target) (TargetSpec, bool) {
	for _, s := range t.Targets {
		if s.Target == target {
			return s, true
		}
	}
	return TargetSpec{}, false
}

// ScoredSizes returns the sizes that are scored on target: the target's own, else the task's.
func (t *Task) ScoredSizes(target Target) []Size {
	if s, ok := t.Target(target); ok && len(s.Sizes) > 0 {
		return s.Sizes
	}
	return t.Sizes
}

// Vary says how hidden sizes are drawn. With neither None nor Ranges they are drawn from 0.5 to 2 times each dim of the
// scored sizes, odd and prime ones among them.
type Vary struct {
	None   bool       `json:"none,omitempty"`
	Ranges []DimRange `json:"ranges,omitempty"`
}

// DimRange bounds one dim of the hidden sizes, both ends included.
type DimRange struct {
	Name string `json:"name"`
	Low  int64  `json:"low"`
	High int64  `json:"high"`
}

// Work says how much one launch does, as expressions over the dims: FLOPs and bytes moved at least. Empty: unknown.
type Work struct {
	FLOPs string `json:"flops,omitempty"`
	Bytes string `json:"bytes,omitempty"`
}

// Reference computes expected values in float64: a Starlark expression, a Starlark function body (Function names the def), or
// a command that reads and writes .npy files. Exactly one of Expr and Command is set.
type Reference struct {
	Expr    string   `json:"expr,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Eval holds tolerances and the measurement plan of GPU targets. An element passes when |out-ref| <= ATol + RTol*|ref|.
type Eval struct {
	ATol        float64  `json:"atol"`
	RTol        float64  `json:"rtol"`
	WarmupIters int      `json:"warmup_iters"`
	TimedIters  int      `json:"timed_iters"`
	Metric      string   `json:"metric"` // gflops, gbps or time
	Protocol    Protocol `json:"protocol"`
	// ExcludeDistributions names input distributions that the task's mathematics rules out, each with its reason.
	ExcludeDistributions map[string]string `json:"exclude_distributions,omitempty"`
	Deterministic        bool              `json:"deterministic,omitempty"` // the same input twice must give the same bits
}

// Protocol is a leaderboard's way to measure; the zero Protocol is Ridgepoint's own.
type Protocol struct {
	Runs      int    `json:"runs,omitempty"`      // timed launches kept; 0: TimedIters
	Discard   int    `json:"discard,omitempty"`   // first launches dropped after the warm-up
	Statistic string `json:"statistic,omitempty"` // median (default), mean or min
	NoFlush   bool   `json:"no_flush,omitempty"`
	NoRewrite bool   `json:"no_rewrite,omitempty"`
}

// Rules bound what a kernel may contain and how it may trade sizes.
type Rules struct {
	Forbid []string `json:"forbid,omitempty"` // words or calls
	// SizeBranching and WritableGlobals say what becomes of code that compares a dim with a scored size, or keeps state from
	// launch to launch. "" or verify: verification decides (hidden sizes, every launch checked), the finding is a warning;
	// forbid: refused before compiling; allow: not looked for.
	SizeBranching     string  `json:"size_branching,omitempty"`
	WritableGlobals   string  `json:"writable_globals,omitempty"`
	MaxSizeRegression float64 `json:"max_size_regression"` // 0.30: no scored size over 1.30 × baseline or incumbent
}

// Agent bounds the model's part. MaxIterations limits drafts, never parameter evaluations.
type Agent struct {
	MaxIterations  int     `json:"max_iterations"`
	Temperature    float64 `json:"temperature"`
	FeedbackSchema string  `json:"feedback_schema"` // structured_v1 or plain
}

// Reward is the reward as written; scheduler/reward gives it its meaning.
type Reward struct {
	Kind       string  `json:"kind"` // mean_std_fail, literal or expr
	StdWeight  float64 `json:"std_weight"`
	FailWeight float64 `json:"fail_weight"`
	Per        string  `json:"per"` // ratio_to_baseline or milliseconds
	Expr       string  `json:"expr,omitempty"`
}

// TargetSpec is what the person fixes for one target. No proposer can touch any of it.
type TargetSpec struct {
	Target       Target        `json:"target"`
	Arch         string        `json:"arch"`               // sm_90, gfx942; cpu: the concrete -march that native resolved to
	Features     []string      `json:"features,omitempty"` // cpu: instruction set extensions, sorted
	Baseline     Source        `json:"baseline"`
	Sizes        []Size        `json:"sizes,omitempty"`
	MaxRegisters int           `json:"maxrregcount,omitempty"` // 0: min(128, 65536/threads)
	FastMath     FastMath      `json:"fast_math"`
	Std          string        `json:"std,omitempty"`
	Flags        []string      `json:"flags,omitempty"`        // allow-listed
	IncludeDirs  []string      `json:"include_dirs,omitempty"` // absolute, or relative to the task's folder when embedded
	IncludeHash  string        `json:"include_hash,omitempty"` // SHA-256 over names and contents of IncludeDirs, hex
	SearchFlags  []SearchFlags `json:"search_flags,omitempty"` // build options that parameters may choose
}

// SearchFlags is a build option that a structure's parameter may set, with the values the task allows.
type SearchFlags struct {
	Option string   `json:"option"`
	Values []string `json:"values"` // compiler flags; "" is: no flag
}

// FastMath is the person's word on fast math.
type FastMath uint8

// The settings of fast math. The zero value is off.
const (
	FastMathOff FastMath = iota
	FastMathOn
	FastMathSearch // structures may choose
)

// MarshalText writes off, on or search.
func (f FastMath) MarshalText() ([]byte, error) {
	switch f {
	case FastMathOff:
		return []byte("off"), nil
	case FastMathOn:
		return []byte("on"), nil
	case FastMathSearch:
		return []byte("search"), nil
	default:
		return nil, fmt.Errorf("fast_math %d has no name", uint8(f))
	}
}

// UnmarshalText reads off, on or search.
func (f *FastMath) UnmarshalText(b []byte) error {
	switch string(b) {
	case "off":
		*f = FastMathOff
	case "on":
		*f = FastMathOn
	case "search":
		*f = FastMathSearch
	default:
		return fmt.Errorf("fast_math %q is not known; want off, on or search", b)
	}
	return nil
}

// Source is a file's name and content.
type Source struct {
	Name string `json:"name"` // base name, for messages
	Text string `json:"text"`
}
