// Package random is the strategy that every other is measured against: a uniform draw of the open configurations.
package random

import (
	"context"
	"math/rand/v2"

	"ridgepoint/optimizer"
)

// Strategy draws open configurations uniformly.
type Strategy struct{ seed uint64 }

// New returns the random strategy with a seed.
func New(seed uint64) *Strategy { return &Strategy{seed: seed} }

// Propose returns a uniformly drawn open configuration: a function of the seed and the numbers of asks and tells.
func (s *Strategy) Propose(_ context.Context, h *optimizer.History) (int, error) {
	rng := rand.New(rand.NewPCG(s.seed, h.Sequence()))
	id, ok := h.DrawOpen(rng)
	if !ok {
		return 0, optimizer.ErrExhausted
	}
	return id, nil
}
