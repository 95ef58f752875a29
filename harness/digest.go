package harness

import "time"

// Digest is what is known of one launch of a kernel: harness/profile makes and reads it. Shares are 0 to 1; a negative share or
// ratio is unknown.
type Digest struct {
	Kernel           string        `json:"kernel"`
	Source           string        `json:"source"` // "ncu" or "fallback: why"
	Duration         time.Duration `json:"duration_ns"`
	Grid             string        `json:"grid,omitempty"`
	Block            string        `json:"block,omitempty"`
	Registers        int           `json:"registers"`
	SharedBytes      int           `json:"shared_bytes"`
	Occupancy        float64       `json:"achieved_occupancy"`
	OccupancyLimit   string        `json:"occupancy_limit"` // what limits the theoretical one
	ComputeShare     float64       `json:"compute_throughput"`
	MemoryShare      float64       `json:"memory_throughput"`
	DRAMShare        float64       `json:"dram_throughput"`
	DRAMBytes        float64       `json:"dram_bytes"`
	LoadEfficiency   float64       `json:"load_efficiency"` // bytes used of bytes fetched, global loads
	StoreEfficiency  float64       `json:"store_efficiency"`
	SectorsLoad      float64       `json:"sectors_per_load"`
	SectorsStore     float64       `json:"sectors_per_store"`
	BankConflicts    float64       `json:"bank_conflict_share"` // of shared-memory wavefronts
	LocalSectors     float64       `json:"local_sectors"`       // local memory traffic: spills
	IssueShare       float64       `json:"issue_active"`
	Waves            float64       `json:"waves"`
	ActiveThreads    float64       `json:"active_threads"`     // of a warp's 32, an instruction
	PredicatedOn     float64       `json:"predicated_threads"` // of a warp's 32, not predicated off
	TopStall         string        `json:"top_stall"`
	TopStallRatio    float64       `json:"top_stall_ratio"` // warps stalled so for each one that issues
	Diagnoses        []Diagnosis   `json:"diagnoses"`
	SpillBytes       int           `json:"spill_bytes"` // a thread, by the compiler
	TheoreticalShare float64       `json:"theoretical_occupancy"`
}
