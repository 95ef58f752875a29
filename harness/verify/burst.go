package verify

import (
	"context"
	"time"

	"ridgepoint/harness"
)

// Burster is a Bench that can queue many launches at once and wait for them together, each with everything that belongs to a
// timed launch: rewritten inputs, poisoned outputs, prepared scratch, flushed caches, the kernels between two events, red
// zones, inputs and comparison. Waiting after every launch would leave a GPU idle for longer than a small kernel runs.
type Burster interface {
	// Burst runs the launches in order and returns one Shotted for each that ran. A candidate at fault in a way that ends the
	// run (a crash, a hang, a refused launch) is a *Stop; wrong outputs and breaches are in the Shotted.
	Burst(ctx context.Context, b *Burst) ([]Shotted, error)
}

// Burst is a run of launches of one size.
type Burst struct {
	// Warmups is how many launches of the first set come before Launches, one right behind the other: no flush and no look at what
	// they wrote, which Launches are there for. Inputs that a kernel may write are rewritten before each.
	Warmups  int
	Warmed   time.Duration // what the warm-ups took on the device; filled by Burster.Burst
	Launches []BurstLaunch
	NoFlush  bool          // leave caches as they are, as a board's protocol may say
	Rewrite  bool          // rewrite inputs and outputs before every launch, not only where the set changes
	Limit    time.Duration // of one launch; the burst's is that many times as long
}

// BurstLaunch is one launch of a Burst.
type BurstLaunch struct {
	Set   *Set
	Seed  uint64 // of the poison
	Whole bool   // compare whole; else by projections where the output is over Traits.WholeCompareBytes
	// Unseen exchanges elements of the set's inputs first, as Mixer does, so that they are ones never met before. Nothing is known of
	// the outputs, and Shotted has no comparisons. Only the last launch may be so, and only on a bench that is a Mixer.
	Unseen bool
}

// Shotted is what one launch of a Burst gave.
type Shotted struct {
	Lap         Lap
	Breach      *Breach
	Comparisons []Comparison // in the order of Layout.Outputs
}

// Grapher is a Bench that can time a kernel too short for events a second way: many launches over rotated buffers in one
// graph.
type Grapher interface {
	// Graph returns the mean time of one run of the plan over launches runs in one graph, over as many distinct buffers as
	// exceed the caches, or as memory allows.
	Graph(ctx context.Context, s *Set, launches int) (time.Duration, error)
}

// Timeliner is a Bench that can say where the time of one run of a plan goes.
type Timeliner interface {
	// Timeline returns the median time of each step of the plan over launches runs, in order.
	Timeline(ctx context.Context, s *Set, launches int) ([]harness.Step, error)
}

// Mixer is a Bench that can make inputs never seen before out of a set's on the device: a share of the elements of each input that
// Layout.Mixes names change places. There are no expected values for them; they serve to see whether a kernel is slower on contents that it has
// not met.
type Mixer interface {
	// WriteMixed is Write with mixed inputs. Breach afterwards compares with what was written.
	WriteMixed(ctx context.Context, s *Set, seed uint64) error
}
