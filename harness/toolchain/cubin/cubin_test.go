package cubin

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
)

const ptxasLog = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    40 bytes stack frame, 36 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 16+0 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 8 registers
`

func TestReport(t *testing.T) {
	t.Parallel()
	want := []harness.KernelResource{
		{Name: "a", Registers: 32, StaticSharedBytes: 16, SpillStoreBytes: 36, SpillLoadBytes: 28, LocalBytes: 40},
		{Name: "b", Registers: 8},
	}
	if d := cmp.Diff(want, Report(ptxasLog)); d != "" {
		t.Error(d)
	}
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	log := "kernel.cu(2): warning #177-D: variable \"x\" was declared but never referenced\n" +
		"kernel.cu(1): error: expected a \")\"\nkernel.cu:3:7: error: use of undeclared identifier 'z'\n2 errors detected\n"
	got := Diagnostics(log, "kernel.cu", "one\ntwo\nthree", 2)
	want := []harness.Diagnostic{
		{Severity: "error", File: "kernel.cu", Line: 1, Message: `expected a ")"`, Source: "one"},
		{Severity: "error", File: "kernel.cu", Line: 3, Column: 7, Message: "use of undeclared identifier 'z'", Source: "three"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzParse(f *testing.F) {
	image, err := os.ReadFile("testdata/k_sm_90.cubin") // NVRTC 11.8's, of a kernel k with 32 bytes of shared memory
	if err != nil {
		f.Fatal(err)
	}
	limits, err := LimitsOf("sm_90")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(image)
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add(make([]byte, 200))
	f.Fuzz(func(t *testing.T, b []byte) {
		kernels, err := Parse(b)
		if err == nil && len(b) < 64 {
			t.Error("an image without a header was taken")
		}
		for i := range kernels { // the pre-flight takes whatever was read
			plan := &device.Plan{Grid: [3]int{7, 1, 1}, Block: [3]int{64, 1, 1}, Cooperative: true}
			var refusal *Refusal
			if err := Check(&kernels[i], limits, plan, []int{8, 4}); err != nil && (!errors.As(err, &refusal) || refusal.Reason == "") {
				t.Errorf("%v is no refusal with a reason", err)
			}
		}
	})
}

// Every prefix of a real image, and the image with any one byte at its edges, is read or refused.
func TestParseDamaged(t *testing.T) {
	t.Parallel()
	image, err := os.ReadFile("testdata/k_sm_90.cubin")
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := Parse(image)
	want := []Kernel{{Name: "k", Registers: kernels[0].Registers, StaticSharedBytes: 32, MaxThreads: 64, Params: []int{8, 4}}}
	if d := cmp.Diff(want, kernels); err != nil || d != "" || kernels[0].Registers < 4 {
		t.Fatalf("%v, %s", err, d)
	}
	for n := range image {
		_, _ = Parse(image[:n]) // must not panic
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			damaged := append([]byte(nil), image...)
			damaged[n] = b
			_, _ = Parse(damaged)
		}
	}
}

func FuzzDiagnostics(f *testing.F) {
	f.Add("kernel.cu(1): error: x", "one")
	f.Add("kernel.cu(10): error: x\nkernel.cu:20:3: warning: y\n", "one\ntwo")
	f.Fuzz(func(t *testing.T, log, source string) {
		if d := Diagnostics(log, "kernel.cu", source, 3); len(d) > 3 {
			t.Errorf("%d diagnostics, want at most 3", len(d))
		}
		Report(log)
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	limits, err := LimitsOf("sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	limits.SMs = 132
	plan := func(gx, bx, by, shared int) *device.Plan {
		return &device.Plan{Grid: [3]int{gx, 1, 1}, Block: [3]int{bx, by, 1}, SharedBytes: shared}
	}
	big := plan(2000, 1024, 1, 0)
	big.Cooperative = true
	cluster := plan(7, 128, 1, 0)
	cluster.Cluster = [3]int{2, 1, 1}
	for _, c := range []struct {
		name   string
		kernel Kernel
		plan   *device.Plan
		params []int
		want   string // "": accepted
	}{
		{"fits", Kernel{Registers: 64, Params: []int{8, 4}}, plan(10, 1024, 1, 0), []int{8, 4}, ""},
		{"all shared memory", Kernel{Registers: 32, StaticSharedBytes: 1024}, plan(10, 128, 1, 226<<10), nil, ""},
		{"too much shared memory", Kernel{Registers: 32, StaticSharedBytes: 1025}, plan(10, 128, 1, 226<<10), nil, "the device gives a block 232448"},
		{"too much static", Kernel{StaticSharedBytes: 49153}, plan(1, 32, 1, 0), nil, "declare more as dynamic"},
		{"too many threads", Kernel{}, plan(1, 64, 32, 0), nil, "2048 threads a block"},
		{"beyond launch bounds", Kernel{MaxThreads: 128}, plan(1, 256, 1, 0), nil, "__launch_bounds__"},
		{"too many registers", Kernel{Registers: 72}, plan(1, 1024, 1, 0), nil, "73728 of the block's 65536 registers"},
		{"empty grid", Kernel{}, plan(0, 32, 1, 0), nil, "grid.x is 0"},
		{"one argument short", Kernel{Params: []int{8, 8}}, plan(1, 32, 1, 0), []int{8}, "takes 2 parameters, the launch passes 1"},
		{"a wide argument", Kernel{Params: []int{8, 4}}, plan(1, 32, 1, 0), []int{8, 8}, "parameter 2 has 4 bytes"},
		{"cooperative", Kernel{Registers: 32}, big, nil, "of which 264 run at once"},
		{"cluster", Kernel{}, cluster, nil, "not a multiple of the cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Check(&c.kernel, limits, c.plan, c.params)
			var r *Refusal
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.As(err, &r) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want a refusal with %q", err, c.want)
			}
		})
	}
	if _, err := LimitsOf("sm_1"); err == nil {
		t.Error("an unknown arch has limits")
	}
}

// TestOccupancy holds the computation against values of the CUDA Occupancy Calculator for compute capability 9.0.
func TestOccupancy(t *testing.T) {
	t.Parallel()
	limits, err := LimitsOf("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel  Kernel
		threads int
		shared  int
		blocks  int
		by      string
	}{
		{Kernel{Registers: 32}, 256, 0, 8, "threads"},
		{Kernel{Registers: 64}, 256, 0, 4, "registers"},
		{Kernel{Registers: 128}, 1024, 0, 0, "registers"},
		{Kernel{Registers: 16}, 32, 0, 32, "blocks"},
		{Kernel{Registers: 32}, 128, 100 << 10, 2, "shared memory"},
	} {
		r := Occupancy(&c.kernel, limits, &device.Plan{Grid: [3]int{100000, 1, 1}, Block: [3]int{c.threads, 1, 1}, SharedBytes: c.shared})
		if r.Blocks != c.blocks || r.LimitedBy != c.by {
			t.Errorf("%+v × %d threads, %d shared: %+v, want %d blocks by %s", c.kernel, c.threads, c.shared, r, c.blocks, c.by)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"sm_70", "sm_86", "sm_90", "sm_90a", "sm_100f", "sm_120", "emulated"} {
		if l, err := LimitsOf(arch); err != nil || l.SharedOptIn == 0 || l.ThreadsPerSM == 0 {
			t.Errorf("%s: %+v, %v", arch, l, err)
		}
	}
	for _, arch := range []string{"", "sm_90z", "gfx90a", "emulat", "sm_3"} {
		if l, err := LimitsOf(arch); err == nil {
			t.Errorf("%q has limits %+v", arch, l)
		}
	}
}
