package verify

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sort"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// HiddenSizes draws n hidden sizes of a task for a target: within vary, else 0.5 to 2 times each dim of a scored size. The
// first of every three has prime dims, the second odd ones, the third any; none is a scored size, and none needs more than
// the largest scored size or limitBytes. With `vary: none` there are none. Fewer come back when the ranges hold no more.
func HiddenSizes(t *harness.Task, target harness.Target, n int, seed uint64, limitBytes int64) []harness.Size {
	if t.Vary.None {
		return nil
	}
	scored := t.ScoredSizes(target)
	var largest int64
	for _, s := range scored {
		largest = max(largest, footprint(t, s))
	}
	largest = min(largest, limitBytes)
	rng := rand.New(rand.NewPCG(seed, 0x51235))
	var out []harness.Size
	for try := 0; len(out) < n && try < 64*n; try++ {
		s := drawSize(t, scored, rng, len(out)%3)
		if b := footprint(t, s); b <= 0 || b > largest || containsSize(scored, s) || containsSize(out, s) {
			continue
		}
		out = append(out, s)
	}
	return out
}

func drawSize(t *harness.Task, scored []harness.Size, rng *rand.Rand, kind int) harness.Size {
	base := scored[rng.IntN(len(scored))]
	s := make(harness.Size, len(base))
	for i, d := range base {
		low, high := max(1, d.Value/2), 2*d.Value
		for _, r := range t.Vary.Ranges {
			if r.Name == d.Name {
				low, high = r.Low, r.High
			}
		}
		s[i] = harness.Dim{Name: d.Name, Value: drawDim(low, high, rng, kind)}
	}
	return s
}

// drawDim draws from [low, high]; kind 0 looks upwards (and round the end) for a prime, 1 takes an odd number where there is one.
func drawDim(low, high int64, rng *rand.Rand, kind int) int64 {
	v := low + rng.Int64N(high-low+1)
	switch kind {
	case 0:
		for i := range min(high-low+1, 2000) {
			if p := low + (v-low+i)%(high-low+1); big.NewInt(p).ProbablyPrime(0) && p > 2 {
				return p
			}
		}
	case 1:
		if v%2 == 0 && v+1 <= high {
			return v + 1
		}
		if v%2 == 0 && v-1 >= low {
			return v - 1
		}
	}
	return v
}

// footprint returns the bytes of all tensors at a size; 0 when it cannot be laid out.
func footprint(t *harness.Task, s harness.Size) int64 {
	extents, err := task.Shapes(t, s)
	if err != nil {
		return 0
	}
	var sum int64
	for _, e := range extents {
		sum += e.Bytes()
	}
	return sum
}

// effort orders sizes: the stated FLOPs and bytes, else the footprint.
func effort(t *harness.Task, s harness.Size) float64 {
	flops, bytes, err := task.WorkAt(t, s)
	if err != nil || flops+bytes == 0 {
		return float64(footprint(t, s))
	}
	return flops + bytes
}

// Ascending returns the indices of sizes from the least work to the most.
func Ascending(t *harness.Task, sizes []harness.Size) []int {
	order := make([]int, len(sizes))
	key := make([]float64, len(sizes))
	for i, s := range sizes {
		order[i], key[i] = i, effort(t, s)
	}
	sort.SliceStable(order, func(a, b int) bool { return key[order[a]] < key[order[b]] })
	return order
}

func containsSize(list []harness.Size, s harness.Size) bool {
	for _, x := range list {
		if x.Equal(s) {
			return true
		}
	}
	return false
}

// Case is one size to verify with its input sets.
type Case struct {
	Size   harness.Size
	Hidden bool
	Specs  []Spec
}

// searchBuckets is how many different seeds the search stage's sets come from: expected values are reused between candidates,
// and a campaign still meets several draws of hidden sizes and inputs.
const searchBuckets = 4

// wideBytes is the footprint up to which the smallest size is verified with every distribution in every stage: it costs less
// than a millisecond a set.
const wideBytes = 4 << 20

// largeBytes is the footprint from which the search stages verify with the plain set that the size is timed with too: expected
// values of another one would take longer than all the rest of an evaluation. Distributions are tried on smaller sizes.
const largeBytes = 8 << 20

// Cases returns what a stage verifies, from the least work to the most: DESIGN.md's table at least. In the search stages the
// sets of each size take the distributions in turn but for large sizes, and the smallest size gets all of them where it is
// small. The first of several sets is plain.
func Cases(t *harness.Task, target harness.Target, stage harness.Stage, seed uint64, limitBytes int64) []Case {
	v := stage.Verification()
	seed = SetSeed(stage, seed)
	sizes := append([]harness.Size(nil), t.ScoredSizes(target)...)
	scored := len(sizes)
	sizes = append(sizes, HiddenSizes(t, target, v.HiddenSizes, Mix(seed, 0x41dde2), limitBytes)...)
	all := Distributions(t)
	var out []Case
	for rank, i := range Ascending(t, sizes) {
		c := Case{Size: sizes[i], Hidden: i >= scored}
		n := v.InputSets
		if v.AllDistributions || rank == 0 && footprint(t, c.Size) <= wideBytes {
			n = max(n, len(all))
		}
		search := stage == harness.StageSearch || stage == harness.StageFirst
		for k := range n {
			at := rank + k
			if n >= len(all) || n > 1 && k == 0 { // all of them, or several with the plain one first
				at = k
			}
			spec := Spec{Distribution: all[at%len(all)], Seed: Mix(seed, uint64(i), uint64(k))}
			if search && k == 0 && (spec.Distribution == Plain || footprint(t, c.Size) >= largeBytes) {
				spec = ScaleSpec
			}
			c.Specs = append(c.Specs, spec)
		}
		out = append(out, c)
	}
	return out
}

// SetSeed returns the seed that a stage's input sets and hidden sizes follow from: one of a few in the search stages, fresh
// for confirmation and replay.
func SetSeed(stage harness.Stage, seed uint64) uint64 {
	switch stage {
	case harness.StageSearch, harness.StageFirst:
		return Mix(seed, 0x5ea2c4) % searchBuckets
	default:
		return Mix(seed, math.MaxUint64)
	}
}
