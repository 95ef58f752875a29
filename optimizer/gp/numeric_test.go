package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
)

func ints(v ...int64) []expr.Value {
	out := make([]expr.Value, len(v))
	for i, x := range v {
		out[i] = expr.Int(x)
	}
	return out
}

func testSpace(t testing.TB) *optimizer.Space {
	t.Helper()
	s, err := optimizer.New(optimizer.Declaration{
		Params: []optimizer.Param{
			{Name: "bx", Values: ints(16, 32, 48, 64, 80, 96, 128, 256)}, {Name: "by", Values: ints(1, 2, 4, 8)}, {Name: "tile", Values: ints(1, 2, 3)},
			{Name: "mode", Type: "string", Values: []expr.Value{expr.String("a"), expr.String("b"), expr.String("c")}}, {Name: "flag", Type: "bool"}},
		Constraints: []string{"bx * by <= 512", "bx % (by * tile) == 0 or tile == 3"},
		Threads:     "bx * by",
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExpDecay(t *testing.T) {
	t.Parallel()
	for a := 0.0; a < 15.9; a += 0.00137 {
		want := math.Exp(-math.Sqrt(5) * a)
		if got := expDecay(a); math.Abs(got-want) > 1e-10*want+1e-18 {
			t.Fatalf("exp(-√5 %g): got %g, want %g", a, got, want)
		}
	}
	if expDecay(16) != 0 || matern(0) != 1 {
		t.Fatal("the ends of the range are wrong")
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	e := newEncoder(testSpace(t).NewPool(), Options{})
	var names []string
	for _, c := range e.columns {
		names = append(names, c.name)
	}
	want := []string{"bx", "by", "tile", "flag", "v2(bx)", "bx * by", "(bx) / ((by * tile))", "mode"}
	if len(names) != len(want) {
		t.Fatalf("columns %q, want %q", names, want)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Fatalf("columns %q, want %q", names, want)
		}
	}
	if e.ordered != 7 || !e.columns[7].categorical {
		t.Fatalf("%d ordered columns, want 7 and then the categorical one", e.ordered)
	}
	for id := range e.pool.Len() {
		for k, code := range e.encode(id) {
			if v := e.columns[k].values[code]; k < e.ordered && (v < -1e-9 || v > 1+1e-9) {
				t.Fatalf("column %s of configuration %d is %v, outside [0, 1]", names[k], id, v)
			}
		}
	}
}

func draw(e *encoder, rng *rand.Rand, n int) (ids []int, encoded [][]uint16) {
	ids = floyd(rng, e.pool.Len(), n)
	for _, id := range ids {
		encoded = append(encoded, e.encode(id))
	}
	return ids, encoded
}

// TestGradient compares the gradient of the negative log posterior with central differences.
func TestGradient(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	e := newEncoder(testSpace(t).NewPool(), Options{})
	_, encoded := draw(e, rng, 25)
	dt := newData(e, encoded)
	dt.records = 2
	for i := range dt.n {
		dt.y = append(dt.y, rng.NormFloat64())
		dt.noise = append(dt.noise, 0.01*float64(i%3))
		dt.g = append(dt.g, rng.NormFloat64(), rng.NormFloat64())
	}
	h := initial(len(e.columns), 2, true, nil)
	for i := range h.theta {
		h.theta[i] += 0.3 * rng.NormFloat64()
	}
	f := &fitter{}
	grad, scratch := make([]float64, len(h.theta)), make([]float64, len(h.theta))
	if _, ok := f.objective(dt, h.theta, grad); !ok {
		t.Fatal("not positive definite")
	}
	const step = 1e-5
	for i := range h.theta {
		at := h.theta[i]
		h.theta[i] = at + step
		up, _ := f.objective(dt, h.theta, scratch)
		h.theta[i] = at - step
		down, _ := f.objective(dt, h.theta, scratch)
		h.theta[i] = at
		if want := (up - down) / (2 * step); math.Abs(grad[i]-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("parameter %d: gradient %g, differences give %g", i, grad[i], want)
		}
	}
	before, _ := f.objective(dt, h.theta, grad)
	if after := f.fit(dt, h.theta, 20); after >= before {
		t.Errorf("the fit went from %g to %g", before, after)
	}
}

// TestPosterior compares the row-by-row posterior with a dense solve by gonum, with rows added and dropped on the way.
func TestPosterior(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 9))
	e := newEncoder(testSpace(t).NewPool(), Options{})
	ids, _ := draw(e, rng, 60)
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	g := func(id int) []float64 { return []float64{math.Sin(float64(id))} }
	k := initial(len(e.columns), 1, true, nil).scales()
	const n = 20
	p := newPosterior(k, e, ids[n:], g, n)
	noise := func(i int) float64 { return 0.02 * float64(i%2) }
	for i := range n {
		p.add(e.encode(ids[i]), g(ids[i]), noise(i))
		if i == 10 { // a proposal in flight comes and goes
			p.add(e.encode(ids[30]), g(ids[30]), 0)
			p.drop(11)
		}
	}
	y := make([]float64, n)
	cov := mat.NewSymDense(n, nil)
	for i := range n {
		y[i] = rng.NormFloat64()
		for j := range i + 1 {
			v := p.between(e.encode(ids[i]), e.encode(ids[j]), g(ids[i]), g(ids[j]))
			if i == j {
				v += k.sn + jitterPost + noise(i)
			}
			cov.SetSym(i, j, v)
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(cov) {
		t.Fatal("not positive definite")
	}
	var alpha mat.VecDense
	if err := chol.SolveVecTo(&alpha, mat.NewVecDense(n, y)); err != nil {
		t.Fatal(err)
	}
	p.mean(y)
	for c, id := range ids[n:] {
		cross := mat.NewVecDense(n, nil)
		for i := range n {
			cross.SetVec(i, p.between(e.encode(ids[i]), e.encode(id), g(ids[i]), g(id)))
		}
		var v mat.VecDense
		if err := chol.SolveVecTo(&v, cross); err != nil {
			t.Fatal(err)
		}
		mu := mat.Dot(cross, &alpha)
		s2 := p.between(e.encode(id), e.encode(id), g(id), g(id)) - mat.Dot(cross, &v)
		if math.Abs(p.mu[c]-mu) > 1e-8 || math.Abs(p.s2[c]-s2) > 1e-8 {
			t.Fatalf("candidate %d: mean %g, variance %g; a dense solve gives %g, %g", c, p.mu[c], p.s2[c], mu, s2)
		}
	}
	for i, a := range p.solve(y) {
		if math.Abs(a-alpha.AtVec(i)) > 1e-8 {
			t.Fatalf("K⁻¹y at %d: %g, want %g", i, a, alpha.AtVec(i))
		}
	}
	var inv mat.SymDense
	if err := chol.InverseTo(&inv); err != nil {
		t.Fatal(err)
	}
	if got := p.precision(4); math.Abs(got-inv.At(4, 4)) > 1e-8*inv.At(4, 4) {
		t.Fatalf("precision %g, want %g", got, inv.At(4, 4))
	}
	left := p.leftOut(y)
	for _, i := range []int{0, 7, n - 1} {
		if want := withoutOne(t, cov, y, i); math.Abs(left[i]-want) > 1e-8 {
			t.Fatalf("observation %d from the others: %g, want %g", i, left[i], want)
		}
	}
}

// withoutOne predicts one output from the others by a dense solve.
func withoutOne(t *testing.T, cov *mat.SymDense, y []float64, out int) float64 {
	t.Helper()
	n := len(y) - 1
	at := func(i int) int {
		if i >= out {
			i++
		}
		return i
	}
	rest, others, cross := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		others.SetVec(i, y[at(i)])
		cross.SetVec(i, cov.At(at(i), out))
		for j := range i + 1 {
			rest.SetSym(i, j, cov.At(at(i), at(j)))
		}
	}
	var chol mat.Cholesky
	var alpha mat.VecDense
	if !chol.Factorize(rest) {
		t.Fatal("not positive definite")
	}
	if err := chol.SolveVecTo(&alpha, others); err != nil {
		t.Fatal(err)
	}
	return mat.Dot(cross, &alpha)
}

// TestLogImprovement compares with an integral over the normal's density, and the two forms where they meet.
func TestLogImprovement(t *testing.T) {
	t.Parallel()
	for _, power := range []int{1, 2, 3, 4} {
		for _, c := range []struct{ incumbent, mu, sd float64 }{{0, 0, 1}, {0, 1, 0.5}, {1, -2, 3}, {0, 5, 1}, {0, 7.9, 1}, {0, 8.1, 1}, {0, 3, 0.2}} {
			const cells = 400_000
			want := 0.0
			low := c.incumbent - 12*c.sd - math.Max(0, c.incumbent-c.mu)
			width := (c.incumbent - low) / cells
			for k := range cells {
				y := low + (float64(k)+0.5)*width
				want += math.Pow(c.incumbent-y, float64(power)) * normalPDF((y-c.mu)/c.sd) / c.sd * width
			}
			if got := logImprovement(c.incumbent, c.mu, c.sd, power); math.Abs(got-math.Log(want)) > 0.02 {
				t.Errorf("power %d, %+v: got %g, want %g", power, c, got, math.Log(want))
			}
		}
		last := logImprovement(0, 4, 1, power)
		for mu := 4.25; mu < 40; mu += 0.25 {
			v := logImprovement(0, mu, 1, power)
			if v >= last || math.IsNaN(v) {
				t.Fatalf("power %d: at %g below the incumbent it is %g, after %g", power, mu, v, last)
			}
			last = v
		}
		if d := logImprovement(0, 8.0001, 1, power) - logImprovement(0, 7.9999, 1, power); math.Abs(d) > 0.02 {
			t.Errorf("power %d: the two forms differ by %g where they meet", power, d)
		}
	}
}

// TestLargeGainsOutweighSureOnes sets a sure gain of 5 % of the deviation against a chance in fifty of one ten times as large.
func TestLargeGainsOutweighSureOnes(t *testing.T) {
	t.Parallel()
	sure, chance := [3]float64{0, -0.05, 0.01}, [3]float64{0, 1, 0.5}
	ahead := func(power int) bool {
		return logImprovement(chance[0], chance[1], chance[2], power) > logImprovement(sure[0], sure[1], sure[2], power)
	}
	if ahead(1) || !ahead(improvementPower) {
		t.Errorf("the chance is ahead by power 1: %v, by power %d: %v; want false, true", ahead(1), improvementPower, ahead(improvementPower))
	}
}

// TestForest learns a launch limit from a third of a space and predicts the rest.
func TestForest(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	runs := func(id int) bool { r := pool.Row(id); return !(r[2] == 2 && r[1] >= 2) && r[0] < 7 }
	rng := rand.New(rand.NewPCG(1, 3))
	train := floyd(rng, pool.Len(), pool.Len()/3)
	rows, ok := make([]optimizer.Row, len(train)), make([]bool, len(train))
	for i, id := range train {
		rows[i], ok[i] = pool.Row(id), runs(id)
	}
	f := growForest(rows, ok, rng)
	right := 0
	for id := range pool.Len() {
		if (f.success(pool.Row(id)) > 0.5) == runs(id) {
			right++
		}
	}
	if share := float64(right) / float64(pool.Len()); share < 0.95 {
		t.Errorf("%.3f predicted rightly, want 0.95", share)
	}
}

func TestDesignFillsTheSpace(t *testing.T) {
	t.Parallel()
	pool := testSpace(t).NewPool()
	design, _ := startDesign(pool, Options{Seed: 5})
	seen := map[int]bool{}
	values := make([]map[uint16]bool, pool.Space().Dims())
	for i := range values {
		values[i] = map[uint16]bool{}
	}
	for _, id := range design[:designSize] {
		if seen[id] {
			t.Fatalf("%d is in the design twice", id)
		}
		seen[id] = true
		for k, v := range pool.Row(id) {
			values[k][v] = true
		}
	}
	for k, v := range values {
		if want := min(len(pool.Space().Values(k)), 3); len(v) < want {
			t.Errorf("parameter %s takes %d values in the design, want %d", pool.Space().Names()[k], len(v), want)
		}
	}
}

func TestSpearman(t *testing.T) {
	t.Parallel()
	if r := spearman([]float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}); r != 1 {
		t.Errorf("increasing: %g", r)
	}
	if r := spearman([]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}); r != -1 {
		t.Errorf("decreasing: %g", r)
	}
	// ranks 0, 1.5, 1.5, 3 against 0..3: 4.5/sqrt(4.5*5)
	if r := spearman([]float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}); math.Abs(r-4.5/math.Sqrt(22.5)) > 1e-12 {
		t.Errorf("ties: %g", r)
	}
}
