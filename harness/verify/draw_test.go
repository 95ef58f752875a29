package verify_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

func TestHiddenSizes(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	for seed := range uint64(50) {
		sizes := verify.HiddenSizes(tk, harness.TargetCPU, 8, seed, 1<<30)
		if len(sizes) != 8 {
			t.Fatalf("seed %d: %d sizes", seed, len(sizes))
		}
		for i, s := range sizes {
			n, _ := s.Get("n")
			if n < 1 || n > 2500 || n == 1000 || n == 2000 {
				t.Errorf("seed %d: hidden size %d is outside vary or scored", seed, n)
			}
			if i%3 == 0 && !big.NewInt(n).ProbablyPrime(10) {
				t.Errorf("seed %d: size %d of the list is %d, want a prime", seed, i, n)
			}
			if i%3 == 1 && n%2 == 0 {
				t.Errorf("seed %d: size %d of the list is %d, want an odd one", seed, i, n)
			}
		}
	}
	none := *tk
	none.Vary = harness.Vary{None: true}
	if got := verify.HiddenSizes(&none, harness.TargetCPU, 4, 1, 1<<30); got != nil {
		t.Errorf("vary: none has hidden sizes %v", got)
	}
	free := *tk
	free.Vary = harness.Vary{}
	for _, s := range verify.HiddenSizes(&free, harness.TargetCPU, 8, 2, 1<<30) {
		if n, _ := s.Get("n"); n < 500 || n > 3000 {
			t.Errorf("hidden size %d is outside half to twice a scored size, or larger than all", n)
		}
	}
}

// DESIGN.md's table of sizes and sets, which is a minimum.
func TestCases(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	all := len(verify.Distributions(tk))
	for _, c := range []struct {
		stage        harness.Stage
		hidden, sets int
	}{{harness.StageSearch, 1, 1}, {harness.StageFirst, 4, 3}, {harness.StageConfirm, 4, 3}, {harness.StageReplay, 8, all}} {
		cases := verify.Cases(tk, harness.TargetCPU, c.stage, 1, 1<<30)
		hidden := 0
		for i, x := range cases {
			if x.Hidden {
				hidden++
			}
			want := c.sets
			if i == 0 { // small: all distributions
				want = all
			}
			if len(x.Specs) != want {
				t.Errorf("%s: size %s has %d sets, want %d", c.stage, x.Size, len(x.Specs), want)
			}
		}
		if hidden != c.hidden || len(cases) != c.hidden+3 {
			t.Errorf("%s: %d cases, %d hidden, want %d", c.stage, len(cases), hidden, c.hidden)
		}
	}
}

func TestDistributions(t *testing.T) {
	t.Parallel()
	e := task.Extent{Name: "x", Shape: []int64{64, 512}, Strides: []int64{512, 1}, DType: harness.Float32, Role: harness.RoleIn, Init: "normal", Elements: 64 * 512, Span: 64 * 512}
	draw := func(spec verify.Spec) []float64 {
		_, values, err := verify.Generate([]task.Extent{e}, spec)
		if err != nil {
			t.Fatal(err)
		}
		return values[0]
	}
	near := func(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Max(1, math.Abs(want)) }
	for _, d := range harness.Distributions() {
		v := draw(verify.Spec{Distribution: d, Seed: 1})
		var sum, square, top float64
		for _, x := range v {
			sum += x / float64(len(v))
			square += x * x / float64(len(v))
			top = math.Max(top, math.Abs(x))
			if float64(float32(x)) != x {
				t.Fatalf("%s: %v is no float32", d, x)
			}
		}
		ok := false
		switch d {
		case harness.DistNormal:
			ok = near(sum, 0, 0.03) && near(square, 1, 0.05)
		case harness.DistUniform:
			ok = near(sum, 0, 0.03) && near(square, 1.0/3, 0.02) && top <= 1
		case harness.DistTimes100:
			ok = near(sum, 0, 3) && near(square, 10000, 0.05)
		case harness.DistPlus1000:
			ok = near(sum, 1000, 0.001)
		case harness.DistSpikes:
			ok = top > 1e4
		case harness.DistConstantRows:
			ok = v[0] == v[511] && v[0] != v[512] && top <= 4
		case harness.DistTiny:
			ok = top > 0 && top < 0x1p-125
		case harness.DistSorted:
			ok = v[0] < v[1000] && v[1000] < v[30000]
		}
		if !ok {
			t.Errorf("%s: mean %g, mean square %g, largest %g", d, sum, square, top)
		}
		if !cmp.Equal(v, draw(verify.Spec{Distribution: d, Seed: 1})) {
			t.Errorf("%s: one seed gives two sets", d)
		}
	}
	base, sparse := draw(verify.Spec{Seed: 4}), draw(verify.Spec{Seed: 4, Sparse: true})
	changed := 0
	for i := range base {
		if base[i] != sparse[i] {
			changed++
		}
	}
	if changed < 2 || changed > 8 {
		t.Errorf("a sparse set differs in %d of %d elements, want one in 4096", changed, len(base))
	}
	e.Init = harness.InitPositive
	for _, d := range harness.Distributions() {
		for _, x := range draw(verify.Spec{Distribution: d, Seed: 2}) {
			if x <= 0 {
				t.Fatalf("positive %s holds %v", d, x)
			}
		}
	}
	if _, _, err := verify.Generate([]task.Extent{e}, verify.Spec{Distribution: "cauchy"}); err == nil || !strings.Contains(err.Error(), "cauchy") {
		t.Errorf("an unknown distribution gives %v", err)
	}
}

// The pool makes a set once however many ask, keeps to its limit and forgets failures.
func TestPool(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	var mu sync.Mutex
	made, fail := 0, false
	pool := verify.NewPool(func(_ context.Context, _ *harness.Task, s harness.Size, in map[string][]float64, key string) (map[string][]float64, error) {
		mu.Lock()
		defer mu.Unlock()
		made++
		if fail {
			return nil, errors.New("no oracle today")
		}
		return map[string][]float64{"c": append([]float64(nil), in["a"]...)}, nil
	}, 100_000)
	size := harness.Size{{Name: "n", Value: 1000}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := pool.Get(t.Context(), tk, size, verify.ScaleSpec, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
	s, err := pool.Get(t.Context(), tk, size, verify.ScaleSpec, 3)
	if err != nil || s.Index != 3 || s.Tolerances[2].Abs <= 0 || s.Inputs[2] != nil || s.Expected[0] != nil {
		t.Errorf("set %+v, %v", s, err)
	}
	for seed := range uint64(20) { // 16 KB each: the first is dropped
		if _, err := pool.Get(t.Context(), tk, size, verify.Spec{Seed: seed + 1}, 0); err != nil {
			t.Fatal(err)
		}
	}
	before := made
	if _, err := pool.Get(t.Context(), tk, size, verify.Spec{Seed: 20}, 0); err != nil || made != before {
		t.Errorf("the newest set was made again, or %v", err)
	}
	if _, err := pool.Get(t.Context(), tk, size, verify.Spec{Seed: 1}, 0); err != nil || made != before+1 {
		t.Errorf("the oldest set was kept past the limit, or %v", err)
	}
	fail = true
	if _, err := pool.Get(t.Context(), tk, size, verify.Spec{Seed: 99}, 0); err == nil || !strings.Contains(err.Error(), "n=1000") {
		t.Errorf("failure gives %v", err)
	}
	fail = false
	if _, err := pool.Get(t.Context(), tk, size, verify.Spec{Seed: 99}, 0); err != nil {
		t.Errorf("a failure is remembered: %v", err)
	}
}
