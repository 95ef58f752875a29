package transfer_test

import (
	"math"
	"runtime"
	"sync"
	"testing"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

func space(t *testing.T) *optimizer.Space {
	t.Helper()
	s, err := optimizer.New(optimizer.Declaration{Params: []optimizer.Param{{Name: "a", Values: []expr.Value{expr.Int(1), expr.Int(2), expr.Int(4), expr.Int(8)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seen(a int64, value float64) optimizer.Observation {
	o := optimizer.Observation{Configuration: optimizer.Configuration{"a": expr.Int(a)}, Outcome: optimizer.OutcomeMeasured, Value: value}
	if value == 0 {
		o.Outcome = optimizer.OutcomeFailed
	}
	return o
}

// TestManyValues offers sparse records of a parameter with 20 000 values: what is kept of them does not grow with the pairs of values.
func TestManyValues(t *testing.T) {
	var values []expr.Value
	var few []optimizer.Observation
	for i := int64(1); i <= 20_000; i++ {
		values = append(values, expr.Int(i))
		if i%1000 == 0 {
			few = append(few, seen(i, float64(i)))
		}
	}
	s, err := optimizer.New(optimizer.Declaration{Params: []optimizer.Param{{Name: "a", Values: values}}})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := transfer.New(s, []optimizer.Source{{Name: "few", Observations: few}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Relative(s.NewPool(), 500, nil); len(got) != 1 || !(got[0] >= 0) {
		t.Errorf("the record says %v of a configuration between its own", got)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MB were taken for 20 observations of 20 000 values, want 64 at most", n>>20)
	}
}

func TestPriorByHand(t *testing.T) {
	t.Parallel()
	s := space(t)
	p, err := transfer.New(s, []optimizer.Source{
		{Name: "one", Observations: []optimizer.Observation{seen(1, 2), seen(2, 1), seen(4, 0), seen(16, 0.1)}},
		{Name: "other unit", Observations: []optimizer.Observation{seen(1, 1000), seen(2, 3000), seen(4, 4000)}},
		{Name: "nothing in common", Observations: []optimizer.Observation{seen(32, 1)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Len() != 2 {
		t.Fatalf("sources %v, want two", p.Sources())
	}
	pool := s.NewPool()
	for id, want := range [][]float64{
		{math.Log(2), 0},
		{0, math.Log(3)},
		{math.Log(4) + 0.7, math.Log(4)}, // failed at one: the others' mean and a penalty
		{2, 2},                           // seen nowhere
	} {
		got := p.Relative(pool, id, nil)
		for c := range want {
			if math.Abs(got[c]-want[c]) > 1e-12 {
				t.Errorf("configuration %d: %v, want %v", id, got, want)
			}
		}
	}
	if p.Ran(2) != 1 || p.Ran(0) != 2 || p.Ran(3) != 0 {
		t.Errorf("ran in %d, %d, %d sources", p.Ran(2), p.Ran(0), p.Ran(3))
	}
	if low := p.Lowest(pool, []float64{0.1, 0.9}, 2); low[0] != 0 || low[1] != 1 {
		t.Errorf("lowest %v, want the second source's order", low)
	}
}

// TestSparseSourceIsInterpolated gives a source a tenth of a smooth landscape and looks at what the prior says of the rest.
func TestSparseSourceIsInterpolated(t *testing.T) {
	t.Parallel()
	var values []expr.Value
	for v := range 16 {
		values = append(values, expr.Int(int64(v)))
	}
	s, err := optimizer.New(optimizer.Declaration{Params: []optimizer.Param{{Name: "a", Values: values}, {Name: "b", Values: values}}})
	if err != nil {
		t.Fatal(err)
	}
	pool, src := s.NewPool(), optimizer.Source{Name: "sparse"}
	truth := func(id int) float64 {
		r := pool.Row(id)
		return 0.01 * (math.Pow(float64(r[0])-4, 2) + math.Pow(float64(r[1])-11, 2))
	}
	for id := 3; id < pool.Len(); id += 10 {
		src.Observations = append(src.Observations, optimizer.Observation{Configuration: s.Configuration(pool.Row(id)), Outcome: optimizer.OutcomeMeasured, Value: math.Exp(truth(id))})
	}
	p, err := transfer.New(s, []optimizer.Source{src})
	if err != nil {
		t.Fatal(err)
	}
	var sxy, sxx, syy, mx, my float64
	n := float64(pool.Len())
	for id := range pool.Len() {
		mx, my = mx+truth(id)/n, my+p.Relative(pool, id, nil)[0]/n
	}
	for id := range pool.Len() {
		x, y := truth(id)-mx, p.Relative(pool, id, nil)[0]-my
		sxy, sxx, syy = sxy+x*y, sxx+x*x, syy+y*y
	}
	if r := sxy / math.Sqrt(sxx*syy); r < 0.9 {
		t.Errorf("correlation with the truth %.3f, want 0.9 or more", r)
	}
	if best := p.Lowest(pool, []float64{1}, 1)[0]; truth(best) > 0.1 {
		t.Errorf("the prior's best is %v, ln %.2f slower than the optimum", pool.Row(best), truth(best))
	}
}

func TestPriorOfNothingIsNil(t *testing.T) {
	t.Parallel()
	p, err := transfer.New(space(t), []optimizer.Source{{Name: "failed", Observations: []optimizer.Observation{seen(1, 0)}}})
	if err != nil || p != nil {
		t.Fatalf("got %v, %v; want no prior", p, err)
	}
	if _, err := transfer.New(space(t), []optimizer.Source{{Name: "bad", Observations: []optimizer.Observation{seen(1, math.Inf(1))}}}); err == nil {
		t.Fatal("an infinite value passed")
	}
}

// TestKeepWorksOnce asks for what was learned of the records twice at a time.
func TestKeepWorksOnce(t *testing.T) {
	t.Parallel()
	p, err := transfer.New(space(t), []optimizer.Source{{Name: "x", Observations: []optimizer.Observation{seen(8, 6), seen(2, 3), seen(1, 0), seen(2, 2)}}})
	if err != nil {
		t.Fatal(err)
	}
	works := 0
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got := p.Keep("a", func() []float64 { works++; return []float64{1} }); len(got) != 1 || got[0] != 1 {
				t.Errorf("got %v, want what was worked out", got)
			}
		})
	}
	wg.Wait()
	if works != 1 || p.Keep("b", func() []float64 { return nil }) != nil || len(p.Keep("a", nil)) != 1 {
		t.Errorf("the work was done %d times, or kept under another name", works)
	}
	m := p.Measured(0)
	if len(m.Rows) != 2 || len(m.Logs) != 2 || m.Rows[0][0] != 1 || m.Logs[0] != 0 || math.Abs(m.Logs[1]-math.Log(3)) > 1e-12 {
		t.Errorf("the source measured %+v; want values 2 and 8, the last of 2's two, and no failure", m)
	}
}
