package gp

import (
	"math"
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// model is a Gaussian process over one history and what its family has in common with it. Without a prior its output is the
// share of throughput lost against the best, u = 1 - best/t; with one it is ln t less what the records say. It is brought up to
// the history at every use; what it holds then is a function of the seed and the log alone, however often it was used on the
// way: kernel, candidates and the choice of observations follow from the first n successes, where n is a point of the
// schedule.
type model struct {
	opt     Options
	stream  uint64 // separates the draws of the models of one strategy
	prior   *transfer.Prior
	lengths func() []float64 // that records expect of the kernel, see recordLengths; nil: there are none
	most    int              // candidates
	wide    bool             // it reads the whole family, and its encoder tells the structures apart
	fitter  fitter
	hyper   hyper
	fitted  int   // point of the schedule that kernel and candidates are of; -1 before the first
	ids     []int // candidates
	post    *posterior
	done    []point // successes, in the order of the family's clock
	cursor  []int   // successes looked at, by member of the family
	active  []int   // positions in done of the posterior's observations, in its order
	known   int     // positions of done that the posterior has or left out
	merged  int     // repeats, over the family, that the posterior knows
	out     output
	ref     output            // of the first successes, up to the fit: the units of noise
	noise   []float64         // known variance of the posterior's observations, in those units
	told    map[int][]float64 // what the records say of a configuration, as far as it was wanted: see relative
	at      []float64         // posterior means at the observations, standardised
}

// point is one success as the model of one space sees it.
type point struct {
	trial *optimizer.History // whose
	place int                // in its Trials
	id    int                // of its configuration here
	kin   uint16             // member of the family
}

func (p *point) of() *optimizer.Trial { return &p.trial.Trials[p.place] }

func newModel(o Options, stream uint64, prior *transfer.Prior) *model {
	return &model{opt: o, stream: stream, prior: prior, most: candidateFew, fitted: -1}
}

func (m *model) records() int {
	if m.prior == nil {
		return 0
	}
	return m.prior.Len()
}

// prepare brings kernel, candidates and posterior up to the history.
func (m *model) prepare(h *optimizer.History, enc *encoder) {
	repeats := m.collect(h)
	if last := lastFit(len(m.done)); last != m.fitted {
		m.refit(h, enc, last)
	}
	if m.merged != repeats {
		m.post, m.merged = nil, repeats
	}
	m.out = m.outputs(enc, m.done, false)
	if m.post == nil {
		rng := m.draws(m.fitted, 0)
		n := fitPoint(m.fitted)
		most := activeMost
		if m.wide {
			most = wideMost
		}
		m.active, m.noise = m.thin(rng, n, most), nil
		m.post = newPosterior(m.hyper.scales(), enc, m.ids, m.features(enc), len(m.active)+len(m.done)-n+16)
		m.known = n
	}
	for ; m.known < len(m.done); m.known++ {
		m.active = append(m.active, m.known)
	}
	g := m.features(enc)
	for i := m.post.n; i < len(m.active); i++ {
		k := m.active[i]
		m.noise = append(m.noise, m.rowNoise(k))
		m.post.add(enc.encodeKin(&m.done[k]), g(m.done[k].id), m.noise[i])
	}
	m.at = m.post.mean(m.outputsActive())
}

// rowNoise returns the known variance of an observation in units of the last fit, which do not depend on when it came in.
func (m *model) rowNoise(k int) float64 {
	log, variance := m.done[k].value(false)
	slope := 1 / m.ref.scale
	if m.prior == nil && m.opt.has(PartThroughput) {
		slope *= math.Exp(m.ref.best - log)
	}
	return slope * slope * variance
}

// collect takes in the successes told since the last call, and returns how many repeats the family was told.
func (m *model) collect(h *optimizer.History) (repeats int) {
	members, own := h.Family()
	if !m.wide {
		members = members[own : own+1]
	}
	type fresh struct {
		point
		at uint64
	}
	var found []fresh
	for k, member := range members {
		if !m.wide {
			k = own
		}
		for k >= len(m.cursor) {
			m.cursor = append(m.cursor, 0)
		}
		repeats += member.Repeats
		for ; m.cursor[k] < len(member.Successes); m.cursor[k]++ {
			s := member.Successes[m.cursor[k]]
			p := point{trial: member, place: s.Trial, id: member.Trials[s.Trial].ID, kin: uint16(k)}
			if member == h || p.move(h) {
				found = append(found, fresh{p, s.At})
			}
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].at < found[b].at })
	for _, f := range found {
		m.done = append(m.done, f.point)
	}
	return repeats
}

// move sets the id that another structure's configuration has here; false when it does not carry over.
func (p *point) move(h *optimizer.History) bool {
	space := h.Pool.Space()
	c, ok := space.Project(p.trial.Pool.Space().Configuration(p.trial.Pool.Row(p.id)))
	if !ok {
		return false
	}
	row, err := space.Row(c)
	if err != nil {
		return false
	}
	p.id, ok = h.Pool.ID(row)
	return ok
}

// outputsActive returns the outputs of the posterior's observations.
func (m *model) outputsActive() []float64 {
	y := make([]float64, len(m.active))
	for i, k := range m.active {
		y[i] = m.out.y[k]
	}
	return y
}

// thin returns at most limit positions below n of the done trials, ascending: the best third, the rest drawn. A posterior
// over thousands of points costs more than it tells.
func (m *model) thin(rng *rand.Rand, n, limit int) []int {
	out := make([]int, 0, limit)
	if n <= limit {
		for k := range n {
			out = append(out, k)
		}
		return out
	}
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	sort.SliceStable(order, func(a, b int) bool { return m.done[order[a]].of().FirstLog < m.done[order[b]].of().FirstLog })
	best := limit / 3
	out = append(out, order[:best]...)
	for _, k := range floyd(rng, n-best, limit-best) {
		out = append(out, order[best+k])
	}
	sort.Ints(out)
	return out
}

// features returns what the records say of a configuration, as the kernel sees it.
func (m *model) features(enc *encoder) func(id int) []float64 {
	if m.prior == nil {
		return func(int) []float64 { return nil }
	}
	return func(id int) []float64 {
		r := append([]float64(nil), m.relative(enc, id)...)
		for c := range r {
			r[c] = math.Min(r[c], 2) - 0.3
		}
		return r
	}
}

// toldMost is the number of configurations up to which a model keeps what the records say of them.
const toldMost = 20_000

// relative returns what each record says of a configuration. In a space too large for a table that is a regression over hundreds of
// observations a record, and the same candidates are asked for at every proposal: what was worked out is kept. The caller must not
// change it.
func (m *model) relative(enc *encoder, id int) []float64 {
	r, ok := m.told[id]
	if !ok {
		if m.told == nil || len(m.told) >= toldMost {
			m.told = map[int][]float64{}
		}
		r = m.prior.Relative(enc.pool, id, nil)
		m.told[id] = r
	}
	return r
}

// incumbent is the value that a proposal must beat, standardised: the lowest seen, or where measurements are noisy, the
// lowest posterior mean at an observation.
func (m *model) incumbent() float64 {
	noisy := m.hyper.sn() > 1e-3
	for _, v := range m.out.noise {
		noisy = noisy || v > 1e-3
	}
	best := math.Inf(1)
	for i, k := range m.active {
		v := m.out.y[k]
		if noisy {
			v = m.at[i]
		}
		if m.out.p != nil {
			v += m.out.p[k] / m.out.scale
		}
		best = math.Min(best, v)
	}
	return best
}

// score returns ln of the expectation of a power of the improvement, in standard units, over an incumbent, of each candidate that is
// open; others are -Inf, and unless exact is asked for, so are some that are certainly not the highest. Pending proposals count as if
// they had come out as the model expects.
func (m *model) score(h *optimizer.History, enc *encoder, incumbent float64, power int, exact bool) []float64 {
	g := m.features(enc)
	n := m.post.n
	for _, id := range h.Pending() {
		m.post.add(enc.encode(id), g(id), 0)
	}
	out := make([]float64, len(m.post.ids))
	top, topMu, topS2 := math.Inf(-1), math.Inf(1), 0.0
	for i, id := range m.post.ids {
		if !h.Open(id) {
			out[i] = math.Inf(-1)
			continue
		}
		mu := m.post.mu[i]
		if m.prior != nil {
			mu += m.says(enc, id) / m.out.scale
		}
		s2 := math.Max(m.post.s2[i], 1e-12)
		if !exact && mu >= topMu && s2 <= topS2 { // certainly below the best so far
			out[i] = math.Inf(-1)
			continue
		}
		out[i] = logImprovement(incumbent, mu, math.Sqrt(s2), power)
		if out[i] > top {
			top, topMu, topS2 = out[i], mu, s2
		}
	}
	m.post.drop(n)
	return out
}
