package harness

import "time"

// Request asks for one evaluation: a candidate of a task, judged under a plan. Rivals are measured in the same process,
// interleaved with the candidate, in a confirmation (baseline first, then the incumbent); elsewhere Rivals holds the
// baseline alone, or nothing when its cached times serve.
type Request struct {
	Task      *Task      `json:"task"`
	Candidate *Candidate `json:"candidate"`
	Rivals    []Rival    `json:"rivals,omitempty"`
	Plan      Plan       `json:"plan"`
}

// Rival is another candidate measured beside the one that is judged.
type Rival struct {
	Role      string     `json:"role"` // baseline or incumbent
	Candidate *Candidate `json:"candidate"`
}

// Plan says how thoroughly to verify and how long to measure.
type Plan struct {
	Stage Stage  `json:"stage"`
	Seed  uint64 `json:"seed"` // inputs, poison, hidden sizes and orders all follow from it
	Race  *Race  `json:"race,omitempty"`
	// Rounds is the number of A/B/B/A rounds of a confirmation or an A/A run; 0 elsewhere.
	Rounds int `json:"rounds,omitempty"`
	// Deadline bounds the whole evaluation on its device; zero: the harness's own limit (StageLimits).
	Deadline time.Duration `json:"deadline,omitempty"`
	// Profile asks for a digest of each launch at the largest scored size, by Nsight Compute where it runs.
	Profile bool `json:"profile,omitempty"`
	// Processes is in how many fresh processes of the device the candidate is measured, one after the other, their samples together; 0:
	// in the one that is there. For the GPU targets.
	Processes int `json:"processes,omitempty"`
	// FreshCache builds in an empty cache and a fresh process: the replay.
	FreshCache bool `json:"fresh_cache,omitempty"`
}

// Race lets a measurement stop early: Best holds, per scored size in order, the best confirmed time; the measurement stops when
// what is measured plus 0.97 × Best of the rest is already worse than Incumbent at 99 %. All in microseconds.
type Race struct {
	BestUS      []float64 `json:"best_us"`
	IncumbentUS []float64 `json:"incumbent_us"`
	BaselineUS  []float64 `json:"baseline_us"` // weights of the ratio
}

// Contest holds the paired measurements of a confirmation: MedianUS[round][contestant][size]. Contestants are roles
// ("baseline", "incumbent", "candidate") in the order of the innermost run; Order[round] is the order they ran in.
type Contest struct {
	Contestants []string      `json:"contestants"`
	Sizes       []Size        `json:"sizes"`
	Order       [][]int       `json:"order"`
	MedianUS    [][][]float64 `json:"median_us"`
}

// Verification is how much a Stage verifies: DESIGN.md, section 6.
type Verification struct {
	HiddenSizes      int
	InputSets        int  // per size
	AllDistributions bool // instead of InputSets
}

// Verification returns the stage's row of the verification table; an unknown stage gets the strictest.
func (s Stage) Verification() Verification {
	switch s {
	case StageSearch:
		return Verification{HiddenSizes: 1, InputSets: 1}
	case StageFirst:
		return Verification{HiddenSizes: 4, InputSets: 3}
	case StageConfirm:
		return Verification{HiddenSizes: 4, InputSets: 3}
	default:
		return Verification{HiddenSizes: 8, AllDistributions: true}
	}
}
