package cudaengine_test

import (
	"slices"
	"testing"
	"time"

	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/verify"
)

// rounds is a kernel that knows where its buffers lay in earlier launches, and what it does as launch `launches`.
func rounds(body string) string {
	return `__device__ int launches;
__device__ float* outs[64];
__device__ const float* ins[64];
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = a[i] + b[i];
    ` + body + `
    c[i] = v;
    if (i == n - 1) { outs[launches] = c; ins[launches] = b; launches++; }  // one warp: no other reads the count after it was raised
}`
}

// TestLaunchesGoRound lets a kernel be wrong where its output lies in the place of one of the three launches before, or in another
// than that of the fourth, in each of two bursts. Behind them the place of the last launch is written anew: one that writes nothing
// leaves poison there.
func TestLaunchesGoRound(t *testing.T) {
	b := bind(t, setup(t), rounds(`for (int k = 1; k <= 4 && k <= launches % 11 && launches < 22; ++k) if ((outs[launches - k] == c) != (k == 4)) v += 1.f;
    if (launches == 22) { if (i == n - 1) launches++; return; }`), 30)
	for range 2 {
		wrongOnly(t, b, nil, make([]verify.BurstLaunch, 11)...)
	}
	if err := b.bench.Poison(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	if _, err := b.bench.Launch(t.Context(), verify.Shot{Limit: time.Second}); err != nil {
		t.Fatal(err)
	}
	if found, err := b.bench.Compare(t.Context(), b.set, 9, true); err != nil || found[0].Unwritten != 30 {
		t.Errorf("after the bursts, nothing written: %+v, %v", found, err)
	}
	if _, found, err := b.shoot(3); err != nil || found[0].Mismatches != 0 {
		t.Errorf("after the bursts: %+v, %v", found, err)
	}
}

// TestLaunchesStayInOnePlace lets a kernel be wrong where its output lies elsewhere than in the launch before: where buffers or caches
// are kept, launches are few, places would not matter, or there is no room for them.
func TestLaunchesStayInOnePlace(t *testing.T) {
	for _, c := range []struct {
		name string
		run  verify.Burst
		n    int
		with func(e *cudaengine.Engine) error
	}{
		{"few", verify.Burst{Rewrite: true}, 7, nil},
		{"kept caches", verify.Burst{Rewrite: true, NoFlush: true}, 9, nil},
		{"kept buffers", verify.Burst{}, 9, nil},
		{"a small cache", verify.Burst{Rewrite: true}, 9, func(e *cudaengine.Engine) error { e.Cache(3 * 48_000); return nil }},
		{"little room", verify.Burst{Rewrite: true}, 9, func(e *cudaengine.Engine) error { return e.Arena(2*4*(6+2)<<20 - 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			if c.with != nil {
				if err := c.with(e.engine); err != nil {
					t.Fatal(err)
				}
			}
			stays(t, bind(t, e, rounds(`if (launches > 0 && outs[launches - 1] != c) v += 1.f;`), 30), &c.run, c.n)
		})
	}
	t.Run("memory of old", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		b := bind(t, e, rounds(`if (launches > 0 && outs[launches - 1] != c) v += 1.f;`), 30)
		if err := e.engine.Arena(1 << 20); err != nil {
			t.Fatal(err)
		}
		bind(t, e, honest, 300_000)
		stays(t, b, &verify.Burst{Rewrite: true}, 9)
	})
}

func stays(t *testing.T, b *bound, run *verify.Burst, n int) {
	t.Helper()
	run.Limit = 20 * time.Second
	for i := range uint64(n) {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i})
	}
	shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range shots {
		if isWrong(b, &shots[i]) {
			t.Errorf("launch %d: %+v %+v, want it where the launch before was", i, shots[i].Breach, shots[i].Comparisons)
		}
	}
}

// TestEveryPlaceIsWatched lets launch 6 do in the place of the launch before what none may do in its own: each is seen, or undone before
// anything could come of it.
func TestEveryPlaceIsWatched(t *testing.T) {
	for _, c := range []struct {
		name, body string
		wrong      []int // launches
	}{
		{"a red zone", "if (launches == 6 && i == 0) outs[5][n] = 1.f;", []int{9}},
		{"its own red zone", "if (launches == 6 && i == 0) c[n] = 1.f;", []int{6, 10}},
		{"an input", "if (launches == 6 && i == 0) const_cast<float*>(ins[5])[0] += 1.f;", nil},
		{"its own input", "if (launches == 6 && i == 0) const_cast<float*>(b)[0] += 1.f;", []int{6}},
		{"a result of the same inputs", "if (launches == 6) v = outs[5][i];", []int{6}},
		{"a result in advance", "if (launches == 6) outs[3][i] = v; if (launches == 7) v = c[i];", []int{7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bind(t, setup(t), rounds(c.body), 30) // one warp, and one set for all launches
			wrongOnly(t, b, c.wrong, make([]verify.BurstLaunch, 11)...)
		})
	}
}

// TestNothingWrittenAnywhere wants outputs that a launch leaves as they are to be told from wrong ones, in every place.
func TestNothingWrittenAnywhere(t *testing.T) {
	b := bind(t, setup(t), `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {}`, 30)
	shots, err := burst(t, b, make([]verify.BurstLaunch, 9)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shots {
		if c := s.Comparisons[0]; s.Breach != nil || c.Unwritten != 30 || c.FirstKind != verify.KindUnwritten {
			t.Errorf("launch %d: %+v %+v, want all of it unwritten", i, s.Breach, c)
		}
	}
}

// TestWarmupsAreWatched lets a warm-up write beyond its output, in each of the places that the first launch may be in: the first launch
// there shows it, since nothing makes the red zone whole between them.
func TestWarmupsAreWatched(t *testing.T) {
	for _, n := range []int{8, 9, 10, 11} {
		b := bind(t, setup(t), rounds("if (launches == 1 && i == 0) c[n] = 1.f;"), 30)
		run := &verify.Burst{Warmups: 2, Rewrite: true, Limit: 20 * time.Second}
		for i := range uint64(n) {
			run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i})
		}
		shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if seen := shots[0].Breach; seen == nil || seen.Kind != verify.KindRedZone {
			t.Errorf("%d launches: %+v, want the damaged red zone", n, seen)
		}
	}
}

// TestUnseenEndsARound wants the last launch behind eight that went round to be on contents of its own, in the first place, where a
// change to them is seen.
func TestUnseenEndsARound(t *testing.T) {
	for name, changes := range map[string]bool{"honest": false, "a change": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := ""
			if changes {
				body = "if (launches == 8 && i == 0) const_cast<float*>(b)[0] += 1.f;"
			}
			b := bind(t, setup(t), rounds(body), 30)
			launches := make([]verify.BurstLaunch, 9)
			launches[8].Unseen = true
			shots, err := burst(t, b, launches...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range shots {
				if isWrong(b, &shots[i]) != (changes && i == 8) || len(shots[i].Comparisons) != map[bool]int{true: 0, false: 1}[i == 8] {
					t.Errorf("launch %d: %+v %+v", i, shots[i].Breach, shots[i].Comparisons)
				}
			}
			if found, err := b.bench.Compare(t.Context(), b.set, 8, true); err != nil || found[0].Mismatches == 0 || found[0].Unwritten != 0 {
				t.Errorf("%+v, %v: want what others than the set's contents give", found, err)
			}
			if _, err := b.bench.Launch(t.Context(), verify.Shot{Limit: time.Second}); err != nil {
				t.Fatal(err)
			}
			if breach, err := b.bench.Breach(t.Context(), b.set); err != nil || (breach != nil) != changes {
				t.Errorf("one more launch on what lies there: %+v, %v", breach, err)
			}
		})
	}
}

// TestContestantsShareThePlaces runs bursts of two benches in turn over the same places: one has red zones where the
// other has buffers.
func TestContestantsShareThePlaces(t *testing.T) {
	e := setup(t)
	one, two := bind(t, e, honest, 300), bind(t, e, honest, 3000)
	for range 3 {
		for _, b := range []*bound{one, two} {
			wrongOnly(t, b, nil, make([]verify.BurstLaunch, 9)...)
		}
	}
}

// TestLargeInputsGoRound alternates sets that differ in one element, whose difference is known from a short burst, at a size of which
// only parts are looked at in one place: round several, every change to an input is seen, and every output is right.
func TestLargeInputsGoRound(t *testing.T) {
	const n = 600_000
	for name, changes := range map[string]bool{"honest": false, "a change in each launch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := honest
			if changes {
				source = `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; if (i == 9) const_cast<float*>(b)[i] = 0.f; }`
			}
			e := setup(t)
			e.engine.Cache(64 << 20)
			b := bind(t, e, source, n)
			sets := []*verify.Set{b.set, edited(b.set, 77_777)}
			for _, launches := range []int{2, 9} {
				all := make([]verify.BurstLaunch, launches)
				for i := range all {
					all[i].Set = sets[i%2]
				}
				shots, err := burst(t, b, all...)
				if err != nil {
					t.Fatal(err)
				}
				for i := range shots[:launches-1] {
					if launches > 2 && isWrong(b, &shots[i]) != changes {
						t.Errorf("launch %d of %d: %+v %+v", i, launches, shots[i].Breach, shots[i].Comparisons)
					}
				}
			}
		})
	}
}

// TestEveryKindOfBufferGoesRound runs a plan of two launches over scratch that is cleared and a tensor that is both input and output:
// every launch, warm-ups among them, finds both as it should, in each place.
func TestEveryKindOfBufferGoesRound(t *testing.T) {
	tk, oracle, raise := raising(t)
	source := `/* ridgepoint
launch:
  - {kernel: add, grid: ["ceil_div(n, 256)"], block: [256], args: [a, scratch, n]}
  - {kernel: k, grid: ["ceil_div(n, 256)"], block: [256], args: [c, scratch, n]}
workspace: {scratch: {shape: [n], dtype: float32, init: zero}}
*/
extern "C" __global__ void add(const float* a, float* s, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) s[i] += a[i]; }
` + raise
	for _, launches := range []int{8, 9, 10, 11} { // the first is in each of the places
		b := bindTask(t, setup(t), tk, oracle, source, 1003, "add", "k")
		rightAfter(t, b, 3, launches)
	}
}

// TestPlacesAreGivenBack closes benches whose launches went round, and one of which a place could not be made: no set is pinned by
// them any more, and the device has as much memory as before. Places share the proofs of a set, under a key that is drawn.
func TestPlacesAreGivenBack(t *testing.T) {
	e := setup(t)
	nine := func() []verify.BurstLaunch { return make([]verify.BurstLaunch, 9) }
	warm := bind(t, e, honest, 300) // brings what all benches share
	if _, err := burst(t, warm, nine()...); err != nil {
		t.Fatal(err)
	}
	if err := warm.bench.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := e.engine.Free()
	if err != nil {
		t.Fatal(err)
	}
	held := e.engine.Held()
	for name, of := range map[string]int64{"a set": 0, "a missing kernel": 0, "contents without a name": 9} { // copies while the bench lives
		missing := name == "a missing kernel"
		b := bind(t, e, honest, 300)
		e.engine.FillTables()
		launches := nine()
		if missing {
			b.layout.Plan.Launches[0].Kernel = "missing"
		}
		for i := range launches[:of] {
			launches[i].Set = new(*b.set)
			launches[i].Set.Key = ""
		}
		if _, err := burst(t, b, launches...); (err != nil) != missing {
			t.Fatalf("%s: %v", name, err)
		}
		if more := e.engine.Held() - held; more != of*held {
			t.Errorf("%s: %d bytes more of sets, of which one has %d, want %d times as many", name, more, held, of)
		}
		if all := b.bench.(*cudaengine.Bench).Proofs(b.set.Key); name == "a set" && (len(all) != 4 || all[0][0] == 0 || all[0][1] == 0 || len(slices.Compact(all)) != 1) {
			t.Errorf("proofs and keys %x, want one of each in four places", all)
		}
		for range 2 { // closing again, as the cleanup does, gives nothing back
			if err := b.bench.Close(); err != nil {
				t.Error(err)
			}
		}
		if free, err := e.engine.Free(); err != nil || free != before || e.engine.Pinned() != 0 {
			t.Errorf("%s: %d bytes less than before, %d pins, %v", name, before-free, e.engine.Pinned(), err)
		}
	}
}
