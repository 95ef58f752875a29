package gp

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ridgepoint/optimizer"
)

// TestPartsAreLeftOut looks at what each part leaves behind when an ablation takes it away.
func TestPartsAreLeftOut(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	has := func(o Options, piece string) bool {
		return slices.ContainsFunc(newEncoder(pool, o).columns, func(c *column) bool { return strings.Contains(c.name, piece) })
	}
	if !has(Options{}, "v2(") || has(Options{Without: PartValuations}, "v2(") {
		t.Error("valuation columns: want them, and not without their part")
	}
	if !has(Options{}, "bx * by") || has(Options{Without: PartConstraints}, "bx * by") {
		t.Error("constraint columns: want them, and not without their part")
	}
	whole, _ := startDesign(pool, Options{Seed: 5})
	if scattered, _ := startDesign(pool, Options{Seed: 5, Without: PartMaximin}); slices.Equal(whole, scattered) {
		t.Error("the start is the same without its spread")
	}
	if h := initial(4, 0, false, nil); h.sa() > 1e-4 || initial(4, 0, true, nil).sa() < 1 {
		t.Errorf("additive amplitude %g without the term", h.sa())
	}
	h := optimizer.NewHistory(pool.Space())
	for id := range 6 {
		o := optimizer.Observation{Configuration: pool.Space().Configuration(pool.Row(7 * id)), Outcome: optimizer.OutcomeMeasured, Value: 1 + float64(id*id)}
		if _, err := h.Tell(o); err != nil {
			t.Fatal(err)
		}
	}
	m := newModel(Options{}, 1, nil)
	m.collect(h)
	u, log := lostThroughput(m.done, false, true), lostThroughput(m.done, false, false)
	if r := (log.y[5] - log.y[4]) / (log.y[1] - log.y[0]); math.Abs(r-math.Log(26./17)/math.Log(2)) > 1e-9 {
		t.Errorf("without the share of throughput the output is not ln t: ratio of steps %g", r)
	}
	if r := (u.y[5] - u.y[4]) / (u.y[1] - u.y[0]); math.Abs(r-(1./17-1./26)/(1./2)) > 1e-9 {
		t.Errorf("the output is not the share of throughput lost: ratio of steps %g", r)
	}
	off := gate{off: true}
	bad := optimizer.Observation{Configuration: pool.Space().Configuration(pool.Row(100)), Outcome: optimizer.OutcomeFailed, FailKind: "launch"}
	if _, err := h.Tell(bad); err != nil {
		t.Fatal(err)
	}
	off.learn(h)
	on := gate{}
	on.learn(h)
	if off.forest != nil || on.forest == nil {
		t.Error("forest: want one after a failure, and none without its part")
	}
	if _, err := ParsePart("tail"); err == nil {
		t.Error("an unknown part passed")
	}
}

// TestJointModelReadsTheFamily tells one structure what is good and looks at how near the optimum another, which was told
// nothing, comes with its first five evaluations: the mean over seeds.
func TestJointModelReadsTheFamily(t *testing.T) {
	t.Parallel()
	slow := func(c optimizer.Configuration) float64 {
		bx, _ := c["bx"].AsFloat()
		by, _ := c["by"].AsFloat()
		tile, _ := c["tile"].AsFloat()
		return 1 + 0.3*math.Abs(math.Log2(bx*by/256)) + 0.4*math.Abs(tile-2)
	}
	tell := func(h *optimizer.History, id int) float64 {
		c := h.Pool.Space().Configuration(h.Pool.Row(id))
		if _, err := h.Tell(optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: slow(c)}); err != nil {
			t.Fatal(err)
		}
		return slow(c)
	}
	best := func(join bool, seed uint64) float64 {
		a, b := optimizer.NewHistory(testSpace(t)), optimizer.NewHistory(testSpace(t))
		if join {
			f := &optimizer.Family{}
			a.Join(f)
			b.Join(f)
		}
		for id := 3; id < a.Pool.Len(); id += 7 {
			tell(a, id)
		}
		s, out := New(Options{Seed: seed}), math.Inf(1)
		for range 5 {
			id, err := s.Propose(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			out = min(out, tell(b, id))
		}
		return out
	}
	alone, joint := 0.0, 0.0
	for seed := range uint64(6) {
		alone, joint = alone+best(false, seed)/6, joint+best(true, seed)/6
	}
	t.Logf("best of five: %.3f alone, %.3f in a family", alone, joint)
	if joint > 1.1 || joint >= alone {
		t.Errorf("the best of five takes %.2f in a family and %.2f alone; want it near 1 in a family", joint, alone)
	}
}
