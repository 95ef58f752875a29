package gp

import (
	"context"
	"math"
	"sort"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// Figures of the strategy with records.
const (
	warmStart     = 3    // first proposals from the records alone
	warmSpread    = 2    // then space-filling ones, which tell whether the records predict anything
	gateFrom      = 5    // successes from which the records must predict what was seen: see gated
	gateLeast     = 0.5  // least rank correlation of the two...
	gateSure      = 0.9  // ...and the one from which it does not matter how much faster they say that anything is
	coldFrom      = 5    // evaluations from which the cold model, its design first, has every second proposal
	aheadBy       = 0.05 // by how much the records must predict better than what was seen here does: see ahead
	stuckAfter    = 20   // evaluations without a gain after which every second proposal is of the cold design, what is left of it
	lateFrom      = 20   // from here on the cold model has all but every lateWarm-th, and that one too unless the records are ahead: what
	lateWarm      = 8    // they give, they give early, and one that predicts most of a space and hides its optimum must not hold the search
	agreedFrom    = 40   // from here to agreedUntil every agreedEach-th proposal is the next of those that the records hold best on the
	agreedUntil   = 120  // whole: of the few that they agree on, a model that follows what was seen here can be wrong
	agreedEach    = 4
	pickLowest    = 400
	pickEach      = 100
	pickMeanWorth = 0.001
)

// Warm is the optimizer of a space of which records exist. A model of the difference between the records and what is seen
// here proposes beside a cold model, which has of them no more than how far each parameter's effect reaches, so that no record can
// hold the search for good.
type Warm struct {
	opt   Options
	prior *transfer.Prior
	cold  *Strategy
	model *model
	picks []int
	// agreed are the configurations that are best in the mean of the records, best first.
	agreed []int
}

// NewWarm returns the strategy for a prior with at least one source.
func NewWarm(o Options, prior *transfer.Prior) *Warm {
	cold := New(o)
	cold.model.most = candidateFew // the neighbours of what the records led to are then a larger share: ahead up to 40 evaluations
	cold.model.lengths = func() []float64 { return recordLengths(prior, o) }
	return &Warm{opt: o, prior: prior, cold: cold, model: newModel(o, 3, prior)}
}

// Propose returns an open configuration: of the records' model or of the cold one, by how far the search is and how well the
// records predict.
func (s *Warm) Propose(ctx context.Context, h *optimizer.History) (int, error) {
	if h.Remaining() <= 0 {
		return 0, optimizer.ErrExhausted
	}
	s.cold.begin(h)
	s.cold.window = nil // the records know better
	if s.picks == nil {
		candidates := s.prior.Candidates(h.Pool, pickLowest, pickEach)
		s.picks = portfolioPicks(s.prior, h.Pool, candidates, warmStart)
		s.agreed = candidates[:min(pickLowest, len(candidates))]
	}
	turn := len(h.Trials) + len(h.Pending())
	switch {
	case turn < warmStart:
		return next(h, s.picks, s.opt.Seed)
	case turn < warmStart+warmSpread || h.OK < 2:
		return next(h, s.cold.design, s.opt.Seed)
	}
	if agreedTurn(turn) && !s.gated(h) {
		if id := s.nextAgreed(h); id >= 0 {
			return id, nil
		}
	}
	if coldTurn(turn) || s.gated(h) || turn >= lateFrom && !s.ahead(h) {
		return s.proposeCold(h)
	}
	return s.proposeWarm(h)
}

// agreedTurn reports whether this proposal is one that the records agree on.
func agreedTurn(turn int) bool {
	return turn >= agreedFrom && turn < agreedUntil && turn%agreedEach == agreedEach-1
}

// nextAgreed returns the first open configuration of those that the records agree on which is likely to run; -1 when there is none.
func (s *Warm) nextAgreed(h *optimizer.History) int {
	s.cold.gate.learn(h)
	for _, id := range s.agreed {
		if h.Open(id) && s.cold.gate.logSuccess(h, id) > unlikely {
			return id
		}
	}
	return -1
}

// coldTurn reports whether the cold model has this proposal.
func coldTurn(turn int) bool {
	switch {
	case turn >= lateFrom:
		return turn%lateWarm != 0
	case turn < coldFrom:
		return false
	default:
		return turn%2 == 0
	}
}

// proposeCold returns what the cold model proposes, and what is left of its own design where the records are not ahead of it or
// the search is stuck: without it the model has seen only where the records led. Where they are ahead, that is where to look.
func (s *Warm) proposeCold(h *optimizer.History) (int, error) {
	ahead := s.ahead(h)
	if open := s.designLeft(h); open >= 0 {
		turn := len(h.Trials) + len(h.Pending())
		stuck := h.SinceGain() >= stuckAfter && turn%2 == 0
		if stuck || h.OK < gateFrom || !ahead {
			return open, nil
		}
	}
	power := s.cold.power
	if ahead {
		s.cold.power = 1 // the records led to where large gains are
	}
	s.cold.model.prepare(h, s.cold.enc)
	id, err := s.cold.best(h, s.cold.model, s.cold.enc)
	s.cold.power = power
	return id, err
}

// proposeWarm weighs the expected improvement by the share of the sources in which the configuration ran.
func (s *Warm) proposeWarm(h *optimizer.History) (int, error) {
	s.model.prepare(h, s.cold.enc)
	s.cold.gate.learn(h)
	scores := s.model.score(h, s.cold.enc, s.model.incumbent(), 1, true)
	best, id := math.Inf(-1), -1
	for i, v := range scores {
		if math.IsInf(v, -1) {
			continue
		}
		c := s.model.post.ids[i]
		v += s.cold.gate.logSuccess(h, c) + math.Log(float64(1+s.prior.Ran(c))/float64(1+s.prior.Len()))
		if v > best {
			best, id = v, c
		}
	}
	if id < 0 {
		return next(h, nil, s.opt.Seed)
	}
	return id, nil
}

// gated reports whether the records fail to predict what was seen: whether the weighted records hardly order it, or order it less than
// surely and explain less of the differences of ln t than its mean does. A handful of configurations is ranked right by chance; that
// what should be ten times as fast hardly differs here is seen at once.
func (s *Warm) gated(h *optimizer.History) bool {
	if h.OK < gateFrom {
		return false
	}
	s.model.prepare(h, s.cold.enc)
	logs := make([]float64, len(s.model.done))
	for k := range s.model.done {
		logs[k] = s.model.done[k].of().Log
	}
	r := spearman(s.model.out.p, logs)
	return r < gateLeast || r < gateSure && explained(s.model.out.p, logs) < 0
}

// ahead reports whether the records tell more of this device than what was seen on it: whether their model fills in each observation
// from the others better than the cold model does, by Spearman's correlation with what was measured. A record can agree with most of
// what it led to and know nothing of where the optimum is; a cold model that knows as much does not need it.
func (s *Warm) ahead(h *optimizer.History) bool {
	if h.OK < gateFrom {
		return true
	}
	if s.gated(h) {
		return false
	}
	s.cold.model.prepare(h, s.cold.enc)
	return s.model.foresight() > s.cold.model.foresight()+aheadBy
}

// designLeft returns the next open point of the cold design while fewer than the design's size were evaluated beyond the
// start; -1 afterwards.
func (s *Warm) designLeft(h *optimizer.History) int {
	for _, id := range s.cold.design[:min(designSize, len(s.cold.design))] {
		if h.Open(id) {
			return id
		}
	}
	return -1
}

// portfolioPicks chooses n of the candidates so that for each source one of them is good: greedily the one that lowers the sum
// over sources of the smallest share of throughput lost.
func portfolioPicks(p *transfer.Prior, pool *optimizer.Pool, candidates []int, n int) []int {
	if len(candidates) == 0 {
		return []int{}
	}
	says := make([][]float64, len(candidates))
	for i, id := range candidates {
		says[i] = p.Relative(pool, id, nil)
	}
	least := make([]float64, p.Len())
	for c := range least {
		least[c] = 1
	}
	var out []int
	for len(out) < min(n, len(candidates)) {
		best, at := math.Inf(1), 0
		for i, r := range says {
			sum, mean := 0.0, 0.0
			for c, v := range r {
				sum += math.Min(least[c], 1-math.Exp(-v))
				mean += v / float64(len(r))
			}
			if sum += pickMeanWorth * mean; sum < best && !contains(out, candidates[i]) {
				best, at = sum, i
			}
		}
		out = append(out, candidates[at])
		for c, v := range says[at] {
			least[c] = math.Min(least[c], 1-math.Exp(-v))
		}
	}
	return out
}

func contains(ids []int, id int) bool {
	for _, v := range ids {
		if v == id {
			return true
		}
	}
	return false
}

// spearman is the rank correlation of two lists, ties sharing the middle of their ranks; 0 when one is constant.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mid := float64(len(a)-1) / 2
	var sxy, sxx, syy float64
	for i := range x {
		dx, dy := x[i]-mid, y[i]-mid
		sxy, sxx, syy = sxy+dx*dy, sxx+dx*dx, syy+dy*dy
	}
	if sxx == 0 || syy == 0 {
		return 0
	}
	return sxy / math.Sqrt(sxx*syy)
}

// explained is the coefficient of determination of y by x plus a constant: 1 when they differ by no more than that, 0 when x tells as
// much as y's own mean, below 0 when less; 0 when y is constant.
func explained(x, y []float64) float64 {
	n := float64(len(y))
	var meanX, meanY float64
	for i := range y {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	var rest, all float64
	for i := range y {
		d := (y[i] - meanY) - (x[i] - meanX)
		rest, all = rest+d*d, all+(y[i]-meanY)*(y[i]-meanY)
	}
	if all == 0 {
		return 0
	}
	return 1 - rest/all
}

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return x[order[a]] < x[order[b]] })
	out := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}
