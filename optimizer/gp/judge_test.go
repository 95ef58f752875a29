package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridgepoint/optimizer"
)

// TestJudgeWeighsLeftOutPredictions compares verdicts with models from which the configuration was really left out. The model is
// made smoother than it was fitted, so that there is something to doubt.
func TestJudgeWeighsLeftOutPredictions(t *testing.T) {
	t.Parallel()
	const variance = 0.02 * 0.02
	rng := rand.New(rand.NewPCG(3, 4))
	h := optimizer.NewHistory(testSpace(t))
	for _, id := range floyd(rng, h.Pool.Len(), 30) {
		c := h.Pool.Space().Configuration(h.Pool.Row(id))
		bx, _ := c["bx"].AsFloat()
		tile, _ := c["tile"].AsFloat()
		o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Variance: variance,
			Value: math.Exp(0.1*math.Abs(math.Log2(bx/64)) + 0.2*tile + 0.04*rng.NormFloat64())}
		if _, err := h.Tell(o); err != nil {
			t.Fatal(err)
		}
	}
	m, enc := newModel(Options{Seed: 1}, 1, nil), newEncoder(h.Pool, Options{})
	m.prepare(h, enc)
	for k := range enc.columns {
		m.hyper.theta[k]++
	}
	m.hyper.theta[len(enc.columns)+2] = math.Log(1e-6)
	m.post = nil
	m.prepare(h, enc)
	n := len(m.active)
	predicted, spread := make([]float64, n), make([]float64, n)
	for i := range n {
		p := newPosterior(m.hyper.scales(), enc, []int{m.done[m.active[i]].id}, m.features(enc), n)
		var y []float64
		for j, k := range m.active {
			if j != i {
				p.add(enc.encodeKin(&m.done[k]), nil, m.noise[j])
				y = append(y, m.out.y[k])
			}
		}
		p.mean(y)
		predicted[i], spread[i] = p.mu[0], p.s2[0]+p.k.sn+jitterPost
	}
	at := m.contend(h, m.post.solve(m.outputsActive()), contenders)
	doubt := 0.0
	for _, i := range at {
		d := m.out.y[m.active[i]] - predicted[i]
		doubt += d * d / (spread[i] + m.noise[i]) / float64(len(at))
	}
	if doubt <= 1 || doubt >= doubtMost {
		t.Fatalf("doubt %g: the case shows nothing", doubt)
	}
	verdicts := m.judge(h, contenders)
	if len(verdicts) != contenders || len(at) < contenders {
		t.Fatalf("%d verdicts of %d contenders", len(verdicts), len(at))
	}
	got := map[int]optimizer.Verdict{}
	for k, v := range verdicts {
		got[v.ID] = v
		if k > 0 && v.Mean < verdicts[k-1].Mean {
			t.Error("verdicts are not in order")
		}
	}
	for _, i := range at {
		k := m.active[i]
		v := doubt * spread[i]
		u := (predicted[i]*m.noise[i]+m.out.y[k]*v)/(v+m.noise[i])*m.out.scale + m.out.centre
		mean := m.out.best - math.Log(1-u)
		sd := math.Sqrt(v*m.noise[i]/(v+m.noise[i])) * m.out.scale / (1 - u)
		if g, ok := got[m.done[k].id]; ok && (math.Abs(g.Mean-mean) > 1e-6 || math.Abs(g.SD-sd) > 1e-6) {
			t.Errorf("configuration %d: %g ± %g, want %g ± %g", g.ID, g.Mean, g.SD, mean, sd)
		}
	}
}
