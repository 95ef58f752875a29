package verify

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, chunk, chunk + 1, 3*chunk - 7, 5*chunk + 1} {
		v := make([]float64, n)
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		want := slices.Clone(v)
		slices.Sort(want)
		if sortAll(v); !slices.Equal(v, want) {
			t.Errorf("%d values are not sorted", n)
		}
	}
}
