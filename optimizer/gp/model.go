package gp

import (
	"math"
	"math/rand/v2"
	"sort"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// model is a Gaussian process over one history. Without a prior its output is the share of throughput lost against the best,
// u = 1 - best/t; with one it is ln t less what the records say. It is brought up to the history at every use; what it
// holds then is a function of the seed and the history's log alone.
type model struct {
	opt    Options
	stream uint64 // separates the draws of the models of one strategy
	prior  *transfer.Prior
	fitter fitter
	hyper  hyper
	next   int // successes at which the kernel is fitted next
	fits   int
	post   *posterior
	done   []int // trials of the history with a value, in the order told
	active []int // positions in done of the posterior's observations, in its order
	scan   int   // trials of the history looked at
	known  int   // positions of done that the posterior has or left out
	merged int   // repeats of the history that the posterior knows
	out    output
	at     []float64 // posterior means at the observations, standardised
}

// output is the model's view of the observations: raw = centre + P + scale*y.
type output struct {
	y       []float64 // standardised
	p       []float64 // what the weighted records say of each observation; nil without a prior
	weights []float64 // of the records
	noise   []float64 // known variance of y
	centre  float64
	scale   float64
	best    float64 // smallest ln t
}

func newModel(o Options, stream uint64, prior *transfer.Prior) *model {
	return &model{opt: o, stream: stream, prior: prior, next: 2}
}

func (m *model) records() int {
	if m.prior == nil {
		return 0
	}
	return m.prior.Len()
}

// prepare brings kernel, candidates and posterior up to the history.
func (m *model) prepare(h *optimizer.History, enc *encoder) {
	for ; m.scan < len(h.Trials); m.scan++ {
		if !h.Trials[m.scan].Failed {
			m.done = append(m.done, m.scan)
		}
	}
	for m.next <= len(m.done) {
		m.fit(h, enc, m.next)
		m.fits++
		m.post = nil
		if m.next < fitEvery {
			m.next++
		} else {
			m.next = int(math.Ceil(fitGrowth * float64(m.next)))
		}
	}
	if m.merged != h.Repeats {
		m.post, m.merged = nil, h.Repeats
	}
	m.out = m.outputs(h, enc, m.done)
	if m.post == nil {
		rng := rand.New(rand.NewPCG(m.opt.Seed, uint64(m.fits)<<32|m.stream))
		m.active = m.thin(h, rng, len(m.done), activeMost)
		m.post = newPosterior(m.hyper.scales(), enc, m.candidates(h, rng), m.features(enc), len(m.active)+16)
		m.known = len(m.done)
	}
	for ; m.known < len(m.done); m.known++ {
		m.active = append(m.active, m.known)
	}
	g := m.features(enc)
	for i := m.post.n; i < len(m.active); i++ {
		k := m.active[i]
		id := h.Trials[m.done[k]].ID
		m.post.add(enc.encode(id), g(id), m.out.noise[k])
	}
	m.at = m.post.mean(m.outputsActive())
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
func (m *model) thin(h *optimizer.History, rng *rand.Rand, n, limit int) []int {
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
	sort.SliceStable(order, func(a, b int) bool { return h.Trials[m.done[order[a]]].Log < h.Trials[m.done[order[b]]].Log })
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
		r := m.prior.Relative(enc.pool, id, nil)
		for c := range r {
			r[c] = math.Min(r[c], 2) - 0.3
		}
		return r
	}
}

// fit improves the kernel's parameters on the first n done trials, or on a part of them when they are many.
func (m *model) fit(h *optimizer.History, enc *encoder, n int) {
	rng := rand.New(rand.NewPCG(m.opt.Seed, uint64(m.fits)<<32|m.stream|1<<16))
	part := m.thin(h, rng, n, fitMost)
	done := make([]int, len(part))
	for i, k := range part {
		done[i] = m.done[k]
	}
	encoded := make([][]uint16, len(done))
	for i, t := range done {
		encoded[i] = enc.encode(h.Trials[t].ID)
	}
	dt := newData(enc, encoded)
	out := m.outputs(h, enc, done)
	dt.y, dt.noise, dt.records = out.y, out.noise, m.records()
	g := m.features(enc)
	for _, t := range done {
		dt.g = append(dt.g, g(h.Trials[t].ID)...)
	}
	iterations := fitLater
	if dt.n < fitEvery {
		iterations = fitEarly
	}
	if m.hyper.theta == nil {
		m.hyper = initial(len(enc.columns), dt.records)
	}
	m.fitter.fit(dt, m.hyper.theta, iterations)
}

func (m *model) outputs(h *optimizer.History, enc *encoder, done []int) output {
	if m.prior == nil {
		return lostThroughput(h, done)
	}
	return m.residuals(h, enc, done)
}

// lostThroughput returns u = 1 - best/t, standardised.
func lostThroughput(h *optimizer.History, done []int) output {
	o := output{best: math.Inf(1), y: make([]float64, len(done)), noise: make([]float64, len(done))}
	for _, i := range done {
		if t := &h.Trials[i]; !t.Censored {
			o.best = math.Min(o.best, t.Log)
		}
	}
	if math.IsInf(o.best, 1) { // bounds alone
		o.best = h.Trials[done[0]].Log
	}
	for k, i := range done {
		o.y[k] = 1 - math.Exp(o.best-h.Trials[i].Log)
		o.centre += o.y[k] / float64(len(done))
	}
	for k := range o.y {
		o.scale += (o.y[k] - o.centre) * (o.y[k] - o.centre)
	}
	o.scale = math.Sqrt(o.scale/float64(len(done))) + 1e-9
	for k, i := range done {
		slope := (1 - o.y[k]) / o.scale
		o.noise[k] = slope * slope * h.Trials[i].Variance
		o.y[k] = (o.y[k] - o.centre) / o.scale
	}
	return o
}

// Figures of the records' model.
const (
	weightFloor  = 0.2  // share of the weights that is spread evenly
	weightSpread = 0.09 // prior variance of ln t about a record, worth four observations
	weightLimit  = 20   // observations after which the weights no longer sharpen
	residualSD   = 0.15 // prior deviation of ln t about the weighted records, worth four observations
	priorWorth   = 4
)

// residuals returns ln t less the weighted records, standardised.
func (m *model) residuals(h *optimizer.History, enc *encoder, done []int) output {
	n := len(done)
	o := output{best: math.Inf(1), y: make([]float64, n), p: make([]float64, n), noise: make([]float64, n)}
	says := make([][]float64, n)
	for k, i := range done {
		t := &h.Trials[i]
		says[k] = m.prior.Relative(enc.pool, t.ID, nil)
		if !t.Censored || math.IsInf(o.best, 1) {
			o.best = math.Min(o.best, t.Log)
		}
	}
	o.weights = m.weigh(h, done, says)
	for k, i := range done {
		for c, w := range o.weights {
			o.p[k] += w * says[k][c]
		}
		o.y[k] = h.Trials[i].Log - o.p[k]
		o.centre += o.y[k] / float64(n)
	}
	sum := priorWorth * residualSD * residualSD
	for k := range o.y {
		o.y[k] -= o.centre
		sum += o.y[k] * o.y[k]
	}
	o.scale = math.Sqrt(sum / float64(n+priorWorth))
	for k, i := range done {
		o.y[k] /= o.scale
		o.noise[k] = h.Trials[i].Variance / (o.scale * o.scale)
	}
	return o
}

// weigh returns each record's weight by how well it predicts what was seen here.
func (m *model) weigh(h *optimizer.History, done []int, says [][]float64) []float64 {
	n, count := len(done), m.prior.Len()
	w := make([]float64, count)
	top := math.Inf(-1)
	for c := range w {
		mean := 0.0
		for k, i := range done {
			mean += (h.Trials[i].Log - says[k][c]) / float64(n)
		}
		sum := priorWorth * weightSpread
		for k, i := range done {
			d := h.Trials[i].Log - says[k][c] - mean
			sum += d * d
		}
		w[c] = -float64(min(n, weightLimit)) / 2 * math.Log(sum/float64(n+priorWorth))
		top = math.Max(top, w[c])
	}
	total := 0.0
	for c := range w {
		w[c] = math.Exp(w[c] - top)
		total += w[c]
	}
	for c := range w {
		w[c] = (1-weightFloor)*w[c]/total + weightFloor/float64(count)
	}
	return w
}

// says returns the weighted records' ln(t/best) of a configuration.
func (m *model) says(enc *encoder, id int, buf []float64) float64 {
	p := 0.0
	for c, r := range m.prior.Relative(enc.pool, id, buf[:0]) {
		p += m.out.weights[c] * r
	}
	return p
}

// candidates returns the neighbours of the best five and a uniform draw, up to the limit; everything when it fits. With a
// prior, what the records think best comes first.
func (m *model) candidates(h *optimizer.History, rng *rand.Rand) []int {
	limit := candidateMax
	if h.Pool.Space().Enumerated() && h.Pool.Len() <= limit {
		return drawSubset(h.Pool, rng, limit)
	}
	seen := map[int]bool{}
	var out []int
	add := func(id int) {
		if !seen[id] && h.Open(id) && len(out) < limit {
			seen[id] = true
			out = append(out, id)
		}
	}
	if m.prior != nil {
		for _, id := range m.prior.Lowest(m.weightsNow(), recordCandidates+len(h.Trials)) {
			if len(out) < recordCandidates {
				add(id)
			}
		}
	}
	for _, id := range h.BestIDs(eliteCount) {
		for _, n := range h.Pool.Neighbours(id, nil) {
			add(n)
		}
	}
	for tries := 0; len(out) < limit && tries < 4*limit; tries++ {
		add(h.Pool.Draw(rng))
	}
	return out
}

func (m *model) weightsNow() []float64 {
	if m.out.weights != nil {
		return m.out.weights
	}
	w := make([]float64, m.prior.Len())
	for c := range w {
		w[c] = 1 / float64(len(w))
	}
	return w
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

// score returns ln of the expected improvement, in standard units, over an incumbent, of each candidate that is open; others
// are -Inf, and unless exact is asked for, so are some that are certainly not the highest. Pending proposals count as if they had come out as the model expects.
func (m *model) score(h *optimizer.History, enc *encoder, incumbent float64, exact bool) []float64 {
	g := m.features(enc)
	n := m.post.n
	for _, id := range h.Pending() {
		m.post.add(enc.encode(id), g(id), 0)
	}
	out := make([]float64, len(m.post.ids))
	top, topMu, topS2 := math.Inf(-1), math.Inf(1), 0.0
	var buf []float64
	for i, id := range m.post.ids {
		if !h.Open(id) {
			out[i] = math.Inf(-1)
			continue
		}
		mu := m.post.mu[i]
		if m.prior != nil {
			mu += m.says(enc, id, buf) / m.out.scale
		}
		s2 := math.Max(m.post.s2[i], 1e-12)
		if !exact && mu >= topMu && s2 <= topS2 { // certainly below the best so far
			out[i] = math.Inf(-1)
			continue
		}
		out[i] = logEI(incumbent, mu, math.Sqrt(s2))
		if out[i] > top {
			top, topMu, topS2 = out[i], mu, s2
		}
	}
	m.post.drop(n)
	return out
}
