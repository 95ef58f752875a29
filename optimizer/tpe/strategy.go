package tpe

import (
	"context"
	"math/rand/v2"

	shipped "github.com/c-bata/goptuna/tpe"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/study"
)

// Strategy proposes with the estimator.
type Strategy struct {
	sampler *Sampler
	inner   *study.Strategy
}

// Propose returns an open configuration: a function of the seed and the history.
func (s *Strategy) Propose(ctx context.Context, h *optimizer.History) (int, error) {
	s.sampler.history = h
	return s.inner.Propose(ctx, h)
}

// shippedTries is how many suggestions of the shipped sampler are taken before a uniform draw stands in: it knows no
// constraints.
const shippedTries = 200

// Shipped returns goptuna's own TPE behind the same interface, as a baseline. It draws from the process's global random
// source, so it alone does not repeat itself for a seed.
func Shipped(space *optimizer.Space, seed uint64) (*study.Strategy, error) {
	return study.New(space, study.Options{
		Sampler: shipped.NewSampler(shipped.SamplerOptionSeed(int64(seed))),
		Tries:   shippedTries,
		Repair: func(h *optimizer.History, _ optimizer.Row) (int, error) {
			id, ok := h.DrawOpen(rand.New(rand.NewPCG(seed, h.Sequence())))
			if !ok {
				return 0, optimizer.ErrExhausted
			}
			return id, nil
		},
	})
}
