// Package local is greedy iterated neighbourhood search with a tabu list: it looks at the neighbours of the best configuration,
// nearest first, moves on to the next best when all were tried, and starts afresh when nothing better turns up. What was
// told or is pending is tabu. It needs no model and no fitting, so that a portfolio has something that a wrong model does
// not mislead.
package local

import (
	"context"
	"math/rand/v2"

	"ridgepoint/optimizer"
)

// Figures of the search.
const (
	starts       = 5  // random configurations before the first move
	elite        = 12 // best configurations whose neighbourhoods are searched, best first
	restartAfter = 40 // evaluations without a gain after which every restartEvery-th proposal is random
	restartEvery = 3
)

// Strategy is the search.
type Strategy struct {
	seed uint64
	buf  []int
}

// New returns the search with a seed.
func New(seed uint64) *Strategy { return &Strategy{seed: seed} }

// Propose returns an open neighbour of the best configuration that has one: a function of the seed and the history.
func (s *Strategy) Propose(_ context.Context, h *optimizer.History) (int, error) {
	if h.Remaining() <= 0 {
		return 0, optimizer.ErrExhausted
	}
	rng := rand.New(rand.NewPCG(s.seed, h.Sequence()))
	turn := len(h.Trials) + len(h.Pending())
	if turn >= starts && (h.SinceGain() < restartAfter || turn%restartEvery != 0) {
		for _, near := range []func(int, []int) []int{h.Pool.Adjacent, h.Pool.Neighbours} {
			for _, id := range h.BestIDs(elite) {
				if n := s.pick(h, near(id, s.buf[:0]), rng); n >= 0 {
					return n, nil
				}
			}
		}
	}
	id, ok := h.DrawOpen(rng)
	if !ok {
		return 0, optimizer.ErrExhausted
	}
	return id, nil
}

// pick returns one of the open ids; -1 when none is open.
func (s *Strategy) pick(h *optimizer.History, ids []int, rng *rand.Rand) int {
	open := ids[:0]
	for _, id := range ids {
		if h.Open(id) {
			open = append(open, id)
		}
	}
	s.buf = ids
	if len(open) == 0 {
		return -1
	}
	return open[rng.IntN(len(open))]
}
