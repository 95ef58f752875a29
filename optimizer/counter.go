package optimizer

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"ridgepoint/optimizer/formula"
)

// counter counts the feasible rows below any partial assignment without visiting them: what is below depends only on the bound
// parameters that a later constraint or condition still uses (the frontier), so counts are kept by frontier. With the counts
// a uniform draw walks down the tree once.
type counter struct {
	space    *Space
	frontier [][]int // by depth: bound parameters that matter below
	memo     []map[string]float64
	entries  int
	bound    int // values tried so far, below all prefixes
	total    float64
}

// maxCounts bounds the memory of a counter: about 100 bytes an entry.
const maxCounts = 2_000_000

// maxBound bounds the time of a count: 10 to 30 s, where a constraint that ties three long ranges together would take days. Every
// space that fits in memory as a whole takes far less.
const maxBound = 200_000_000

func newCounter(s *Space) (*counter, error) {
	c := &counter{space: s, frontier: frontiers(s), memo: make([]map[string]float64, len(s.names)+1)}
	for d := range c.memo {
		c.memo[d] = map[string]float64{}
	}
	total, err := c.below(s.walker(), 0)
	c.total = total
	return c, err
}

func frontiers(s *Space) [][]int {
	n := len(s.names)
	last := make([]int, n) // the depth of the last check that uses the parameter
	use := func(f *formula.Formula, depth int) {
		for _, slot := range f.Slots() {
			last[slot] = max(last[slot], depth)
		}
	}
	for depth, checks := range s.checks {
		for _, f := range checks {
			use(f, depth)
		}
	}
	for p, f := range s.when {
		if f != nil {
			use(f, s.place[p]+1)
		}
	}
	out := make([][]int, n+1)
	for depth := range out {
		for d := range depth {
			if p := s.order[d]; last[p] > depth {
				out[depth] = append(out[depth], p)
			}
		}
	}
	return out
}

func (c *counter) key(w *walker, depth int) string {
	var buf [64]byte
	b := buf[:0]
	for _, p := range c.frontier[depth] {
		b = binary.LittleEndian.AppendUint16(b, w.row[p])
	}
	return string(b)
}

// below returns how many feasible rows extend what w has bound above depth.
func (c *counter) below(w *walker, depth int) (float64, error) {
	if depth == len(w.row) {
		return 1, nil
	}
	key := c.key(w, depth)
	if n, ok := c.memo[depth][key]; ok {
		return n, nil
	}
	from, to, err := w.choices(depth)
	if err != nil {
		return 0, err
	}
	if c.bound += to - from; c.bound > maxBound {
		return 0, fmt.Errorf("space: takes too long to count: its constraints tie too many values together (over %d combinations to try): give the parameters fewer values", maxBound)
	}
	total := 0.0
	for k := from; k < to; k++ {
		w.bind(depth, uint16(k))
		ok, err := w.allowed(depth + 1)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		n, err := c.below(w, depth+1)
		if err != nil {
			return 0, err
		}
		total += n
	}
	if c.entries++; c.entries > maxCounts {
		return 0, fmt.Errorf("space: too large to count: its constraints tie too many parameters together (over %d combinations to keep): give the parameters fewer values", maxCounts)
	}
	c.memo[depth][key] = total
	return total, nil
}

// draw returns a uniformly drawn feasible row.
func (c *counter) draw(rng *rand.Rand) Row {
	w := c.space.walker()
	for depth := range w.row {
		at := rng.Float64() * c.must(w, depth)
		from, to, _ := w.choices(depth) // every prefix was visited, without an error, when the space was counted
		last := -1
		for k := from; k < to && at >= 0; k++ {
			w.bind(depth, uint16(k))
			if ok, _ := w.allowed(depth + 1); !ok {
				continue
			}
			if n := c.must(w, depth+1); n > 0 {
				at -= n
				last = k
			}
		}
		w.bind(depth, uint16(last))
	}
	return w.row
}

// must returns a count that is known to exist.
func (c *counter) must(w *walker, depth int) float64 {
	n, err := c.below(w, depth)
	if err != nil {
		panic(fmt.Sprintf("optimizer: a counted space cannot be counted again: %v", err))
	}
	return n
}
