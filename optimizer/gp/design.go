package gp

import (
	"math"
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/formula"
)

// designSubset is how many configurations a start is chosen from.
const designSubset = 3000

// startDesign returns more points than a start needs, space-filling, the first ones in the launch window; and that window, nil when there is none.
func startDesign(pool *optimizer.Pool, o Options) (design []int, window *launch) {
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	subset := drawSubset(pool, rng, designSubset)
	window, inside := launchWindow(pool, subset)
	if !o.has(PartWindow) {
		window = nil
	}
	switch {
	case !o.has(PartMaximin):
		rng.Shuffle(len(subset), func(a, b int) { subset[a], subset[b] = subset[b], subset[a] })
		return subset[:min(4*designSize, len(subset))], window
	case window == nil:
		return maximin(pool, rng, 4*designSize, subset), nil
	default:
		return extend(pool, rng, maximin(pool, rng, windowSize, inside), 4*designSize, subset), window
	}
}

// maximin returns a space-filling start of n configurations: the first is random, each next is the one farthest from those
// chosen, in rank space (a value's cumulative share of the subset), so that values which the constraints leave rare do not
// count as far.
func maximin(pool *optimizer.Pool, rng *rand.Rand, n int, subset []int) []int {
	return extend(pool, rng, nil, n, subset)
}

// extend continues a start.
func extend(pool *optimizer.Pool, rng *rand.Rand, chosen []int, n int, subset []int) []int {
	dims := pool.Space().Dims()
	ranks := rankTables(pool, subset)
	at := func(i, k int) float64 { return ranks[k][pool.Row(subset[i])[k]] }
	far := make([]float64, len(subset))
	for i := range far {
		far[i] = math.Inf(1)
	}
	var out []int
	keep := func(id int) (next int) {
		best := -1.0
		row := pool.Row(id)
		for i := range subset {
			d := 0.0
			for k := range dims {
				x := at(i, k) - ranks[k][row[k]]
				d += x * x
			}
			far[i] = math.Min(far[i], d)
			if far[i] > best {
				best, next = far[i], i
			}
		}
		out = append(out, id)
		return next
	}
	next := rng.IntN(len(subset))
	for _, id := range chosen {
		next = keep(id)
	}
	for len(out) < min(n, len(subset)) {
		next = keep(subset[next])
	}
	return out
}

// launchWindow returns the window of configurations whose blocks have 64 to 512 threads in whole warps, where good kernels mostly
// are, and those of a subset that lie in it; nil when the threads are not known or such configurations are few.
func launchWindow(pool *optimizer.Pool, subset []int) (window *launch, inside []int) {
	if window = newLaunch(pool); window == nil {
		return nil, nil
	}
	for _, id := range subset {
		if window.within(id) {
			inside = append(inside, id)
		}
	}
	if len(inside) <= 200 {
		return nil, nil
	}
	return window, inside
}

// launch tells which configurations of a pool lie in the launch window.
type launch struct {
	pool    *optimizer.Pool
	threads *formula.Formula
	frame   *formula.Frame
	known   map[int]bool
}

// newLaunch returns nil when the threads are not known.
func newLaunch(pool *optimizer.Pool) *launch {
	space := pool.Space()
	f := space.Threads()
	if f == nil {
		return nil
	}
	return &launch{pool: pool, threads: f, frame: space.Scope().NewFrame(), known: map[int]bool{}}
}

func (l *launch) within(id int) bool {
	in, ok := l.known[id]
	if !ok {
		space, row := l.pool.Space(), l.pool.Row(id)
		for _, slot := range l.threads.Slots() {
			l.frame.Set(slot, space.Values(slot)[row[slot]])
		}
		t, err := l.threads.Number(l.frame)
		in = err == nil && t >= 64 && t <= 512 && math.Mod(t, 32) == 0
		l.known[id] = in
	}
	return in
}

// rankTables returns, for each parameter and value index, the middle of the value's share of the subset.
func rankTables(pool *optimizer.Pool, subset []int) [][]float64 {
	space := pool.Space()
	out := make([][]float64, space.Dims())
	for k := range out {
		count := make([]float64, len(space.Values(k)))
		for _, id := range subset {
			count[pool.Row(id)[k]]++
		}
		out[k] = make([]float64, len(count))
		below := 0.0
		for _, v := range byCoordinate(space, k) {
			out[k][v] = (below + count[v]/2) / float64(len(subset))
			below += count[v]
		}
	}
	return out
}

// byCoordinate returns the value indices of a parameter in order of their coordinate.
func byCoordinate(space *optimizer.Space, k int) []int {
	coords := space.Coordinates(k)
	order := make([]int, len(coords))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return coords[order[a]] < coords[order[b]] })
	return order
}

// drawSubset returns at most n distinct configurations, uniformly drawn.
func drawSubset(pool *optimizer.Pool, rng *rand.Rand, n int) []int {
	if !pool.Space().Enumerated() {
		seen := map[int]bool{}
		var out []int
		for range n {
			if id := pool.Draw(rng); !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
		return out
	}
	total := pool.Len()
	if total <= n {
		out := make([]int, total)
		for i := range out {
			out[i] = i
		}
		return out
	}
	return floyd(rng, total, n)
}

// floyd draws n distinct numbers below total by Floyd's method, sorted.
func floyd(rng *rand.Rand, total, n int) []int {
	seen := make(map[int]bool, n)
	out := make([]int, 0, n)
	for j := total - n; j < total; j++ {
		k := rng.IntN(j + 1)
		if seen[k] {
			k = j
		}
		seen[k] = true
		out = append(out, k)
	}
	sort.Ints(out)
	return out
}
