// Package gp is Bayesian optimisation of one space with a Gaussian process: a Matérn-5/2 kernel with a length for each
// column plus an additive term, fitted noise, the share of throughput lost as output, the expectation of the improvement or of
// its second or third power, weighted with the probability of success, and proposals in flight taken into account. What it
// proposes is a function of its seed and the history's log.
package gp

import (
	"context"
	"math"
	"math/rand/v2"

	"ridgepoint/optimizer"
)

// Figures of the strategy. They come from a study over recorded spaces of five kernels on cards of three makers.
const (
	designSize       = 8
	windowSize       = 5      // of the design's points, how many lie in the launch window
	surveyMost       = 50_000 // configurations of a space up to which proposals look for large gains: see improvementPower
	powerFrom        = 20     // evaluations up to which the power is at most 2: a short search wants more of what it can reach
	windowWorth      = 0.1    // what an improvement outside it counts at first: too few of the design's points lie there to be sure of it...
	windowUntil      = 24     // ...and from here on all of it, linearly, so that no optimum out there is lost
	candidateMax     = 6000   // configurations among which a cold proposal is chosen: of most spaces, all
	candidateFew     = 3000   // and others; and cold ones once observations, each of which costs as much again, are more than candidateLate
	candidateLate    = 250
	activeMost       = 400 // observations of a posterior when its candidates are renewed
	wideMost         = 160 // and of one over a family
	wideKept         = 4   // members of a family up to which each keeps its joint posterior from ask to ask
	eliteCount       = 10  // best configurations whose neighbours are candidates
	endFrom          = 80  // evaluations from which every endEach-th proposal is one of those
	endEach          = 2
	jointEach        = 2   // where structures are searched side by side, every jointEach-th proposal is of the joint model
	recordCandidates = 300 // candidates that the records hold best
)

// Options change the strategy, for ablations and for the portfolio.
type Options struct {
	Seed    uint64
	Without Part // is left out; empty: all are in use
}

// Strategy is the optimizer of one space without records of it.
type Strategy struct {
	opt    Options
	enc    *encoder
	design []int
	window *launch // nil: no window in this space
	power  int     // of the improvement: see improvementPower
	model  *model
	gate   gate
	// joint reads the whole family; nil while the space is the only one. What structures have in common is learned once, but
	// where they differ a model of all is slower to see it than one of each: the two take turns.
	joint    *model
	jointEnc *encoder
}

// New returns the strategy.
func New(o Options) *Strategy {
	s := &Strategy{opt: o, model: newModel(o, 1, nil), gate: gate{seed: o.Seed, off: !o.has(PartForest)}}
	s.model.most = candidateMax
	return s
}

// Propose returns the open configuration of the highest expected improvement, in the sense of improvementPower.
func (s *Strategy) Propose(_ context.Context, h *optimizer.History) (int, error) {
	if h.Remaining() <= 0 {
		return 0, optimizer.ErrExhausted
	}
	s.begin(h)
	turn := len(h.Trials) + len(h.Pending())
	if s.joint != nil && turn%jointEach == 0 {
		if s.joint.collect(h); len(s.joint.done) >= designSize {
			s.joint.prepare(h, s.jointEnc)
			id, err := s.best(h, s.joint, s.jointEnc)
			if members, _ := h.Family(); len(members) > wideKept { // megabytes each, and made again in milliseconds
				s.joint.post = nil
			}
			return id, err
		}
	}
	if turn < designSize || h.OK < 2 {
		return next(h, s.design, s.opt.Seed)
	}
	s.model.prepare(h, s.enc)
	return s.best(h, s.model, s.enc)
}

func (s *Strategy) begin(h *optimizer.History) {
	if s.enc == nil {
		s.enc = newEncoder(h.Pool, s.opt)
		if s.power = improvementPower; !h.Pool.Space().Enumerated() || h.Pool.Len() > surveyMost {
			s.power = 1
		}
		s.design, s.window = startDesign(h.Pool, s.opt)
	}
	members, own := h.Family()
	switch {
	case len(members) == 1:
	case s.joint == nil:
		s.joint, s.jointEnc = newModel(s.opt, 4, nil), newEncoder(h.Pool, s.opt)
		s.joint.wide = true
		s.jointEnc.addKin(own, len(members))
	default:
		s.jointEnc.growKin(len(members))
	}
}

// best returns the candidate with the highest expectation of the improvement's power times its probability of success. In the
// end game every endEach-th proposal is the best among the neighbours of what was found: on rough spaces the optimum is a step
// away from good configurations, where the model, which smooths, sees nothing.
func (s *Strategy) best(h *optimizer.History, m *model, enc *encoder) (int, error) {
	s.gate.learn(h)
	if turn := len(h.Trials) + len(h.Pending()); turn >= endFrom && turn%endEach == 0 && s.opt.has(PartEndGame) {
		if id := s.pick(h, m, enc, s.neighbourhood(h)); id >= 0 {
			return id, nil
		}
	}
	if id := s.pick(h, m, enc, nil); id >= 0 {
		return id, nil
	}
	return next(h, nil, s.opt.Seed)
}

// pick returns the best open candidate within a set (nil: any); -1 when there is none.
func (s *Strategy) pick(h *optimizer.History, m *model, enc *encoder, within map[int]bool) int {
	outside := s.outside(h)
	scores := m.score(h, enc, m.incumbent(), s.powerNow(h), s.gate.forest != nil || within != nil || outside < 0)
	best, id := math.Inf(-1), -1
	for i, v := range scores {
		c := m.post.ids[i]
		if math.IsInf(v, -1) || (within != nil && !within[c]) {
			continue
		}
		if outside < 0 && !s.window.within(c) {
			v += outside
		}
		if v += s.gate.logSuccess(h, c); v > best {
			best, id = v, c
		}
	}
	return id
}

// powerNow returns the power of the improvement that this proposal goes by.
func (s *Strategy) powerNow(h *optimizer.History) int {
	if len(h.Trials)+len(h.Pending()) < powerFrom {
		return min(2, s.power)
	}
	return s.power
}

// outside returns ln of what an improvement outside the launch window counts now; 0 when as much as within.
func (s *Strategy) outside(h *optimizer.History) float64 {
	done := float64(len(h.Trials) - designSize)
	if s.window == nil || len(h.Trials) >= windowUntil {
		return 0
	}
	return math.Log(windowWorth + (1-windowWorth)*math.Max(0, done)/(windowUntil-designSize))
}

// neighbourhood returns the configurations that differ in one parameter from one of the best.
func (s *Strategy) neighbourhood(h *optimizer.History) map[int]bool {
	out := map[int]bool{}
	var buf []int
	for _, id := range h.BestIDs(eliteCount) {
		buf = h.Pool.Neighbours(id, buf[:0])
		for _, n := range buf {
			out[n] = true
		}
	}
	return out
}

// next returns the first open point of a list, or a random one.
func next(h *optimizer.History, list []int, seed uint64) (int, error) {
	for _, id := range list {
		if h.Open(id) {
			return id, nil
		}
	}
	id, ok := h.DrawOpen(rand.New(rand.NewPCG(seed, h.Sequence())))
	if !ok {
		return 0, optimizer.ErrExhausted
	}
	return id, nil
}

// gate is the model of which configurations run at all. It says nothing until a failure was seen.
type gate struct {
	seed    uint64
	off     bool
	forest  *forest
	scanned int             // trials of the history looked at
	told    int             // trials that the forest knows
	cache   map[int]float64 // by configuration, of the present forest
}

// learn grows the forest anew at each failure by which the history has grown by a twentieth. Which failures those are, and
// so the forest, is a function of the history, however often learn was called on the way.
func (g *gate) learn(h *optimizer.History) {
	due := false
	for ; g.scanned < len(h.Trials); g.scanned++ {
		if n := g.scanned + 1; h.Trials[g.scanned].Failed && n >= g.told+g.told/20 {
			g.told, due = n, true
		}
	}
	if !due || g.off {
		return
	}
	rows := make([]optimizer.Row, g.told)
	ok := make([]bool, g.told)
	for i, t := range h.Trials[:g.told] {
		rows[i], ok[i] = h.Pool.Row(t.ID), !t.Failed
	}
	g.forest = growForest(rows, ok, rand.New(rand.NewPCG(g.seed, uint64(g.told)<<32|2)))
	g.cache = map[int]float64{}
}

// Figures of the gate: a configuration that runs with less than likelySuccess is proposed only when nothing else is left, but
// for every dareEach-th proposal, which keeps a wrong forest from shutting a region for good. The expected improvement of
// unseen ground alone would go on paying for failures.
const (
	likelySuccess = 0.7
	dareEach      = 96
	unlikely      = -1e4
)

// logSuccess returns ln of the probability that a configuration runs.
func (g *gate) logSuccess(h *optimizer.History, id int) float64 {
	if g.forest == nil {
		return 0
	}
	v := g.probability(h, id)
	if v < math.Log(likelySuccess) && (len(h.Trials)+len(h.Pending()))%dareEach != 0 {
		v += unlikely
	}
	return v
}

// probability returns ln of what the forest says, kept while the forest stands.
func (g *gate) probability(h *optimizer.History, id int) float64 {
	v, ok := g.cache[id]
	if !ok {
		v = math.Log(math.Max(g.forest.success(h.Pool.Row(id)), 1e-9))
		g.cache[id] = v
	}
	return v
}
