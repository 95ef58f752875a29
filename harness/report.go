package harness

import "time"

// Status is a stage's outcome in feedback: "" (not reached), PASS or FAIL.
type Status string

// The statuses.
const (
	StatusNone Status = ""
	StatusPass Status = "PASS"
	StatusFail Status = "FAIL"
)

// Report is what the harness says of one candidate. Stages are rules, compile, runtime, numerical and performance, in that
// order; once one fails, the fields of later stages are zero.
type Report struct {
	Version     int         `json:"version"` // ReportVersion
	CandidateID string      `json:"candidate_id"`
	Task        string      `json:"task"`
	TaskDigest  string      `json:"task_digest"`
	Target      Target      `json:"target"`
	Arch        string      `json:"arch"`
	Fault       Fault       `json:"fault"`
	Stage       Stage       `json:"stage"` // verification stage of the plan: search, confirm or replay
	Reason      string      `json:"reason,omitempty"`
	Evidence    *Evidence   `json:"evidence,omitempty"`
	Rules       Status      `json:"rules_status"`
	Compile     Status      `json:"compile_status"`
	Runtime     Status      `json:"runtime_status"`
	Numerical   Status      `json:"numerical_status"`
	Build       *Build      `json:"build,omitempty"`
	Errors      *Errors     `json:"errors,omitempty"` // worst over everything compared
	Sizes       []SizeTime  `json:"sizes,omitempty"`  // scored sizes, in the task's order
	Hidden      []SizeTime  `json:"hidden,omitempty"` // a replay's: sizes that nobody was scored on, timed after the others
	Censored    *Censored   `json:"censored,omitempty"`
	Contest     *Contest    `json:"contest,omitempty"`  // confirmations and A/A runs
	Survey      []Spectrum  `json:"survey,omitempty"`   // of StageCalibrate
	Profile     []Digest    `json:"profile,omitempty"`  // of plans that ask for it: one a launch, in their order
	Warnings    []Diagnosis `json:"warnings,omitempty"` // main problem first, then at most two minor ones
	Detail      []string    `json:"detail,omitempty"`   // everything else, one line each
	Environment Environment `json:"environment"`
	Split       Split       `json:"split"`
	Seed        uint64      `json:"seed"`
	Started     time.Time   `json:"started"`
	Finished    time.Time   `json:"finished"`
}

// ReportVersion is the version of Report's JSON form.
const ReportVersion = 1

// Stage is how thoroughly a candidate is verified: DESIGN's table of scored sizes, hidden sizes and input sets.
type Stage string

// The stages.
const (
	StageSearch  Stage = "search"
	StageFirst   Stage = "first" // the first candidate of a structure
	StageConfirm Stage = "confirm"
	StageReplay  Stage = "replay"
	// StageCalibrate measures the errors of a kernel that is known to be right, against no tolerance, and times nothing.
	StageCalibrate Stage = "calibrate"
)

// Errors are the numerical errors of outputs against the float64 reference, over all elements compared.
type Errors struct {
	MaxAbs        Number  `json:"max_abs_error"`
	MeanAbs       Number  `json:"mean_abs_error"`
	MismatchRatio float64 `json:"mismatch_ratio"` // share of elements out of tolerance, 0 to 1
	NonFinite     int64   `json:"non_finite"`
	Compared      int64   `json:"compared"` // elements
}

// Spectrum is how large the errors of one output are at one size and input set, against the float64 reference.
type Spectrum struct {
	Size         Size    `json:"size"`
	Distribution string  `json:"distribution"`
	Tensor       string  `json:"tensor"`
	DType        DType   `json:"dtype"`
	Elements     int64   `json:"elements"`
	RMS          float64 `json:"rms"` // of the expected output
	MaxAbs       Number  `json:"max_abs_error"`
	MeanAbs      Number  `json:"mean_abs_error"`
	NonFinite    int64   `json:"non_finite"`
	// Over[k] is how many elements err by more than MaxAbs/2^(k+1).
	Over []int64 `json:"over"`
	// MaxRel is the least r with |out-ref| <= Floor + r*|ref| everywhere, to a tenth; Floor is one rounding of the output's RMS.
	MaxRel float64 `json:"max_relative_error"`
	Floor  float64 `json:"floor"`
}

// Evidence says where a candidate went wrong, so that a person can go and look.
type Evidence struct {
	Kind         string  `json:"kind"` // mismatch, non_finite, unwritten, red_zone, inputs_changed, crash, timeout, ...
	Size         Size    `json:"size,omitempty"`
	Hidden       bool    `json:"hidden,omitempty"`
	Distribution string  `json:"distribution,omitempty"`
	InputSet     int     `json:"input_set"`
	Tensor       string  `json:"tensor,omitempty"`
	Index        []int64 `json:"index,omitempty"` // first wrong element
	Got          Number  `json:"got"`
	Want         Number  `json:"want"`
	Launch       int     `json:"launch"`            // 0: verification; n: the n-th launch of that size
	Timed        bool    `json:"timed,omitempty"`   // found in a warm-up or timed launch
	Pattern      string  `json:"pattern,omitempty"` // tail, every nth, rows, block edges, all, scattered
	Signal       string  `json:"signal,omitempty"`
}

// SizeTime is the timing of one scored size. Times are in microseconds.
type SizeTime struct {
	Size        Size      `json:"size"`
	MedianUS    float64   `json:"median_us"`
	SpreadRatio float64   `json:"spread_ratio"` // (p90-p10)/median of the kept samples
	SamplesUS   []float64 `json:"samples_us"`   // raw, in launch order, kept ones
	Dropped     int       `json:"dropped"`      // retaken for steal time, switches, throttling
	Warmups     int       `json:"warmups"`
	Noisy       bool      `json:"noisy,omitempty"`
	GraphUS     float64   `json:"graph_us,omitempty"` // the second way, for runtimes under 10 µs on GPU targets
	BaselineUS  float64   `json:"baseline_us,omitempty"`
	// BaselineNoisy says that the baseline's samples at this size were disturbed: no speed-up is built from them.
	BaselineNoisy bool    `json:"baseline_noisy,omitempty"`
	FLOPs         float64 `json:"flops,omitempty"`
	Bytes         float64 `json:"bytes,omitempty"`
	FloorUS       float64 `json:"floor_us,omitempty"` // 0.9 × physical floor: below it the value is quarantined
	ClockMHz      [2]int  `json:"clock_mhz"`          // lowest and highest seen, 0 when unknown
	// Timeline is where the time of one run of the plan goes, in its order; of plans with several steps, outside the search.
	Timeline []Step `json:"timeline,omitempty"`
}

// Step is one launch of a plan, or the clearing of its scratch, on the timeline of a run.
type Step struct {
	Name     string  `json:"name"` // the kernel's, or "clear workspace"
	MedianUS float64 `json:"median_us"`
}

// Censored says that racing stopped the measurement: the true score is worse than the incumbent's.
type Censored struct {
	MeasuredSizes int     `json:"measured_sizes"`
	LowerBound    float64 `json:"lower_bound"` // of the candidate's total time over scored sizes, as ratio to the incumbent
}

// Diagnosis is one problem with the direction in which to change the kernel.
type Diagnosis struct {
	Code      string `json:"code"` // uncoalesced_access, tail_unwritten, ...
	Problem   string `json:"problem"`
	Direction string `json:"direction"`
	Evidence  string `json:"evidence,omitempty"`
}

// Environment names what a report was measured with.
type Environment struct {
	Ridgepoint string            `json:"ridgepoint"` // version from the build info
	Host       string            `json:"host"`
	OS         string            `json:"os"`
	Device     string            `json:"device"` // "NVIDIA H200", "AMD EPYC 7763"
	DeviceID   string            `json:"device_id,omitempty"`
	Cores      int               `json:"cores"`
	Driver     string            `json:"driver,omitempty"`
	Toolchain  string            `json:"toolchain"`
	ClocksMHz  map[string][2]int `json:"clocks_mhz,omitempty"` // sm, memory: lowest and highest
	Throttle   []string          `json:"throttle,omitempty"`
	Flush      string            `json:"flush"` // "l2 3x per launch", "block", "none"
	Sandbox    string            `json:"sandbox"`
}

// Split is where the wall time of one evaluation went, in seconds.
type Split struct {
	Queue   float64 `json:"queue"`
	Compile float64 `json:"compile"`
	Load    float64 `json:"load"`
	Inputs  float64 `json:"inputs"`
	Verify  float64 `json:"verify"`
	Flush   float64 `json:"flush"` // on GPU targets by events, a part of Device
	Measure float64 `json:"measure"`
	Device  float64 `json:"device"` // event-measured device time within the above
	// Kernels is the part of Device in which kernels that are timed ran. What is neither that nor Flush is verification: its own
	// launches, and around each timed one the rewriting, poisoning and comparing.
	Kernels float64 `json:"kernels,omitempty"`
	Total   float64 `json:"total"`
}

// Record is the stored row of one evaluation. It is never rewritten.
type Record struct {
	Version      int           `json:"version"`
	Seq          int64         `json:"seq"` // within the campaign
	Campaign     string        `json:"campaign"`
	Trial        int64         `json:"trial"`
	Attempt      int           `json:"attempt"`
	Purpose      string        `json:"purpose"` // search, remeasure, confirm, replay, aa, baseline
	CandidateID  string        `json:"candidate_id"`
	Structure    string        `json:"structure"`
	StructureSHA string        `json:"structure_sha256"`
	Direction    string        `json:"direction"`
	KernelSHA    string        `json:"kernel_sha256"` // of the source with its parameters' macros
	Options      BuildOptions  `json:"options"`
	Config       Configuration `json:"configuration"`
	Report       Report        `json:"report"`
	Score        *float64      `json:"score,omitempty"` // nil when there is no value
	// PriorityScore is Score with the failures of the direction: it orders directions, never candidates.
	PriorityScore *float64  `json:"priority_score,omitempty"`
	ScoreStderr   float64   `json:"score_stderr,omitempty"`
	RewardKind    string    `json:"reward_kind"`
	Stored        time.Time `json:"stored"`
}

// RecordVersion is the version of Record's JSON form.
const RecordVersion = 1
