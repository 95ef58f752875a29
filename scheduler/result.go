package scheduler

import "ridgepoint/harness"

// Result is how a campaign ended, or where it stands: the object that `run --json` ends with.
type Result struct {
	Campaign             string         `json:"campaign"`
	Task                 string         `json:"task"`
	Target               harness.Target `json:"target"`
	Evaluations          int64          `json:"evaluations"`
	Candidates           Counts         `json:"candidates"`
	EvaluationsPerSecond float64        `json:"evaluations_per_second"`
	DeviceBusy           float64        `json:"device_busy"` // event-measured device time of candidates over wall time
	WorkerHeld           float64        `json:"worker_held"` // share of the wall time in which a worker held the device
	Winner               *Winner        `json:"winner"`      // nil: nothing was confirmed
}

// Counts says what became of the distinct candidates.
type Counts struct {
	Evaluated int64            `json:"evaluated"` // verified and timed under the whole plan
	Censored  int64            `json:"censored"`  // stopped by racing
	Cached    int64            `json:"cached"`    // asked again, answered from memory
	Failed    map[string]int64 `json:"failed"`    // by fault
}

// Winner is the incumbent at the end of a campaign.
type Winner struct {
	Candidate     string                `json:"candidate"` // its id
	Structure     string                `json:"structure"`
	Configuration harness.Configuration `json:"configuration"`
	Speedup       float64               `json:"speedup"` // confirmed, geometric mean over sizes
	// ReplayedSpeedup is the number to quote: from a fresh process, an empty cache and new seeds. 0: not replayed yet.
	ReplayedSpeedup float64      `json:"replayed_speedup"`
	Interval        [2]float64   `json:"interval"` // 95 % of the replayed speedup; of the confirmed one before the replay
	Sizes           []WinnerSize `json:"sizes"`
}

// WinnerSize is one line of the per-size table. Times are in microseconds.
type WinnerSize struct {
	Size       harness.Size `json:"size"`
	BaselineUS float64      `json:"baseline_us"` // in the replay's pairs, else in the confirmation's
	RuntimeUS  float64      `json:"runtime_us"`  // as confirmed
	ReplayedUS float64      `json:"replayed_us"` // 0: not replayed yet
}
