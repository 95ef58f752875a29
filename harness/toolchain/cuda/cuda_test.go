package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/configs/expr"
	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/nvrtc"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || nvrtc.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func level() sandbox.Level {
	if sandbox.Probe().Level() == sandbox.LevelFull {
		return sandbox.LevelFull
	}
	return sandbox.LevelReduced
}

func compiler(t testing.TB) *Compiler {
	t.Helper()
	use := NVRTC
	if os.Getenv("RIDGEPOINT_CUDA_COMPILER") != "" {
		use = os.Getenv("RIDGEPOINT_CUDA_COMPILER")
	}
	c, err := Find(t.Context(), Config{Use: use, Children: 4, Level: level()})
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func emulating(t *testing.T) *Compiler {
	t.Helper()
	c, err := FindEmulated(Config{Dir: filepath.Join(os.TempDir(), "ridgepoint-test"), Level: level()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Emulator(t.Context()); errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
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
targets: {cuda: {arch: sm_90, baseline: "x.cu"}}
`

func candidate(t *testing.T, source, arch string) (*harness.Task, *harness.Candidate) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "task.yaml")
	if err := errors.Join(os.WriteFile(file, []byte(strings.ReplaceAll(taskText, "sm_90", arch)), 0o600), os.WriteFile(filepath.Join(dir, "x.cu"), []byte(source), 0o600)); err != nil {
		t.Fatal(err)
	}
	tk, err := task.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.ParseStructure("k", source, tk, harness.TargetCUDA)
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
	for _, c := range []struct{ name, source, want string }{ // want "": compiles
		{"right", vadd, ""},
		{"constants of math.h", strings.Replace(vadd, "a[i] + a[i]", "fminf(INFINITY, a[i]) + (a[i] == NAN ? 1.f : a[i])", 1), ""},
		{"one of its own", "#define INFINITY 3e38f\n#ifndef NAN\n#define NAN 0.f\n#endif\n" + strings.Replace(vadd, "a[i] + a[i]", "fminf(INFINITY, a[i]) + NAN", 1), ""},
		{"undeclared", strings.Replace(vadd, "a[i] + a[i]", "bb[i]", 1), "kernel.cu:3: "},
		{"no such kernel", strings.ReplaceAll(vadd, "vadd", "other"), "no kernel vadd"},
		{"absolute include", "#include \"/etc/hostname\"\n" + vadd, "kernel.cu:1: \"/etc/hostname\" is included from outside"},
		{"climbing include", "\n#  include <../../etc/hostname>\n" + vadd, "kernel.cu:2: "},
		{"include by macro", "#define P \"/etc/shadow\"\n#include P\n" + vadd, "shadow"},
	} {
		for _, arch := range []string{"sm_90", device.Emulated} {
			t.Run(c.name+" "+arch, func(t *testing.T) {
				t.Parallel()
				var cc *Compiler
				if arch == device.Emulated {
					cc = emulating(t)
				} else {
					cc = compiler(t)
				}
				_, cand := candidate(t, c.source, arch)
				b, image, refused, err := cc.Compile(t.Context(), cand)
				if err != nil {
					t.Fatal(err)
				}
				if c.want == "" {
					if refused != nil || len(image) == 0 || b.Key != cc.Key(cand) {
						t.Fatalf("refused %+v, build %+v", refused, b)
					}
					if arch != device.Emulated && (len(b.Kernels) != 1 || b.Kernels[0].Registers < 2) {
						t.Errorf("kernels %+v", b.Kernels)
					}
					return
				}
				if refused == nil || !strings.Contains(refused.Reason, c.want) {
					t.Errorf("refused %+v, want %q", refused, c.want)
				}
			})
		}
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	cc := compiler(t)
	for _, c := range []struct{ name, source, want string }{
		{"fits", vadd, ""},
		{"static shared memory", strings.Replace(vadd, "int i =", "__shared__ float s[13000]; s[threadIdx.x] = a[0]; __syncthreads(); c[0] = s[255 - threadIdx.x]; int i =", 1), "static shared memory"},
		{"launch bounds", strings.Replace(vadd, "void vadd", "void __launch_bounds__(128) vadd", 1), "__launch_bounds__"},
		{"arguments", strings.Replace(vadd, "int n", "long long n", 1), "parameter 3 has 8 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tk, cand := candidate(t, c.source, "sm_90")
			_, image, refused, err := cc.Compile(t.Context(), cand)
			if err != nil {
				t.Fatal(err)
			}
			if refused != nil { // ptxas refuses some of it first, which is as good
				if !strings.Contains(refused.Reason, "shared") {
					t.Errorf("refused: %s", refused.Reason)
				}
				return
			}
			reason, err := Preflight(tk, cand, image, nil)
			if err != nil || (c.want == "") != (reason == "") || !strings.Contains(reason, c.want) {
				t.Errorf("got %q, %v; want %q", reason, err, c.want)
			}
		})
	}
}

func TestRequirement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		have [2]int
		ok   bool
	}{{"", [2]int{}, true}, {">=12.0", [2]int{11, 8}, false}, {">=12.0", [2]int{12, 0}, true}, {">=12", [2]int{13, 0}, true}, {">12.4", [2]int{12, 4}, false}, {"12", [2]int{12, 0}, false}} {
		if err := meets(c.want, c.have); (err == nil) != c.ok {
			t.Errorf("%q on %v: %v", c.want, c.have, err)
		}
	}
}

// TestShippedStructures compiles every shipped CUDA structure at its default, and with RIDGEPOINT_LONG=1 at each parameter's
// least and greatest value with the nearest feasible others. What needs a newer toolkit is left out.
func TestShippedStructures(t *testing.T) {
	t.Parallel()
	cc := compiler(t)
	eachShipped(t, cc, func(tk *harness.Task, s *harness.Structure) {
		configs := []harness.Configuration{nil}
		if os.Getenv("RIDGEPOINT_LONG") != "" {
			configs = append(configs, extremes(tk, s)...)
		}
		t.Run(tk.Name+"/"+s.Name, func(t *testing.T) {
			t.Parallel()
			for _, config := range configs {
				compileShipped(t, cc, tk, s, config)
			}
		})
	})
}

// BenchmarkShipped compiles each shipped structure's default, one after another, which is what one candidate waits for.
func BenchmarkShipped(b *testing.B) {
	cc := compiler(b)
	eachShipped(b, cc, func(tk *harness.Task, s *harness.Structure) {
		b.Run(tk.Name+"/"+s.Name, func(b *testing.B) {
			for b.Loop() {
				compileShipped(b, cc, tk, s, nil)
			}
		})
	})
}

// eachShipped calls visit with every shipped CUDA structure that the toolkit here is new enough for.
func eachShipped(t testing.TB, cc *Compiler, visit func(*harness.Task, *harness.Structure)) {
	t.Helper()
	for _, name := range tasks.Names() {
		loaded, err := task.LoadFS(tasks.FS, name+"/task.yaml")
		if err != nil {
			t.Fatal(err)
		}
		structures, err := loaded.Structures(harness.TargetCUDA)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range structures {
			if meets(s.Requires["toolkit"], cc.Toolkit()) == nil {
				visit(loaded.Task, s)
			}
		}
	}
}

func compileShipped(t testing.TB, cc *Compiler, tk *harness.Task, s *harness.Structure, config harness.Configuration) {
	t.Helper()
	cand, err := task.NewCandidate(tk, s, config)
	if err != nil {
		t.Errorf("%v: %v", config, err)
		return
	}
	_, image, refused, err := cc.Compile(context.Background(), cand)
	if err != nil || refused != nil {
		t.Errorf("%v: refused %+v, error %v", config, refused, err)
		return
	}
	if reason, err := Preflight(tk, cand, image, nil); err != nil || reason != "" {
		t.Errorf("%v: pre-flight %q, %v", config, reason, err)
	}
}

// extremes returns, for each parameter's least and greatest value, the feasible configuration nearest to the default.
func extremes(tk *harness.Task, s *harness.Structure) []harness.Configuration {
	var out []harness.Configuration
	for _, p := range s.Params {
		values := task.Values(p)
		if len(values) < 2 {
			continue
		}
		for _, v := range []expr.Value{values[0], values[len(values)-1]} {
			if c := nearest(tk, s, p.Name, v); c != nil {
				out = append(out, c)
			}
		}
	}
	return out
}

func nearest(tk *harness.Task, s *harness.Structure, name string, v expr.Value) harness.Configuration {
	full, err := task.Complete(s, nil)
	if err != nil {
		return nil
	}
	full[name] = v
	var try func(changes int, from int) harness.Configuration
	try = func(changes, from int) harness.Configuration {
		if task.Check(tk, s, full) == nil {
			return full
		}
		if changes == 0 {
			return nil
		}
		for i := from; i < len(s.Params); i++ {
			p := s.Params[i]
			if p.Name == name {
				continue
			}
			old := full[p.Name]
			for _, w := range task.Values(p) {
				full[p.Name] = w
				if c := try(changes-1, i+1); c != nil {
					return c
				}
			}
			full[p.Name] = old
		}
		return nil
	}
	for changes := range 4 {
		if c := try(changes, 0); c != nil {
			return c
		}
	}
	return nil
}
