package measure

import (
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Timing is the time plan of one size.
type Timing struct {
	Warmups   int // launches before the first kept one
	Discard   int // of these the last, which are made as the kept ones are, as a board's protocol says
	MinRuns   int
	MaxRuns   int
	Window    time.Duration // kernels' time that the kept launches should fill; 0: MaxRuns always
	Unseen    bool          // end a burst with a launch on inputs never met before, for fresh
	RoundRuns int           // kept launches of one contestant in one round of a contest
	Statistic string        // median, mean or min
	Flush     bool          // flush caches before every launch; else once per size
	Rewrite   bool          // rewrite the inputs before every launch
	Retries   int           // times a noisy sample set is taken again
	Spread    float64       // (p90-p10)/median above which a sample set is noisy
	SlackUS   float64       // p90-p10 that no sample set is noisy for: the clock's own jitter
}

// spreadLimit is above what an undisturbed size shows (3 % on an H200, 2 to 8 % on two shared cores) and below what a
// neighbour on the machine causes.
const spreadLimit = 0.20

// eventSlackUS is the jitter of GPU events: p90-p10 of a 4 us kernel on an H200 is 0.7 to 1.2 us, whatever runs beside it.
const eventSlackUS = 1.5

// minGPUWarmups is DESIGN.md's: fewer than ten launches leave the clocks low.
const minGPUWarmups = 10

// TimingFor returns the plan of a task on a device. On the cpu it goes by time: 3 to 20 runs within 40 ms. On GPUs it is the
// task's own count.
func TimingFor(t *harness.Task, traits verify.Traits) Timing {
	p := t.Eval.Protocol
	m := Timing{Statistic: p.Statistic, Flush: traits.FlushPerLaunch && !p.NoFlush, Rewrite: !p.NoRewrite, Retries: 2, Spread: spreadLimit}
	if traits.Target == harness.TargetCPU {
		m.Warmups, m.MinRuns, m.MaxRuns, m.Window, m.RoundRuns = 2, 3, 20, 40*time.Millisecond, 3
	} else {
		m.Warmups, m.MinRuns, m.MaxRuns = max(minGPUWarmups, t.Eval.WarmupIters), max(1, t.Eval.TimedIters), max(1, t.Eval.TimedIters)
		m.RoundRuns, m.SlackUS = max(3, m.MaxRuns/5), eventSlackUS
	}
	if p.Runs > 0 {
		m.MinRuns, m.MaxRuns, m.Window, m.RoundRuns = p.Runs, p.Runs, 0, p.Runs
	}
	m.Warmups, m.Discard = m.Warmups+p.Discard, p.Discard
	return m
}

// noisy reports whether a sample set's spread is over the limit.
func (t Timing) noisy(kept []float64) bool {
	spread := Spread(kept)
	return spread > t.Spread && spread*Quantile(kept, 0.5) > t.SlackUS
}

// smallBytes is the footprint up to which a size is timed on three input sets in turn; above it, two.
const smallBytes = 4 << 20

// TimedSpecs returns the input sets that the launches of one size take in turn. The second differs from the first in a few
// elements only: a kernel that recognises its inputs by looking at some of them is caught. In the search stages they are the
// same for every candidate; in confirmation and replay they are fresh.
func TimedSpecs(stage harness.Stage, seed uint64, size int, footprintBytes int64) []verify.Spec {
	base := verify.ScaleSpec
	bucket := verify.SetSeed(stage, seed)
	if stage != harness.StageSearch && stage != harness.StageFirst {
		base = verify.Spec{Distribution: verify.Plain, Seed: verify.Mix(bucket, uint64(size), 0xa)}
	}
	sparse := base
	sparse.Sparse = true
	specs := []verify.Spec{base, sparse}
	if footprintBytes <= smallBytes {
		specs = append(specs, verify.Spec{Distribution: verify.Plain, Seed: verify.Mix(bucket, uint64(size), 0xb)})
	}
	return specs
}

// SetsOf returns what TimedSpecs does for a scored size of a task, by its index.
func SetsOf(t *harness.Task, stage harness.Stage, seed uint64, index int, size harness.Size) []verify.Spec {
	extents, err := task.Shapes(t, size)
	if err != nil {
		return nil // measuring says so
	}
	var footprint int64
	for _, e := range extents {
		footprint += e.Bytes()
	}
	return TimedSpecs(stage, seed, index, footprint)
}
