package gp

import (
	"math"
	"math/rand/v2"

	"ridgepoint/optimizer"
)

// Figures of the forest that predicts success.
const (
	trees   = 40
	leafMin = 2
)

// forest is a random forest over value ranks that gives the probability that a configuration runs.
type forest struct {
	roots []int32
	nodes []node
}

type node struct {
	param int16 // -1: leaf
	at    uint16
	left  int32 // rows with index <= at; right is left+1... see right
	right int32
	ok    float64
}

// growForest fits the forest to rows (value indices) and whether each ran.
func growForest(rows []optimizer.Row, ok []bool, rng *rand.Rand) *forest {
	f := &forest{}
	n := len(rows)
	g := &grower{f: f, rows: rows, ok: ok, rng: rng, tries: max(1, int(math.Round(math.Sqrt(float64(len(rows[0]))))))}
	for range trees {
		sample := make([]int, n)
		for i := range sample {
			sample[i] = rng.IntN(n)
		}
		f.roots = append(f.roots, g.grow(sample))
	}
	return f
}

type grower struct {
	f     *forest
	rows  []optimizer.Row
	ok    []bool
	rng   *rand.Rand
	tries int
}

func (g *grower) grow(sample []int) int32 {
	good := 0
	for _, i := range sample {
		if g.ok[i] {
			good++
		}
	}
	at := int32(len(g.f.nodes))
	g.f.nodes = append(g.f.nodes, node{param: -1, ok: float64(good) / float64(len(sample))})
	if good == 0 || good == len(sample) || len(sample) < 2*leafMin {
		return at
	}
	param, cut := g.split(sample, good)
	if param < 0 {
		return at
	}
	var left, right []int
	for _, i := range sample {
		if g.rows[i][param] <= cut {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	l := g.grow(left)
	r := g.grow(right)
	g.f.nodes[at].param, g.f.nodes[at].at, g.f.nodes[at].left, g.f.nodes[at].right = int16(param), cut, l, r
	return at
}

// split finds the cut of the lowest Gini impurity among a few randomly chosen parameters; -1 when none separates.
func (g *grower) split(sample []int, good int) (param int, cut uint16) {
	param = -1
	best := math.Inf(1)
	n := len(sample)
	for _, p := range g.rng.Perm(len(g.rows[0]))[:min(g.tries+1, len(g.rows[0]))] {
		count, ok := map[uint16]int{}, map[uint16]int{}
		low, high := uint16(math.MaxUint16), uint16(0)
		for _, i := range sample {
			v := g.rows[i][p]
			count[v]++
			low, high = min(low, v), max(high, v)
			if g.ok[i] {
				ok[v]++
			}
		}
		nl, gl := 0, 0
		for v := int(low); v < int(high); v++ {
			c := count[uint16(v)]
			if c == 0 {
				continue
			}
			nl += c
			gl += ok[uint16(v)]
			if nl < leafMin || n-nl < leafMin {
				continue
			}
			if score := gini(nl, gl) + gini(n-nl, good-gl); score < best {
				best, param, cut = score, p, uint16(v)
			}
		}
	}
	return param, cut
}

func gini(n, good int) float64 {
	return float64(good) * float64(n-good) / float64(n)
}

// success returns the mean over the trees of the share of successes in the row's leaf.
func (f *forest) success(row optimizer.Row) float64 {
	sum := 0.0
	for _, at := range f.roots {
		for f.nodes[at].param >= 0 {
			if row[f.nodes[at].param] <= f.nodes[at].at {
				at = f.nodes[at].left
			} else {
				at = f.nodes[at].right
			}
		}
		sum += f.nodes[at].ok
	}
	return sum / float64(len(f.roots))
}
