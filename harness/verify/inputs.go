package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// Spec says which input set is meant: all else follows from it.
type Spec struct {
	Distribution string // one of harness.Distributions, or Plain
	Seed         uint64
	// Sparse changes a few elements of the set that the same Spec gives without it (one in sparseShare, at least two a
	// tensor): a kernel that recognises inputs by looking at some of them takes the one for the other.
	Sparse bool
}

// Plain is the distribution that a task's tensors declare, each its own.
const Plain = ""

// sparseShare is how few elements Sparse changes. A probe of 1024 elements misses all changes with probability 0.78, and
// there are as many chances as sizes.
const sparseShare = 4096

// PlainName is the name that Plain goes by in reports: that of the first input.
func PlainName(t *harness.Task) string {
	for _, x := range t.Tensors {
		if x.Role != harness.RoleOut && x.Init != "" && x.Init != harness.InitPositive {
			return x.Init
		}
	}
	return harness.DistNormal
}

// Distributions returns what a task's inputs are drawn from, Plain first, without those the task excludes.
func Distributions(t *harness.Task) []string {
	out := []string{Plain}
	for _, d := range harness.Distributions() {
		if _, excluded := t.Eval.ExcludeDistributions[d]; !excluded && d != PlainName(t) {
			out = append(out, d)
		}
	}
	return out
}

// Generate draws the inputs of a task at a size. The result holds, per tensor, the buffer and the values as the dtype holds
// them; both are nil for role out.
func Generate(extents []task.Extent, spec Spec) (raw [][]byte, values [][]float64, err error) {
	raw, values = make([][]byte, len(extents)), make([][]float64, len(extents))
	for i, e := range extents {
		if e.Role == harness.RoleOut {
			continue
		}
		seed := Mix(spec.Seed, uint64(i)+1)
		logical := make([]float64, e.Elements)
		if err := draw(logical, e, spec.Distribution, seed); err != nil {
			return nil, nil, fmt.Errorf("draw %s: %w", e.Name, err)
		}
		if spec.Sparse {
			if err := change(logical, e, spec.Distribution, seed); err != nil {
				return nil, nil, fmt.Errorf("change %s: %w", e.Name, err)
			}
		}
		raw[i] = make([]byte, e.Bytes())
		if !contiguous(e) {
			Poison(raw[i], e.DType, seed) // what lies between strided elements is no zero
		}
		Encode(raw[i], logical, e)
		Decode(logical, raw[i], e, 0)
		values[i] = logical
	}
	return raw, values, nil
}

// change redraws a few elements.
func change(values []float64, e task.Extent, distribution string, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0x5ba35e))
	n := max(2, len(values)/sparseShare)
	fresh := make([]float64, max(2, min(n, len(values))))
	shape := e
	shape.Shape, shape.Elements = []int64{int64(len(fresh))}, int64(len(fresh))
	if err := draw(fresh, shape, distribution, Mix(seed, 0xd1ff)); err != nil {
		return err
	}
	for i := range min(n, len(values)) {
		at := rng.IntN(len(values))
		if values[at] == fresh[i] { // the same again changes nothing; a constant distribution has nothing else
			fresh[i] += 0.5
		}
		values[at] = fresh[i]
	}
	return nil
}

// chunk is how many elements share one generator: chunks are drawn in parallel, with the same result on any number of cores.
const chunk = 1 << 16

func draw(values []float64, e task.Extent, distribution string, seed uint64) error {
	init := e.Init
	if distribution == Plain {
		distribution = init
		if init == "" || init == harness.InitPositive {
			distribution = harness.DistNormal
		}
	}
	row := int64(1)
	if n := len(e.Shape); n > 0 {
		row = e.Shape[n-1]
	}
	fill, ok := fills[distribution]
	if !ok {
		return fmt.Errorf("distribution %q is not known; want one of %v", distribution, harness.Distributions())
	}
	parallel(len(values), func(from, to int) {
		fill(values[from:to], rand.New(rand.NewPCG(seed, uint64(from))), int64(from), row)
	})
	switch distribution {
	case harness.DistSorted:
		sortAll(values)
	case harness.DistSpikes: // at least one
		values[Mix(seed, 0x5b1ce)%uint64(len(values))] = 3e4
	}
	switch {
	case e.DType == harness.BoolType: // as many true as false
		for i, v := range values {
			values[i] = 0
			if v > 0 {
				values[i] = 1
			}
		}
	case !e.DType.IsFloat(): // integers: a spread of some dozens where a float has one of some units
		for i := range values {
			values[i] *= 16
		}
	}
	if init == harness.InitPositive {
		for i := range values {
			values[i] = math.Abs(values[i]) + 1e-3
		}
	}
	return nil
}

// fills draw adjacent elements; first is the logical index of the first, row the length of the last dim.
var fills = map[string]func(values []float64, rng *rand.Rand, first, row int64){
	harness.DistNormal: normal,
	harness.DistSorted: normal, // and sorted afterwards
	harness.DistUniform: func(v []float64, rng *rand.Rand, _, _ int64) {
		for i := range v {
			v[i] = 2*rng.Float64() - 1
		}
	},
	harness.DistTimes100: func(v []float64, rng *rand.Rand, _, _ int64) {
		for i := range v {
			v[i] = 100 * rng.NormFloat64()
		}
	},
	harness.DistPlus1000: func(v []float64, rng *rand.Rand, _, _ int64) {
		for i := range v {
			v[i] = 1000 + rng.NormFloat64()
		}
	},
	harness.DistSpikes: func(v []float64, rng *rand.Rand, _, _ int64) {
		for i := range v {
			v[i] = rng.NormFloat64()
			if rng.Uint64()%64 == 0 {
				v[i] *= 1e4
			}
		}
	},
	harness.DistConstantRows: func(v []float64, _ *rand.Rand, first, row int64) {
		for i := range v {
			r := uint64((first + int64(i)) / row)
			v[i] = float64(int64(Mix(r, 0xc0257a27)%4001)-2000) / 500 // -4 to 4, exact in small floats' neighbourhood
		}
	},
	harness.DistTiny: func(v []float64, rng *rand.Rand, _, _ int64) {
		for i := range v {
			switch r := rng.Uint64(); r % 4 {
			case 0:
				v[i] = 0
			case 1:
				v[i] = math.Copysign(0, -1)
			case 2:
				v[i] = float64(math.Float32frombits(uint32(r>>32) & 0x807fffff)) // denormal in float32
			default:
				v[i] = float64(math.Float32frombits(uint32(r>>32)&0x807fffff | 1<<23)) // the smallest normals
			}
		}
	},
}

func normal(v []float64, rng *rand.Rand, _, _ int64) {
	for i := range v {
		v[i] = rng.NormFloat64()
	}
}

// sortAll sorts finite values on all cores: chunks first, then runs of them merged pairwise. Sorting the 16 million of a
// 4096 x 4096 input on one core took as long as its expected values.
func sortAll(v []float64) {
	parallel(len(v), func(from, to int) { slices.Sort(v[from:to]) })
	from, to := v, make([]float64, len(v))
	for run := chunk; run < len(v); run *= 2 {
		var wg sync.WaitGroup
		for low := 0; low < len(v); low += 2 * run {
			mid, high := min(low+run, len(v)), min(low+2*run, len(v))
			wg.Go(func() { merge(to[low:high], from[low:mid], from[mid:high]) })
		}
		wg.Wait()
		from, to = to, from
	}
	copy(v, from) // which may be v itself
}

// merge merges two sorted runs into dst, as long as both together.
func merge(dst, a, b []float64) {
	for len(a) > 0 && len(b) > 0 {
		if b[0] < a[0] {
			dst[0], b = b[0], b[1:]
		} else {
			dst[0], a = a[0], a[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, a):], b)
}

// parallel calls do over [0, n) in chunks on all cores and waits.
func parallel(n int, do func(from, to int)) {
	chunks := (n + chunk - 1) / chunk
	workers := min(runtime.GOMAXPROCS(0), chunks)
	if workers <= 1 {
		for from := 0; from < n; from += chunk {
			do(from, min(from+chunk, n))
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for c := w; c < chunks; c += workers {
				do(c*chunk, min((c+1)*chunk, n))
			}
		})
	}
	wg.Wait()
}
