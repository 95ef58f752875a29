package device_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
)

const kernels = `
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
// Sums each block's elements by warp shuffles and shared memory, dynamic and static, then atomically into out.
extern "C" __global__ void total(const float* a, float* out, int n) {
    extern __shared__ float partial[];
    __shared__ int seen;
    if (threadIdx.x == 0) seen = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? a[i] : 0.f;
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if ((threadIdx.x & 31) == 0) { partial[threadIdx.x >> 5] = v; atomicAdd(&seen, 1); }
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0.f;
        for (int w = 0; w < seen; ++w) s += partial[w];
        atomicAdd(out, s);
    }
}
extern "C" __global__ void wild(float* p) { *reinterpret_cast<float*>((size_t)0x10) = p[0]; }
`

type installed struct {
	e     *emulator.Emulator
	image []byte
}

// install makes the emulator and compiles the kernels above once for the package's tests.
var install = sync.OnceValues(func() (installed, error) {
	e, err := emulator.Install(context.Background(), filepath.Join(os.TempDir(), "ridgepoint-test"))
	if err != nil {
		return installed{}, err
	}
	image, text, err := e.Compile(context.Background(), kernels, nil, []string{"vadd", "total", "wild"})
	if err != nil {
		return installed{}, fmt.Errorf("%w\n%s", err, text)
	}
	return installed{e, image}, nil
})

func emulated(t *testing.T) (*emulator.Emulator, []byte) {
	t.Helper()
	in, err := install()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in.e, in.image
}

type opener func(path string) (*device.Driver, error)

// conformance is what every driver must do; it runs on the emulator under both names, and on a card where there is one.
func conformance(t *testing.T, drv *device.Driver, image []byte) {
	infos, err := drv.Devices()
	if err != nil || len(infos) == 0 {
		t.Fatalf("devices: %v, %v", infos, err)
	}
	if infos[0].Name == "" || infos[0].Limits.ThreadsPerBlock < 256 || infos[0].Limits.WarpSize < 32 || infos[0].MemoryByte < 1<<20 {
		t.Errorf("the inventory is incomplete: %+v", infos[0])
	}
	ctx, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := ctx.Do(func(s *device.Session) error { return launches(t, s, image) }); err != nil {
		t.Fatal(err)
	}
}

func floats(n int, f func(int) float32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f(i)))
	}
	return b
}

func float(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func launches(t *testing.T, s *device.Session, image []byte) error {
	const n = 1000
	st, err := s.NewStream()
	if err != nil {
		return err
	}
	mod, err := s.Load(image)
	if err != nil {
		return err
	}
	if _, err := s.Function(mod, "missing"); err == nil {
		t.Error("a missing kernel was found")
	}
	vadd, err := s.Function(mod, "vadd")
	if err != nil {
		return err
	}
	total, err := s.Function(mod, "total")
	if err != nil {
		return err
	}
	var p [3]device.Ptr
	for i := range p {
		if p[i], err = s.Alloc(4 * n); err != nil {
			return err
		}
	}
	if err := errors.Join(s.Upload(st, p[0], floats(n, func(i int) float32 { return float32(i) })),
		s.Upload(st, p[1], floats(n, func(i int) float32 { return 2 })), s.Memset32(st, p[2], 0x7fc00000, n)); err != nil {
		return err
	}
	args := new(device.Args).Ptr(p[0]).Ptr(p[1]).Ptr(p[2]).Int32(n)
	plan := &device.Plan{Grid: [3]int{4, 1, 1}, Block: [3]int{256, 1, 1}}
	var events [2]device.Event
	for i := range events {
		if events[i], err = s.NewEvent(); err != nil {
			return err
		}
	}
	if err := errors.Join(s.Record(events[0], st), s.Launch(st, vadd, plan, args), s.Record(events[1], st), s.Wait(st)); err != nil {
		return err
	}
	if took, err := s.Elapsed(events[0], events[1]); err != nil || took < 0 {
		t.Errorf("elapsed %v, %v", took, err)
	}
	out := make([]byte, 4*n)
	if err := s.Download(st, out, p[2]); err != nil {
		return err
	}
	for i := range n {
		if float(out, i) != float32(i)+2 {
			t.Fatalf("c[%d] = %v, want %v", i, float(out, i), i+2)
		}
	}
	sum := &device.Plan{Grid: [3]int{4, 1, 1}, Block: [3]int{256, 1, 1}, SharedBytes: 60 << 10}
	sumArgs := new(device.Args).Ptr(p[0]).Ptr(p[2]).Int32(n)
	tooMuch := &device.Plan{Grid: sum.Grid, Block: sum.Block, SharedBytes: 100 << 10}
	if err := s.Launch(st, total, tooMuch, sumArgs); err == nil || device.AsError(err) == nil || !device.AsError(err).Refused() {
		t.Errorf("100 KB of shared memory without leave: %v, want a refused launch", err)
	}
	if err := s.AllowShared(total, 60<<10); err != nil {
		return err
	}
	graph, err := s.Capture(st, func() error {
		return errors.Join(s.Memset32(st, p[2], 0, 1), s.Launch(st, total, sum, sumArgs))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.LaunchGraph(st, graph), s.LaunchGraph(st, graph), s.Download(st, out, p[2]), s.FreeGraph(graph)); err != nil {
		return err
	}
	if got := float(out, 0); got != n*(n-1)/2 {
		t.Errorf("total = %v, want %v", got, n*(n-1)/2)
	}
	pinned, err := s.AllocPinned(4 * n)
	if err != nil {
		return err
	}
	if err := errors.Join(s.DownloadAsync(st, pinned, p[0], 4*n), s.Wait(st)); err != nil {
		return err
	}
	if got := float(pinned.Bytes, 7); got != 7 {
		t.Errorf("pinned copy: %v, want 7", got)
	}
	return errors.Join(s.FreePinned(pinned), s.Free(p[0]), s.Free(p[1]), s.Free(p[2]), s.FreeEvent(events[0]), s.FreeEvent(events[1]), s.Unload(mod), s.FreeStream(st))
}

func TestConformance(t *testing.T) {
	e, image := emulated(t)
	for name, open := range map[string]opener{"cuda": device.OpenCUDA, "hip": device.OpenHIP} {
		t.Run(name, func(t *testing.T) {
			drv, err := open(e.Library)
			if err != nil {
				t.Fatal(err)
			}
			if drv.Dialect() != name {
				t.Errorf("dialect %s, want %s", drv.Dialect(), name)
			}
			conformance(t, drv, image)
		})
	}
}

func TestNoDriver(t *testing.T) {
	_, err := device.OpenCUDA("/nonexistent/libcuda.so.1")
	if !errors.Is(err, device.ErrNoDriver) {
		t.Errorf("got %v, want ErrNoDriver", err)
	}
}

func TestErrorNamesCallAndCode(t *testing.T) {
	e, _ := emulated(t)
	drv, err := device.OpenCUDA(e.Library)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = ctx.Do(func(s *device.Session) error {
		_, err := s.Alloc(1 << 50)
		return err
	})
	if e := device.AsError(err); e == nil || !e.OutOfMemory() || !strings.Contains(err.Error(), "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)") {
		t.Errorf("got %v", err)
	}
	if err := ctx.Close(); err != nil {
		t.Error(err)
	}
	if err := ctx.Do(func(*device.Session) error { return nil }); !errors.Is(err, device.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func TestMonitorReadsTheEmulatedCard(t *testing.T) {
	e, _ := emulated(t)
	m, err := device.OpenMonitor(e.Library, "GPU-0")
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Read()
	if err != nil || r.SMClockMHz != 900 || r.MemoryClockMHz != 1000 || r.TemperatureC != 40 || r.PowerWatts != 12.345 {
		t.Errorf("reading %+v, %v", r, err)
	}
	pids, err := m.Processes()
	if err != nil || len(pids) != 1 || pids[0] != os.Getpid() {
		t.Errorf("processes %v, %v", pids, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestConformanceOnCard runs the same on a card, with nvcc's code for it.
func TestConformanceOnCard(t *testing.T) {
	drv, err := device.OpenCUDA("")
	if errors.Is(err, device.ErrNoDriver) {
		t.Skip("no NVIDIA driver on this machine")
	}
	if err != nil {
		t.Fatal(err)
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		nvcc = "/usr/local/cuda/bin/nvcc"
	}
	if _, err := os.Stat(nvcc); err != nil {
		t.Skip("nvcc is not installed: install the CUDA toolkit")
	}
	infos, err := drv.Devices()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "k.cu"), []byte(kernels), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nvcc, "-cubin", "-arch="+infos[0].Arch, "k.cu", "-o", "k.cubin")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := os.ReadFile(filepath.Join(dir, "k.cubin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", infos[0])
	conformance(t, drv, image)
	m, err := device.OpenMonitor("", infos[0].UUID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Read()
	if err != nil || r.MemoryClockMHz < 100 || r.TemperatureC < 10 {
		t.Errorf("reading %+v, %v", r, err)
	}
	pids, err := m.Processes()
	t.Logf("%+v, processes %v, %v", r, pids, err)
}
