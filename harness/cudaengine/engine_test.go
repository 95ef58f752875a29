package cudaengine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// bundle is an engine on the emulated device, or with RIDGEPOINT_GPU_ARCH set on the card, whose kernels nvcc compiles.
type bundle struct {
	maker  maker
	engine *cudaengine.Engine
	dir    string
}

// maker compiles for the device that the tests run on.
type maker struct {
	library string // the driver's
	image   []byte // of the helpers
	compile func(source string, kernels []string) ([]byte, error)
}

var makerOnce = sync.OnceValues(func() (m maker, err error) {
	if arch := os.Getenv("RIDGEPOINT_GPU_ARCH"); arch != "" {
		m.compile = func(source string, _ []string) ([]byte, error) { return byNVCC(arch, source) }
	} else {
		e, err := emulator.Install(context.Background(), filepath.Join(os.TempDir(), "ridgepoint-test"))
		if err != nil {
			return m, err
		}
		m.library = e.Library
		m.compile = func(source string, kernels []string) ([]byte, error) {
			image, text, err := e.Compile(context.Background(), source, nil, kernels)
			if err != nil {
				return nil, fmt.Errorf("%w\n%s", err, text)
			}
			return image, nil
		}
	}
	m.image, err = m.compile(cudaengine.HelperSource, cudaengine.HelperKernels)
	return m, err
})

func byNVCC(arch, source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-engine-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	if err := os.WriteFile(filepath.Join(dir, "k.cu"), []byte(source), 0o600); err != nil {
		return nil, err
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		nvcc = "/usr/local/cuda/bin/nvcc"
	}
	cmd := exec.Command(nvcc, "-cubin", "-arch="+arch, "k.cu", "-o", "k.cubin")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "k.cubin"))
}

func setup(t testing.TB) *bundle {
	t.Helper()
	if testing.Short() && t.Name() != "TestHonestKernelPasses" && t.Name() != "TestBurstSeesTheLaunchThatIsWrong" {
		t.Skip("one goroutine and a compiler for each kernel: left out with -short")
	}
	return setupWith(t, cudaengine.Config{})
}

// setupWith is setup for an engine with a configuration, whose driver and helpers it fills in.
func setupWith(t testing.TB, config cudaengine.Config) *bundle {
	t.Helper()
	m, err := makerOnce()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	drv, err := device.OpenCUDA(m.library)
	if err != nil {
		t.Fatal(err)
	}
	config.Driver, config.Helpers = drv, m.image
	eng, err := cudaengine.New(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bundle{maker: m, engine: eng, dir: t.TempDir()}
}

// module compiles a source.
func (b *bundle) module(t testing.TB, c *harness.Candidate, kernels ...string) verify.Module {
	t.Helper()
	image, err := b.maker.compile(c.Structure.Source, kernels)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.dir, c.Structure.Name+".so")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return verify.Module{Build: &harness.Build{}, Path: path, Candidate: c, Limit: 10 * time.Second}
}

func load(t testing.TB, taskFile string) *harness.Task {
	t.Helper()
	tk, err := task.Load(filepath.Join("..", "gpu", "testdata", "cases", taskFile))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func candidate(t testing.TB, tk *harness.Task, source string) *harness.Candidate {
	t.Helper()
	s, err := task.ParseStructure("case", source, tk, harness.TargetCUDA)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// addition is the oracle of vadd.
func addition(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
	out := make([]float64, len(in["a"]))
	for i := range out {
		out[i] = in["a"][i] + in["b"][i]
	}
	return map[string][]float64{"c": out}, nil
}

const honest = `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}`

// bound is a bench of vadd over n elements with one set.
type bound struct {
	bench  verify.Bench
	layout *verify.Layout
	set    *verify.Set
}

func bind(t testing.TB, b *bundle, source string, n int64, kernels ...string) *bound {
	t.Helper()
	if kernels == nil {
		kernels = []string{"vadd"}
	}
	return bindTask(t, b, load(t, "vadd.yaml"), addition, source, n, kernels...)
}

func bindTask(t testing.TB, b *bundle, tk *harness.Task, oracle verify.OracleFunc, source string, n int64, kernels ...string) *bound {
	t.Helper()
	c := candidate(t, tk, source)
	p, err := b.engine.Open(context.Background(), b.module(t, c, kernels...))
	if err != nil {
		t.Fatal(err)
	}
	size := harness.Size{{Name: "n", Value: n}}
	l, err := verify.NewLayout(tk, c, size, 1)
	if err != nil {
		t.Fatal(err)
	}
	bench, err := p.Bind(context.Background(), l)
	if err != nil {
		t.Fatal(err)
	}
	set, err := verify.NewPool(oracle, 1<<30).Get(context.Background(), tk, size, verify.ScaleSpec, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(bench.Close(), p.Close()); err != nil && !b.engine.Lost() {
			t.Error(err)
		}
	})
	return &bound{bench: bench, layout: l, set: set}
}

func (b *bound) shoot(seed uint64) (verify.Lap, []verify.Comparison, error) {
	return verify.Shoot(context.Background(), b.bench, b.layout, b.set, verify.Aim{Shot: verify.Shot{Limit: 20 * time.Second}, Whole: true, Poison: seed, Flush: true})
}

func TestHonestKernelPasses(t *testing.T) {
	b := bind(t, setup(t), honest, 1003)
	for seed := range uint64(3) {
		lap, found, err := b.shoot(seed)
		if err != nil {
			t.Fatal(err)
		}
		if lap.Kernels <= 0 || len(found) != 1 || found[0].Mismatches != 0 || found[0].Elements != 1003 || found[0].MaxAbs > 1e-6 || found[0].SumAbs <= 0 {
			t.Errorf("seed %d: %+v %+v", seed, lap, found)
		}
	}
}

// TestFaults wants each kind of wrong kernel to be told apart, by single launches and in a burst.
func TestFaults(t *testing.T) {
	body := func(s string) string {
		return `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; ` + s + `}`
	}
	for _, c := range []struct{ name, source, kind, pattern string }{
		{"nothing written", body(""), verify.KindUnwritten, "all"},
		{"tail", body("if (i < n - 3) c[i] = a[i] + b[i];"), verify.KindUnwritten, "tail: the last 3 elements"},
		{"wrong value", body("if (i < n) c[i] = a[i] + b[i] + (i == 17 ? 1e-3f : 0.f);"), verify.KindMismatch, "one element"},
		{"nan", body("if (i < n) c[i] = i == 5 ? __int_as_float(0x7fc00000) : a[i] + b[i];"), verify.KindNonFinite, "one element"},
		{"zeros", body("if (i < n) c[i] = 0.f;"), verify.KindMismatch, "all"},
		{"past the end", body("if (i < n + 1) c[i] = i < n ? a[i] + b[i] : 1.f;"), verify.KindRedZone, ""},
		{"before the start", body("if (i < n) c[i] = a[i] + b[i]; if (i == 0) c[-1] = 0.f;"), verify.KindRedZone, ""},
		{"input changed", body("if (i < n) c[i] = a[i] + b[i]; if (i == 9) const_cast<float*>(b)[i] = 0.f;"), verify.KindInputsChanged, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bind(t, setup(t), c.source, 1003)
			_, _, err := b.shoot(7)
			var stop *verify.Stop
			if !errors.As(err, &stop) || stop.Fault != harness.FaultIncorrect || stop.Evidence.Kind != c.kind || stop.Evidence.Pattern != c.pattern {
				t.Fatalf("single launch: %v (%+v), want %s %q", err, stop, c.kind, c.pattern)
			}
			shots, err := b.bench.(verify.Burster).Burst(context.Background(), &verify.Burst{Rewrite: true, Limit: time.Second,
				Launches: []verify.BurstLaunch{{Set: b.set, Seed: 1}, {Set: b.set, Seed: 2, Whole: true}}})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range shots {
				again := verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, b.set, verify.Aim{})
				if again == nil || again.Evidence.Kind != c.kind || again.Evidence.Pattern != c.pattern {
					t.Errorf("launch %d of the burst: %+v, want %s %q", i, again, c.kind, c.pattern)
				}
			}
		})
	}
}

func TestBurstSeesTheLaunchThatIsWrong(t *testing.T) {
	source := `__device__ int launches;
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (launches < 5 && i < n) c[i] = a[i] + b[i];
    if (i == n - 1) launches++;
}`
	b := bind(t, setup(t), source, 30) // one warp: no other reads the count after it was raised
	run := &verify.Burst{Rewrite: true, Limit: time.Second}
	for i := range uint64(8) {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i, Whole: true})
	}
	shots, err := b.bench.(verify.Burster).Burst(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shots {
		if wrong := verify.Judge(s.Lap, s.Breach, s.Comparisons, b.layout, b.set, verify.Aim{}) != nil; wrong != (i >= 5) {
			t.Errorf("launch %d: wrong %t", i, wrong)
		}
	}
}

// TestProjections wants outputs over 16 MB to be compared by projections where whole is not asked for, and them to see a
// single element that was not written.
func TestProjections(t *testing.T) {
	const n = 4<<20 + 256
	for _, c := range []struct {
		name, source string
		wrong        bool
	}{
		{"honest", honest, false},
		{"one element unwritten", `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i != 12345) c[i] = a[i] + b[i];
}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bind(t, setup(t), c.source, n)
			shots, err := b.bench.(verify.Burster).Burst(context.Background(), &verify.Burst{Rewrite: true, Limit: 30 * time.Second, Launches: []verify.BurstLaunch{{Set: b.set, Seed: 3}}})
			if err != nil {
				t.Fatal(err)
			}
			got := shots[0].Comparisons[0]
			if !got.Projected || (got.Mismatches > 0) != c.wrong {
				t.Errorf("%+v, want projected and wrong %t", got, c.wrong)
			}
			if !c.wrong && got.MaxAbs > 0.5 {
				t.Errorf("an honest kernel's projection reaches %.2f of the bound", got.MaxAbs)
			}
		})
	}
}

func TestMixedInputsDiffer(t *testing.T) {
	// The kernel copies a to c, so the comparison with a + b tells nothing; what is looked at is that inputs changed and that
	// Breach takes the mixed ones as written.
	b := bind(t, setup(t), honest, 4096)
	if _, _, err := b.shoot(1); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := b.bench.(verify.Mixer).WriteMixed(ctx, b.set, 5); err != nil {
		t.Fatal(err)
	}
	if err := b.bench.Poison(ctx, 9); err != nil {
		t.Fatal(err)
	}
	if _, err := b.bench.Launch(ctx, verify.Shot{Limit: time.Second}); err != nil {
		t.Fatal(err)
	}
	if breach, err := b.bench.Breach(ctx, b.set); err != nil || breach != nil {
		t.Errorf("breach %+v, %v", breach, err)
	}
	found, err := b.bench.Compare(ctx, b.set, 9, true)
	if err != nil || found[0].Mismatches < 30 || found[0].Mismatches > 200 {
		t.Errorf("%+v, %v: want 1 to 5 %% of the sums to differ", found, err)
	}
	if _, _, err := b.shoot(2); err != nil {
		t.Errorf("after the mixed launch: %v", err)
	}
}

// TestUnseenLaunchLeavesPlacesAlone gathers by an input of places in pairs of start and end, of which none may be exchanged.
func TestUnseenLaunchLeavesPlacesAlone(t *testing.T) {
	const n = 4096
	tk := taskOf(t, "float32", "a: {shape: [n], dtype: float32, role: in}, at: {shape: [n], dtype: int32, role: in}, c: {shape: [n], dtype: float32, role: out}", "a, at, c, n")
	oracle := func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		return map[string][]float64{"c": in["a"]}, nil
	}
	source := `__device__ int first[4096], blocks;
extern "C" __global__ void k(const float* a, const int* at, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, launches = blocks / gridDim.x;
    if (launches == 0) first[i] = at[i];
    c[i] = first[i] == at[i] ? a[i] : ((const float*)0)[i];
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&blocks, 1);
}`
	b := bindTask(t, setup(t), tk, oracle, source, n, "k")
	shots, err := burst(t, b, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{Unseen: true})
	if err != nil || isWrong(b, &shots[0]) {
		t.Fatalf("%v, want the second launch to find the places that the first found", err)
	}
}

func TestRefusedAndCrashingLaunches(t *testing.T) {
	b := setup(t)
	tk := load(t, "vadd.yaml")
	c := candidate(t, tk, honest)
	m := b.module(t, c, "vadd")
	p, err := b.engine.Open(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	l, err := verify.NewLayout(tk, c, harness.Size{{Name: "n", Value: 100}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Plan.Launches[0].Kernel = "missing"
	var stop *verify.Stop
	if _, err = p.Bind(context.Background(), l); !errors.As(err, &stop) || stop.Fault != harness.FaultLaunch {
		t.Errorf("a missing kernel: %v, want fault launch", err)
	}
	if b.engine.Lost() {
		t.Error("a refused launch lost the engine")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestGraph(t *testing.T) {
	b := bind(t, setup(t), honest, 1000)
	took, err := b.bench.(verify.Grapher).Graph(context.Background(), b.set, 20)
	if err != nil || took <= 0 {
		t.Errorf("graph %v, %v", took, err)
	}
}

// TestTimeline runs a plan of two launches with scratch to clear: every step is on the timeline, in order, and what runs
// afterwards is judged as before.
func TestTimeline(t *testing.T) {
	const source = `/* ridgepoint
launch:
  - {kernel: half, grid: ["ceil_div(n, 256)"], block: [256], args: [a, scratch, n]}
  - {kernel: vadd, grid: ["ceil_div(n, 256)"], block: [256], args: [scratch, b, c, n]}
workspace: {scratch: {shape: [n], dtype: float32, init: zero}}
*/
extern "C" __global__ void half(const float* a, float* s, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) s[i] += a[i]; }
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }`
	b := bind(t, setup(t), source, 1000, "half", "vadd")
	steps, err := b.bench.(verify.Timeliner).Timeline(context.Background(), b.set, 3)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range steps {
		if names = append(names, s.Name); s.MedianUS < 0 {
			t.Errorf("step %s took %v us", s.Name, s.MedianUS)
		}
	}
	if got := fmt.Sprint(names); got != "[clear workspace half vadd]" {
		t.Errorf("steps %s", got)
	}
	if _, found, err := b.shoot(3); err != nil || found[0].Mismatches != 0 {
		t.Errorf("after the timeline: %+v, %v", found, err)
	}
}

// TestLargeInputsAreLookedAtInParts changes inputs of 4 MB in every launch, restored by the rewriting before the next: a launch
// that is compared whole sees it, as the last one of a burst does, and of the others about one in eight.
func TestLargeInputsAreLookedAtInParts(t *testing.T) {
	const source = `extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; if (i == 9) const_cast<float*>(b)[i] = 0.f; }`
	e := setup(t)
	b := bind(t, e, source, max(540_000, e.engine.Info().L2Bytes/16)) // too large to go round
	run := &verify.Burst{Rewrite: true, Limit: time.Second}
	const launches = 96 // an eighth of each is looked at: that 94 miss the place has a chance of 4 in a million
	for i := range uint64(launches) {
		run.Launches = append(run.Launches, verify.BurstLaunch{Set: b.set, Seed: i, Whole: i == 0})
	}
	shots, err := b.bench.(verify.Burster).Burst(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range shots {
		if s.Breach != nil && s.Breach.Kind == verify.KindInputsChanged && s.Breach.Index == 8 { // of four elements of 16 bytes
			seen++
		}
	}
	if shots[0].Breach == nil || shots[launches-1].Breach == nil || seen < 3 || seen > launches/2 {
		t.Errorf("seen in %d of %d launches, in the whole one %v, in the last one %v", seen, launches, shots[0].Breach, shots[launches-1].Breach)
	}
}

// TestReadingIsTimedBehindACleanCache sums a vector larger than a quarter of the cache: the flush before its launches reads, so that
// no line of it waits to be written, and leaves the result alone.
func TestReadingIsTimedBehindACleanCache(t *testing.T) {
	const text = `task_name: total
description: Sum.
problem_shape: {n: 4194304, dtype: float32}
tensors: {a: {shape: [n], dtype: float32, role: in}, c: {shape: ["1"], dtype: float32, role: out}}
reference: a.sum(-1)
default_launch: {kernel: total, grid: [1], block: [1], args: [a, c, n]}
targets: {cuda: {arch: emulated, baseline: x.cu}}
`
	const source = `extern "C" __global__ void total(const float* a, float* c, int n) { float s = 0.f; for (int i = 0; i < n; ++i) s += a[i]; c[0] = s; }`
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "x.cu"), []byte(source), 0o600)); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(filepath.Join(dir, "t.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		var s float64
		for _, v := range in["a"] {
			s += v
		}
		return map[string][]float64{"c": {s}}, nil
	}
	b := bindTask(t, setup(t), tk, sum, source, 4<<20, "total") // an H200 has 60 MB of cache
	if _, _, err := b.bench.(*cudaengine.Bench).Swept(); err != nil {
		t.Fatal(err)
	}
	shots, err := b.bench.(verify.Burster).Burst(context.Background(), &verify.Burst{Rewrite: true, Limit: 10 * time.Second, Launches: []verify.BurstLaunch{{Set: b.set, Seed: 1, Whole: true}, {Set: b.set, Seed: 2}}})
	if err != nil || len(shots) != 2 {
		t.Fatal(err)
	}
	if overwritten, _, err := b.bench.(*cudaengine.Bench).Swept(); err != nil || overwritten {
		t.Errorf("the flush wrote (%t), %v", overwritten, err)
	}
	for i, s := range shots {
		if s.Breach != nil || s.Comparisons[0].Unwritten != 0 || s.Comparisons[0].NonFinite != 0 || s.Comparisons[0].MaxAbs > 1 {
			t.Errorf("launch %d: %+v", i, s)
		}
	}
}
