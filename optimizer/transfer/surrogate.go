package transfer

import (
	"math"
	"sort"

	"ridgepoint/optimizer"
)

// Figures of the surrogate of a source that measured a small part of the space.
const (
	dense          = 0.5  // share of the space from which a source needs no surrogate
	bandwidth      = 0.25 // of the kernel, in each parameter's coordinate
	priorWeight    = 0.05 // weight of the source's mean: what is far from all it measured counts as that
	surrogatePoint = 600  // observations kept: the best third and an even choice of the rest
	failedRelative = 2.0  // ln slower than the best that a failed configuration counts as
)

// surrogate predicts what a source would have said of configurations that it did not measure: a kernel regression over the
// parameters' coordinates.
type surrogate struct {
	coords [][]float64 // by parameter, then value index
	order  []bool      // whether the parameter is ordered
	rows   []optimizer.Row
	values []float64
	mean   float64
}

// newSurrogate takes what the source measured, by id, and the ids that failed.
func newSurrogate(pool *optimizer.Pool, values map[int]float64, failed []int) *surrogate {
	space := pool.Space()
	s := &surrogate{}
	for i := range space.Dims() {
		s.coords, s.order = append(s.coords, space.Coordinates(i)), append(s.order, space.Ordered(i))
	}
	ids := make([]int, 0, len(values)+len(failed))
	for id := range values {
		ids = append(ids, id)
	}
	all := make(map[int]float64, len(values)+len(failed))
	for id, v := range values {
		all[id] = math.Min(v, failedRelative)
	}
	for _, id := range failed {
		if _, measured := all[id]; !measured {
			all[id] = failedRelative
			ids = append(ids, id)
		}
	}
	sort.Slice(ids, func(a, b int) bool {
		if all[ids[a]] != all[ids[b]] {
			return all[ids[a]] < all[ids[b]]
		}
		return ids[a] < ids[b]
	})
	for _, id := range ids {
		s.mean += all[id] / float64(len(ids))
	}
	best := min(len(ids), surrogatePoint/3)
	rest := min(len(ids)-best, surrogatePoint-best)
	for i := range best + rest {
		id := ids[i]
		if i >= best {
			id = ids[best+(i-best)*(len(ids)-best)/rest]
		}
		s.rows = append(s.rows, append(optimizer.Row(nil), pool.Row(id)...))
		s.values = append(s.values, all[id])
	}
	return s
}

// farOff is the squared distance from which an observation has no weight to speak of.
const farOff = 40

// predict returns ln(value/best) as the source is expected to have measured it.
func (s *surrogate) predict(row optimizer.Row) float64 {
	sum, weight := priorWeight*s.mean, priorWeight
	for i, r := range s.rows {
		d2 := 0.0
		for k, v := range row {
			switch {
			case s.order[k]:
				d := (s.coords[k][v] - s.coords[k][r[k]]) / bandwidth
				d2 += d * d
			case v != r[k]:
				d2 += 1 / (bandwidth * bandwidth)
			}
			if d2 >= farOff {
				break
			}
		}
		if d2 < farOff {
			w := math.Exp(-d2 / 2)
			sum += w * s.values[i]
			weight += w
		}
	}
	return sum / weight
}
