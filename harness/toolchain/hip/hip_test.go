package hip

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/codeobject"
	"ridgepoint/harness/toolchain/nvrtc"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || nvrtc.Main(os.Args[1:]) {
		return
	}
	code := m.Run()
	for _, findFunc := range found {
		if c, err := findFunc(); err == nil {
			c.Close()
			_ = os.RemoveAll(c.config.Dir) // scratch
		}
	}
	os.Exit(code)
}

var found = map[string]func() (*Compiler, error){HIPRTC: sync.OnceValues(func() (*Compiler, error) { return find(HIPRTC) }), HIPCC: sync.OnceValues(func() (*Compiler, error) { return find(HIPCC) })}

func find(use string) (*Compiler, error) {
	level := sandbox.LevelReduced
	if sandbox.Probe().Level() == sandbox.LevelFull {
		level = sandbox.LevelFull
	}
	dir, err := os.MkdirTemp("", "ridgepoint-hip-test-")
	if err != nil {
		return nil, err
	}
	return Find(context.Background(), Config{Use: use, Children: 2, Level: level, Dir: dir})
}

// compiler finds one of the two, once for all tests; without it the test skips with what to install.
func compiler(t *testing.T, use string) *Compiler {
	t.Helper()
	c, err := found[use]()
	if errors.Is(err, ErrNoCompiler) {
		t.Skipf("%s: %v", use, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const taskText = `task_name: vadd
description: Sum.
problem_shape: {n: 4096, dtype: float32}
tensors:
  a: {shape: [n], dtype: float32, role: in}
  c: {shape: [n], dtype: float32, role: out}
reference: a + a
default_launch: {kernel: vadd, grid: ["ceil_div(n, 256)"], block: [256], args: [a, c, n]}
targets: {hip: {arch: gfx90a, baseline: "x.hip"}}
`

func candidate(t *testing.T, source string) (*harness.Task, *harness.Candidate) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "task.yaml")
	if err := errors.Join(os.WriteFile(file, []byte(taskText), 0o600), os.WriteFile(filepath.Join(dir, "x.hip"), []byte(source), 0o600)); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.ParseStructure("k", source, tk, harness.TargetHIP)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tk, c
}

const vadd = `extern "C" __global__ void vadd(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + a[i];
}`

// TestCompile runs both compilers over the same sources: both must take and refuse the same, with lines.
func TestCompile(t *testing.T) {
	t.Parallel()
	for _, use := range []string{HIPRTC, HIPCC} {
		t.Run(use, func(t *testing.T) {
			t.Parallel()
			cc := compiler(t, use)
			for _, c := range []struct{ name, source, want string }{ // want "": compiles
				{"right", vadd, ""},
				{"warp intrinsics of CUDA", strings.Replace(vadd, "a[i] + a[i]", "__shfl_xor_sync(~0u, __ldcs(a + i), 1) + (float)__ballot_sync(~0u, 1)", 1), ""},
				{"undeclared", strings.Replace(vadd, "a[i] + a[i]", "bb[i]", 1), "kernel.cu:3: "},
				{"no such kernel", strings.ReplaceAll(vadd, "vadd", "other"), "no kernel vadd"},
				{"absolute include", "#include \"/etc/hostname\"\n" + vadd, "kernel.cu:1: \"/etc/hostname\" is included from outside"},
				{"include by macro", "#define P \"/etc/shadow\"\n#include P\n" + vadd, "shadow"},
			} {
				_, cand := candidate(t, c.source)
				b, image, refused, err := cc.Compile(t.Context(), cand)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				if c.want != "" {
					if refused == nil || !strings.Contains(refused.Reason, c.want) {
						t.Errorf("%s: refused %+v, want %q", c.name, refused, c.want)
					}
					continue
				}
				if refused != nil || len(image) == 0 || b.Key != cc.Key(cand) || len(b.Kernels) != 1 || b.Kernels[0].Registers < 2 || !strings.HasPrefix(b.Toolchain, use) {
					t.Errorf("%s: refused %+v, build %+v", c.name, refused, b)
				}
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	cc := compiler(t, HIPRTC)
	for _, c := range []struct{ name, source, want string }{
		{"fits", vadd, ""},
		{"launch bounds", strings.Replace(vadd, "void vadd", "void __launch_bounds__(128) vadd", 1), "__launch_bounds__"},
		{"arguments", strings.Replace(vadd, "int n", "long long n", 1), "parameter 3 has 8 bytes"},
		{"one argument more", strings.Replace(vadd, "int n", "int n, int m", 1), "3 arguments and the kernel 4 parameters"},
	} {
		tk, cand := candidate(t, c.source)
		_, image, refused, err := cc.Compile(t.Context(), cand)
		if err != nil || refused != nil {
			t.Errorf("%s: refused %+v, %v", c.name, refused, err)
			continue
		}
		reason, err := Preflight(tk, cand, image, nil)
		if err != nil || (c.want == "") != (reason == "") || !strings.Contains(reason, c.want) {
			t.Errorf("%s: got %q, %v; want %q", c.name, reason, err, c.want)
		}
	}
}

// TestShippedStructures compiles the shipped CUDA structures for gfx90a at their defaults, and the engine's helper kernels. One
// structure of each task goes through hiprtc; with RIDGEPOINT_LONG=1 all of them, and hipcc too. Those that speak to NVIDIA's
// copy engine say `requires: {toolkit: ...}` and are refused for it.
func TestShippedStructures(t *testing.T) {
	t.Parallel()
	long := os.Getenv("RIDGEPOINT_LONG") != ""
	uses := []string{HIPRTC}
	if long {
		uses = append(uses, HIPCC)
	}
	for _, use := range uses {
		t.Run(use, func(t *testing.T) {
			t.Parallel()
			cc := compiler(t, use)
			for _, name := range tasks.Names() {
				tk, structures := shipped(t, name)
				for i, s := range structures {
					if i > 0 && !long && s.Requires["toolkit"] == "" {
						continue
					}
					compileShipped(t, cc, tk, s)
				}
			}
		})
	}
}

// shipped loads a shipped task's CUDA structures for gfx90a.
func shipped(t *testing.T, name string) (*harness.Task, []*harness.Structure) {
	t.Helper()
	loaded, err := task.LoadFS(tasks.FS, name+"/task.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range loaded.Task.Targets {
		if spec := &loaded.Task.Targets[i]; spec.Target == harness.TargetCUDA {
			spec.Target, spec.Arch = harness.TargetHIP, "gfx90a"
		}
	}
	structures, err := loaded.Structures(harness.TargetHIP)
	if err != nil || len(structures) < 2 {
		t.Fatalf("%s: %d structures, %v", name, len(structures), err)
	}
	return loaded.Task, structures
}

func compileShipped(t *testing.T, cc *Compiler, tk *harness.Task, s *harness.Structure) {
	t.Helper()
	cand, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Errorf("%s/%s: %v", tk.Name, s.Name, err)
		return
	}
	b, image, refused, err := cc.Compile(t.Context(), cand)
	if s.Requires["toolkit"] != "" {
		if refused == nil || !strings.Contains(refused.Reason, "toolkit") {
			t.Errorf("%s/%s: refused %+v, %v; want its toolkit to be missed", tk.Name, s.Name, refused, err)
		}
		return
	}
	if err != nil || refused != nil {
		t.Errorf("%s/%s: refused %+v, error %v", tk.Name, s.Name, refused, err)
		return
	}
	if reason, err := Preflight(tk, cand, image, nil); err != nil || reason != "" && !strings.Contains(reason, "shared memory") {
		t.Errorf("%s/%s: pre-flight %q, %v", tk.Name, s.Name, reason, err)
	} else if reason != "" {
		t.Logf("%s/%s is for larger blocks than gfx90a's: %s", tk.Name, s.Name, reason)
	}
	if b.Kernels[0].Registers == 0 {
		t.Errorf("%s/%s: resources %+v", tk.Name, s.Name, b.Kernels)
	}
}

// TestHelpers wants the engine's own kernels to compile.
func TestHelpers(t *testing.T) {
	t.Parallel()
	image, err := compiler(t, HIPRTC).Trusted(t.Context(), "gfx90a", cudaengine.HelperSource, cudaengine.HelperKernels)
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := codeobject.Parse(image)
	if err != nil || len(kernels) != len(cudaengine.HelperKernels) {
		t.Errorf("%d kernels, %v; want %d", len(kernels), err, len(cudaengine.HelperKernels))
	}
}
