package gp

import (
	"math"
)

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

func (m *model) outputs(enc *encoder, done []point, first bool) output {
	if m.prior == nil {
		return lostThroughput(done, first, m.opt.has(PartThroughput))
	}
	return m.residuals(enc, done, first)
}

// value returns ln t of an observation and its variance: as first told, or with all repeats.
func (p *point) value(first bool) (log, variance float64) {
	t := p.of()
	if first {
		return t.FirstLog, t.FirstVariance
	}
	return t.Log, t.Variance
}

// lostThroughput returns u = 1 - best/t, standardised; or ln t, where an ablation wants that.
func lostThroughput(done []point, first, lost bool) output {
	o := output{best: math.Inf(1), y: make([]float64, len(done)), noise: make([]float64, len(done))}
	for k := range done {
		if log, _ := done[k].value(first); !done[k].of().Censored {
			o.best = math.Min(o.best, log)
		}
	}
	if math.IsInf(o.best, 1) { // bounds alone
		o.best, _ = done[0].value(first)
	}
	for k := range done {
		log, _ := done[k].value(first)
		if o.y[k] = 1 - math.Exp(o.best-log); !lost {
			o.y[k] = log - o.best
		}
		o.centre += o.y[k] / float64(len(done))
	}
	for k := range o.y {
		o.scale += (o.y[k] - o.centre) * (o.y[k] - o.centre)
	}
	o.scale = math.Sqrt(o.scale/float64(len(done))) + 1e-9
	for k := range done {
		slope := (1 - o.y[k]) / o.scale
		if !lost {
			slope = 1 / o.scale
		}
		_, variance := done[k].value(first)
		o.noise[k] = slope * slope * variance
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
func (m *model) residuals(enc *encoder, done []point, first bool) output {
	n := len(done)
	o := output{best: math.Inf(1), y: make([]float64, n), p: make([]float64, n), noise: make([]float64, n)}
	says, logs := make([][]float64, n), make([]float64, n)
	for k := range done {
		says[k] = m.relative(enc, done[k].id)
		logs[k], o.noise[k] = done[k].value(first)
		if !done[k].of().Censored || math.IsInf(o.best, 1) {
			o.best = math.Min(o.best, logs[k])
		}
	}
	o.weights = m.weigh(logs, says)
	for k := range done {
		for c, w := range o.weights {
			o.p[k] += w * says[k][c]
		}
		o.y[k] = logs[k] - o.p[k]
		o.centre += o.y[k] / float64(n)
	}
	sum := priorWorth * residualSD * residualSD
	for k := range o.y {
		o.y[k] -= o.centre
		sum += o.y[k] * o.y[k]
	}
	o.scale = math.Sqrt(sum / float64(n+priorWorth))
	for k := range done {
		o.y[k] /= o.scale
		o.noise[k] /= o.scale * o.scale
	}
	return o
}

// weigh returns each record's weight by how well it predicts what was seen here.
func (m *model) weigh(logs []float64, says [][]float64) []float64 {
	n, count := len(logs), m.prior.Len()
	w := make([]float64, count)
	top := math.Inf(-1)
	for c := range w {
		mean := 0.0
		for k, log := range logs {
			mean += (log - says[k][c]) / float64(n)
		}
		sum := priorWorth * weightSpread
		for k, log := range logs {
			d := log - says[k][c] - mean
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
func (m *model) says(enc *encoder, id int) float64 {
	p := 0.0
	for c, r := range m.relative(enc, id) {
		p += m.out.weights[c] * r
	}
	return p
}
