package nvrtc

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain/cubin"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

const softmaxSource = `
extern "C" __global__ void __launch_bounds__(256) rows(const float* x, float* y, int n, double scale) {
    __shared__ float buf[40];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    buf[threadIdx.x & 31] = i < n ? x[i] : 0.f;
    __syncthreads();
    if (i < n) y[i] = buf[(threadIdx.x + 1) & 31] * (float)scale * FACTOR;
}
`

func pool(t *testing.T, config Config) *Pool {
	t.Helper()
	found := Find()
	if len(found) == 0 {
		t.Skip(ErrNotInstalled)
	}
	config.Reduced = true
	p, err := NewPool(found[0], config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestCompileReportsResources(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{})
	r, err := p.Compile(context.Background(), softmaxSource, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=2.f", "--ptxas-options=-v"})
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := cubin.Parse(r.Image)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Log)
	}
	if len(kernels) != 1 || kernels[0].Name != "rows" {
		t.Fatalf("kernels %+v", kernels)
	}
	k := kernels[0]
	if k.Registers < 4 || k.Registers > 64 || k.StaticSharedBytes != 160 || k.MaxThreads != 256 {
		t.Errorf("got %+v, want 4 to 64 registers, 160 bytes of shared memory, 256 threads", k)
	}
	if want := []int{8, 8, 4, 8}; len(k.Params) != 4 || k.Params[0] != want[0] || k.Params[2] != want[2] || k.Params[3] != want[3] {
		t.Errorf("parameters %v, want %v", k.Params, want)
	}
	rep := cubin.Report(r.Log)
	if len(rep) != 1 || rep[0].Name != "rows" || rep[0].Registers != k.Registers || rep[0].StaticSharedBytes != 160 {
		t.Errorf("ptxas's report %+v does not agree with the image %+v\n%s", rep, k, r.Log)
	}
}

func TestRefusedSourceHasLines(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{})
	source := strings.ReplaceAll(softmaxSource, "(float)scale", "missing")
	r, err := p.Compile(context.Background(), source, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=2.f"})
	if err != nil || r.Image != nil {
		t.Fatalf("got %v, %v; want a refusal", r, err)
	}
	d := cubin.Diagnostics(r.Log, "kernel.cu", source, 8)
	if len(d) == 0 || d[0].Severity != "error" || d[0].Line != 7 || !strings.Contains(d[0].Message, "missing") || !strings.Contains(d[0].Source, "y[i]") {
		t.Errorf("diagnostics %+v\n%s", d, r.Log)
	}
}

// TestIncludesStayInside wants files outside the child's view to be unreadable, however they are named.
func TestIncludesStayInside(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{})
	if sandbox.Probe().Level() != sandbox.LevelFull {
		t.Skip("the full sandbox is not to be had here:", sandbox.Probe())
	}
	source := "#define P \"/etc/shadow\"\n#include P\n" + softmaxSource
	r, err := p.Compile(context.Background(), source, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=1"})
	if err != nil || r.Image != nil || !strings.Contains(r.Log, "cannot open source file") {
		t.Errorf("got %+v, %v; want the file not to be found", r, err)
	}
}

func TestHungCompilerIsReplaced(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{Timeout: 3 * time.Second})
	// Each level doubles the instantiations: 2^60 of them never end.
	hang := `template <int N> struct T { static const int v = T<N - 1>::v + T<N - 1 + 1000 * (N % 2)>::v; };
template <int N, int M> struct U { static const int v = U<N - 1, 2 * M>::v + U<N - 1, 2 * M + 1>::v; };
template <int M> struct U<0, M> { static const int v = 1; };
extern "C" __global__ void k(int* p) { *p = U<26, 0>::v; }`
	start := time.Now()
	_, err := p.Compile(context.Background(), hang, "kernel.cu", []string{"--gpu-architecture=sm_90"})
	if !errors.Is(err, ErrLimit) {
		t.Fatalf("got %v after %v, want ErrLimit", err, time.Since(start))
	}
	r, err := p.Compile(context.Background(), softmaxSource, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=1"})
	if err != nil || r.Image == nil {
		t.Errorf("after the hang: %+v, %v", r, err)
	}
}

func TestPoolServesManyAtOnce(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{Children: 2})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			r, err := p.Compile(context.Background(), softmaxSource, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=" + string(rune('1'+i))})
			if err != nil || r.Image == nil {
				t.Errorf("compile %d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

// TestOneAfterAnotherIsOneChild wants no child to be started while one waits: a start costs more than most compiles.
func TestOneAfterAnotherIsOneChild(t *testing.T) {
	t.Parallel()
	p := pool(t, Config{Children: 4})
	for range 3 {
		if r, err := p.Compile(context.Background(), softmaxSource, "kernel.cu", []string{"--gpu-architecture=sm_90", "-DFACTOR=1"}); err != nil || r.Image == nil {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if len(p.idle) != 1 || p.idle[0].served != 3 {
		t.Errorf("%d children wait, the first of which served %d compiles: want one that served all 3", len(p.idle), p.idle[0].served)
	}
}

func TestFindNamesEachOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, i := range Find() {
		if seen[i.Path] || i.Version[0] == 0 {
			t.Errorf("%v is listed twice or without a version", i)
		}
		seen[i.Path] = true
	}
}
