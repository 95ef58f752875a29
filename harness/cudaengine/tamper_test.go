package cudaengine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// taskOf reads a task of the given tensors, whose kernel is k. Its reference is never asked: tests bring their oracle.
func taskOf(t testing.TB, dtype, tensors, args string) *harness.Task {
	t.Helper()
	text := fmt.Sprintf(`task_name: made
description: Made for one test.
problem_shape: {n: 64, dtype: %s}
tensors: {%s}
reference: |
  c = a
  d = a + a
default_launch: {kernel: k, grid: ["ceil_div(n, 256)"], block: [256], args: [%s]}
targets: {cuda: {arch: emulated, baseline: x.cu}}
`, dtype, tensors, args)
	if !strings.Contains(tensors, "d:") {
		text = strings.Replace(text, "|\n  c = a\n  d = a + a", "a", 1)
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "x.cu"), []byte("//"), 0o600)); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(filepath.Join(dir, "t.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// twins is a task of two outputs, its input and twice its input.
func twins(t testing.TB) (*harness.Task, verify.OracleFunc) {
	tk := taskOf(t, "float32", "a: {shape: [n], dtype: float32, role: in}, c: {shape: [n], dtype: float32, role: out}, d: {shape: [n], dtype: float32, role: out}", "a, c, d, n")
	return tk, func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		double := make([]float64, len(in["a"]))
		for i, v := range in["a"] {
			double[i] = 2 * v
		}
		return map[string][]float64{"c": in["a"], "d": double}, nil
	}
}

func burst(t testing.TB, b *bound, launches ...verify.BurstLaunch) ([]verify.Shotted, error) {
	t.Helper()
	for i := range launches {
		launches[i].Seed += uint64(i)
		if launches[i].Set == nil {
			launches[i].Set = b.set
		}
	}
	return b.bench.(verify.Burster).Burst(t.Context(), &verify.Burst{Rewrite: true, Limit: 20 * time.Second, Launches: launches})
}

// isWrong reports whether launch i of a burst is judged to be wrong.
func isWrong(b *bound, s *verify.Shotted) bool {
	return verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, b.set, verify.Aim{}) != nil
}

// wrongOnly runs a burst and wants some launches to be judged wrong and the others right.
func wrongOnly(t testing.TB, b *bound, wrong []int, launches ...verify.BurstLaunch) {
	t.Helper()
	shots, err := burst(t, b, launches...)
	verdicts(t, b, wrong, shots, err)
}

// rightAfter runs launches behind warm-ups, the first of them compared whole, and wants all to be judged right.
func rightAfter(t testing.TB, b *bound, warmups, launches int) {
	t.Helper()
	run := &verify.Burst{Warmups: warmups, Rewrite: true, Limit: 20 * time.Second}
	for i := range uint64(launches) {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i, Whole: i == 0})
	}
	shots, err := b.bench.(verify.Burster).Burst(t.Context(), run)
	verdicts(t, b, nil, shots, err)
}

func verdicts(t testing.TB, b *bound, wrong []int, shots []verify.Shotted, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for i := range shots {
		if got := isWrong(b, &shots[i]); got != slices.Contains(wrong, i) {
			t.Errorf("launch %d of %d: wrong %t, want launches %v to be: %+v %+v", i, len(shots), got, wrong, shots[i].Breach, shots[i].Comparisons)
		}
	}
}

// TestFindingsCannotBeForged writes into the findings of launches, whose place these kernels are told: it is noticed, whether they
// let counts begin below zero or put what was found of one launch, or output, in the place of what is found of another.
func TestFindingsCannotBeForged(t *testing.T) {
	const launches = 5
	for _, c := range []struct{ name, body string }{
		{"counts below zero", "v = 0.f; if (last) slot[8] = 0ull - (1ull << 40);"},
		{"as many below zero as are wrong", "v = 0.f; if (last) slot[8] = 0ull - n;"},
		{"a damaged byte beyond", "if (last) { ((unsigned char*)(c + n))[0] ^= launches == 0; slot[0] = ~0ull; }"},
		{"a changed input", "if (last) { const_cast<float*>(a)[0] += 1.f; slot[2] = ~0ull; }"},
		{"of another launch", "if (launches > 0 && launches < 4) v = 0.f; if (last && launches > 1) for (int w = 0; w < words; ++w) (slot - words)[w] = first[w];"},
		{"of an earlier run", "for (int w = 0; last && launches == 2 && w < words; ++w) kept[w] = (slot - words)[w]; if (launches == 6) v = 0.f; for (int w = 0; last && launches == 7 && w < words; ++w) (slot - words)[w] = kept[w];"},
		{"of another output", "if (launches > 0 && launches < 4) u = 0.f; if (last && launches > 1) for (int w = 0; w < 16; ++w) (slot - words)[24 + w] = (slot - words)[8 + w];"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tk, oracle := twins(t)
			plain := `extern "C" __global__ void k(const float* a, float* c, float* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { c[i] = a[i]; d[i] = 2.f * a[i]; } }`
			warm := bindTask(t, e, tk, oracle, plain, 30, "k")
			if _, err := burst(t, warm, verify.BurstLaunch{Whole: true}); err != nil {
				t.Fatal(err)
			}
			words := warm.bench.(*cudaengine.Bench).SlotBytes() / 8
			source := fmt.Sprintf(`typedef unsigned long long u64;
__device__ int launches;
__device__ u64 kept[64];
extern "C" __global__ void k(const float* a, float* c, float* d, int n) {
    const int words = %d;
    u64 *first = (u64*)%dull, *slot = first + words * (launches %% 5);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool last = i == n - 1;
    float v = i < n ? a[i] : 0.f, u = 2.f * v;
    %s
    if (i < n) { c[i] = v; d[i] = u; }
    if (last) launches++;
}`, words, e.engine.SlotsAt(), c.body)
			b := bindTask(t, e, tk, oracle, source, 30, "k") // one warp: no other reads the count after it was raised
			all := make([]verify.BurstLaunch, launches)
			for i := range all {
				all[i].Whole = true
			}
			_, err := burst(t, b, all...)
			if err == nil {
				_, err = burst(t, b, all...)
			}
			var stop *verify.Stop
			if !errors.As(err, &stop) || !strings.Contains(stop.Reason, "findings") {
				t.Errorf("%v, want what was written over findings to be noticed", err)
			}
		})
	}
}

// TestProjectionsCannotBeForged lets a kernel keep the projections of a launch that was right and put them where those of the next
// are added up, to which an output of zeros adds nothing.
func TestProjectionsCannotBeForged(t *testing.T) {
	const n = 4<<20 + 256
	e := setup(t)
	if _, err := burst(t, bind(t, e, honest, 30), verify.BurstLaunch{Whole: true}); err != nil {
		t.Fatal(err)
	}
	box, put, err := e.engine.Mailbox()
	if err != nil {
		t.Fatal(err)
	}
	source := fmt.Sprintf(`typedef unsigned long long u64;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    u64 *count = (u64*)%dull, *first = (u64*)%dull;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool forged = first[8 + 14] != 0;  // the first launch's findings are signed
    if (i < n) c[i] = forged ? 0.f : a[i] + b[i];
    if (forged && i == n - 1) for (int w = 8 + 11; w < 8 + 14; ++w) first[24 * *count + w] = first[w];
    if (i == n - 1) *count += 1;
}`, box, e.engine.SlotsAt())
	b := bind(t, e, source, n)
	if err := put(0, 0); err != nil {
		t.Fatal(err)
	}
	shots, err := burst(t, b, make([]verify.BurstLaunch, 3)...)
	if err != nil {
		t.Fatal(err)
	}
	// A launch draws the scale of the first with a chance of 1 in 512, both with one of 1 in 260,000.
	if isWrong(b, &shots[0]) || !isWrong(b, &shots[1]) && !isWrong(b, &shots[2]) {
		t.Errorf("%+v %+v %+v, want the first alone to be right", shots[0].Comparisons, shots[1].Comparisons, shots[2].Comparisons)
	}
}

// TestProofsAreOfTheirBits lets one launch write other bits than the one whose bits are known to be right, so that a hash of a known
// form would not change: by flipped signs and by what two threads of the comparison read changing places.
func TestProofsAreOfTheirBits(t *testing.T) {
	for name, body := range map[string]string{
		"signs": "if (i == 1 || i == 3) v ^= 0x80000000u; if (i == 3) v ^= 4u;",
		"places": `int j = i ^ 4;
        if (i < 8) { v = __float_as_uint(a[j] + b[j]); u64 d = mix(0) ^ mix(1); if ((i & 3) < 2) v ^= (unsigned)(i & 1 ? d >> 32 : d); }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := fmt.Sprintf(`typedef unsigned long long u64;
__device__ int launches;
__device__ u64 mix(u64 v) {
    v += 0x9e3779b97f4a7c15ull;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return v ^ (v >> 31);
}
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = __float_as_uint(a[i] + b[i]);
    if (launches == 1) {
        %s
    }
    c[i] = __uint_as_float(v);
    if (i == n - 1) launches++;
}`, body)
			b := bind(t, setup(t), source, 28) // one warp, and no bytes but whole pieces of 16
			wrongOnly(t, b, []int{1}, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{}, verify.BurstLaunch{})
		})
	}
}

// TestProofsAreOfTheirPlace copies proofs of one set, share and output over those of another and writes what belongs to the former.
func TestProofsAreOfTheirPlace(t *testing.T) {
	const n = 2048 // elements: two shares, since a share of so small a buffer has 4 KB
	for _, c := range []struct{ name, body string }{
		// Shares are those of a, c and d, two each; a proof has three words.
		{"set", "if (launches == 3) { v = kept[i]; u = 2.f * v; for (int p = 6; p < 18; ++p) to[p] = from[p]; }"},
		{"share", "if (launches == 3) { v = a[i % 1024]; for (int p = 6; p < 9; ++p) to[p + 3] = to[p]; }"},
		{"output", "if (launches == 3) { u = v; for (int p = 6; p < 12; ++p) to[p + 6] = to[p]; }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			box, put, err := e.engine.Mailbox()
			if err != nil {
				t.Fatal(err)
			}
			source := fmt.Sprintf(`typedef unsigned long long u64;
__device__ int blocks;
__device__ float kept[%d];
extern "C" __global__ void k(const float* a, float* c, float* d, int n) {
    u64 *from = (u64*)((u64*)%dull)[0], *to = (u64*)((u64*)%dull)[1];
    int i = blockIdx.x * blockDim.x + threadIdx.x, launches = blocks / gridDim.x;
    float v = a[i], u = 2.f * v;
    %s
    if (launches == 2) kept[i] = v;
    c[i] = v; d[i] = u;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&blocks, 1);
}`, n, box, box, c.body)
			tk, oracle := twins(t)
			b := bindTask(t, e, tk, oracle, source, n, "k")
			other, err := verify.NewPool(oracle, 1<<30).Get(t.Context(), tk, b.layout.Size, verify.Spec{Distribution: verify.Plain, Seed: 77}, 1)
			if err != nil {
				t.Fatal(err)
			}
			both := []verify.BurstLaunch{{Whole: true}, {Set: other, Whole: true}}
			if _, err := burst(t, b, both...); err != nil {
				t.Fatal(err)
			}
			bench := b.bench.(*cudaengine.Bench)
			if err := put(bench.ProofsAt(b.set.Key), bench.ProofsAt(other.Key)); err != nil {
				t.Fatal(err)
			}
			shots, err := burst(t, b, verify.BurstLaunch{}, verify.BurstLaunch{Set: other})
			if err != nil {
				t.Fatal(err)
			}
			if isWrong(b, &shots[0]) || !isWrong(b, &shots[1]) {
				t.Errorf("%+v %+v, want the second alone to be wrong", shots[0].Comparisons, shots[1].Comparisons)
			}
		})
	}
}
