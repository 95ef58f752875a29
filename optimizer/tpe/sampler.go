// Package tpe is a multivariate tree-structured Parzen estimator in goptuna's RelativeSampler seam: seeded, aware of
// constraints, of pending trials (as points to keep away from) and of failed ones. goptuna's shipped TPE is univariate,
// unseeded and blind to all three; it is here too (Shipped), as a baseline.
package tpe

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/c-bata/goptuna"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/study"
)

// Figures of the estimator.
const (
	startup    = 8   // told trials before the estimator speaks
	candidates = 96  // drawn from the good group, the best ratio is taken
	goodShare  = 0.1 // of the trials, and at most goodLimit of them, form the good group
	goodLimit  = 25
	badLimit   = 700 // a larger bad group is thinned out evenly, which bounds the time of an ask
)

// Sampler is the estimator. It implements goptuna.RelativeSampler.
type Sampler struct {
	seed    uint64
	history *optimizer.History // for which configurations are feasible and open
	space   *optimizer.Space
	coords  [][]float64
}

var _ goptuna.RelativeSampler = (*Sampler)(nil)

// New returns a strategy that proposes with the estimator through a goptuna study.
func New(space *optimizer.Space, seed uint64) (*Strategy, error) {
	s := &Sampler{seed: seed, space: space}
	for i := range space.Dims() {
		s.coords = append(s.coords, space.Coordinates(i))
	}
	inner, err := study.New(space, study.Options{
		Sampler: goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(int64(seed))), Relative: s, Tries: 1})
	if err != nil {
		return nil, err
	}
	return &Strategy{sampler: s, inner: inner}, nil
}

// SampleRelative returns the value index of each parameter of the next configuration: feasible and open.
func (s *Sampler) SampleRelative(_ *goptuna.Study, _ goptuna.FrozenTrial, _ map[string]interface{}) (map[string]float64, error) {
	rng := rand.New(rand.NewPCG(s.seed, s.history.Sequence()))
	good, bad := s.split()
	var err error
	var id int
	if len(good)+len(bad) >= startup && len(good) > 0 {
		id, err = s.best(rng, newEstimator(s, good), newEstimator(s, bad))
	} else if drawn, ok := s.history.DrawOpen(rng); ok {
		id = drawn
	} else {
		err = optimizer.ErrExhausted
	}
	if err != nil {
		return nil, err
	}
	out := make(map[string]float64, s.space.Dims())
	for i, name := range s.space.Names() {
		out[name] = float64(s.history.Pool.Row(id)[i])
	}
	return out, nil
}

// split divides the trials into the good group and the bad group, which also has the pending and the failed ones. It reads the
// history, of which the study is a copy: goptuna hands out a deep copy of every trial at each call.
func (s *Sampler) split() (good, bad []optimizer.Row) {
	h := s.history
	done := make([]*optimizer.Trial, 0, len(h.Trials))
	for i := range h.Trials {
		if t := &h.Trials[i]; t.Failed || t.Censored {
			bad = append(bad, h.Pool.Row(t.ID))
		} else {
			done = append(done, t)
		}
	}
	for _, id := range h.Pending() {
		bad = append(bad, h.Pool.Row(id))
	}
	slices.SortFunc(done, func(a, b *optimizer.Trial) int {
		if c := cmp.Compare(a.Log, b.Log); c != 0 {
			return c
		}
		return slices.Compare(h.Pool.Row(a.ID), h.Pool.Row(b.ID))
	})
	n := min(int(math.Ceil(goodShare*float64(len(done)))), goodLimit)
	for i, t := range done {
		if i < n {
			good = append(good, h.Pool.Row(t.ID))
		} else {
			bad = append(bad, h.Pool.Row(t.ID))
		}
	}
	slices.SortFunc(bad, slices.Compare[optimizer.Row])
	if len(bad) > badLimit {
		thin := make([]optimizer.Row, badLimit)
		for i := range thin {
			thin[i] = bad[i*len(bad)/badLimit]
		}
		bad = thin
	}
	return good, bad
}

// best draws open configurations from the good group's estimate and returns the one that the good group explains best
// against the bad one.
func (s *Sampler) best(rng *rand.Rand, good, bad *estimator) (int, error) {
	bestID, bestScore := -1, math.Inf(-1)
	row := make(optimizer.Row, s.space.Dims())
	for tries, found := 0, 0; found < candidates && tries < 8*candidates; tries++ {
		good.draw(rng, row)
		id, ok := s.history.Pool.ID(row)
		if !ok || !s.history.Open(id) {
			continue
		}
		found++
		if score := good.logDensity(row) - bad.logDensity(row); score > bestScore {
			bestID, bestScore = id, score
		}
	}
	if bestID >= 0 {
		return bestID, nil
	}
	if id, ok := s.history.DrawOpen(rng); ok { // the estimate lies on infeasible or tried ground
		return id, nil
	}
	return 0, optimizer.ErrExhausted
}
