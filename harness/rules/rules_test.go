package rules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/rules"
	"ridgepoint/harness/task"
)

const taskText = `
task_name: t
problem_shape: {rows: 1024, cols: 512, dtype: float32}
reference: torch.softmax(input, dim=-1)
sizes: [{rows: 1024, cols: 512}, {rows: 128, cols: 4096}]
rules: {forbid: [cublas, "wmma::load", __expf, goto]RULES}
VARY
targets: {cpu: {arch: x86-64-v3}, cuda: {arch: sm_90}}
default_launch: {kernel: kern, grid: [rows], block: [256], args: [input, output, rows, cols]}
`

func load(t *testing.T, rule, vary string) *harness.Task {
	t.Helper()
	tk, err := task.Parse("task.yaml", strings.NewReplacer("RULES", rule, "VARY", vary).Replace(taskText), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

const (
	c    = harness.TargetCPU
	cuda = harness.TargetCUDA
	// sig is a kernel that takes what the task's default launch passes, in C and in CUDA.
	sig  = "void kern(const float *in, float *out, int rows, int cols) {\n%BODY%\n}\n"
	gsig = "extern \"C\" __global__ void kern(const float *in, float *out, int rows, int cols) {\n%BODY%\n}\n"
)

func TestViolations(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name   string
		target harness.Target
		before string // file level
		body   string
		rule   string
		line   int
		refuse bool
	}{
		{"forbidden word", c, "", "goto end; end:;", "forbid", 2, true},
		{"forbidden call", cuda, "", "out[0] = __expf(in[0]);", "forbid", 2, true},
		{"forbidden prefix", c, "", "cublasSgemm(0);", "forbid", 2, true},
		{"forbidden sequence", cuda, "", "wmma :: load_matrix_sync(a, in, 16);", "forbid", 2, true},
		{"forbidden include", c, "#include <cublas_v2.h>\n", "", "forbid", 1, true},
		{"forbidden in a macro", c, "#define E(x) __expf(x)\n", "", "forbid", 1, true},
		{"absolute include", c, "#include \"/etc/passwd\"\n", "", "include", 1, true},
		{"parent include", c, "#include <../../etc/passwd>\n", "", "include", 1, true},
		{"own include", c, "#include \"helper.h\"\n", "", "include", 1, true},
		{"computed include", c, "#define H <math.h>\n#include H\n", "", "include", 2, true},
		{"continued include", c, "#inc\\\nlude \"/etc/passwd\"\n", "", "include", 1, true},
		{"commented include", c, "#/**/include /**/ \"/etc/passwd\"\n", "", "include", 1, true},
		{"digraph include", c, "%:include \"/etc/passwd\"\n", "", "include", 1, true},
		{"embed", c, "", "#embed \"/etc/passwd\"", "include", 2, true},
		{"sockets", c, "#include <sys/socket.h>\n", "", "include", 1, true},
		{"host include", cuda, "#include <iostream>\n", "", "include", 1, true},
		{"system call", c, "", "__asm__ volatile(\"sys\" \"call\");", "assembly", 2, true},
		{"system call in one string", c, "", "__asm__ volatile(\"mov $60, %eax; syscall\");", "assembly", 2, true},
		{"incbin", c, "", "asm(\".incbin \\\"/etc/passwd\\\"\");", "assembly", 2, true},
		{"assembly at file level", c, "asm(\"nop\");\n", "", "assembly", 1, true},
		{"interrupt", c, "", "asm(\"int $0x80\");", "assembly", 2, true},
		{"constructor", c, "__attribute__((constructor)) static void early(void) {}\n", "", "constructor", 1, true},
		{"init section", c, "__attribute__((section(\".init_array\"))) void (*p)(void) = 0;\n", "", "constructor", 1, true},
		{"main in C", c, "int main(void) { return 0; }\n", "", "main", 1, true},
		{"main in CUDA", cuda, "int main() { return 0; }\n", "", "host_code", 1, true},
		{"host function", cuda, "__host__ void f() {}\n", "", "host_code", 1, true},
		{"nested launch", cuda, "", "kern<<<1, 1>>>(in, out, rows, cols);", "host_code", 2, true},
		{"host call", cuda, "", "cudaMemcpyAsync(out, in, 4, cudaMemcpyDefault);", "host_code", 2, true},
		{"device malloc", cuda, "", "float *p = (float *)malloc(4);", "device_heap", 2, true},
		{"device new", cuda, "", "float *p = new float[4];", "device_heap", 2, true},
		{"clock", cuda, "", "long long t = clock64();", "clock", 2, false},
		{"clock in PTX", cuda, "", "asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(t));", "clock", 2, false},
		{"time stamp counter", c, "", "unsigned long long t = __rdtsc();", "clock", 2, true},
		{"time stamp builtin", c, "", "out[0] = __builtin_ia32_rdtscp(0);", "clock", 2, true},
		{"time stamp in assembly", c, "", "asm volatile(\"rdtsc\" : \"=a\"(lo), \"=d\"(hi));", "clock", 2, true},
		{"counter of Arm", c, "", "asm volatile(\"mrs %0, cntvct_el0\" : \"=r\"(t));", "clock", 2, true},
		{"clock by pointer", c, "", "int (*f)() = clock_gettime;", "clock", 2, true},
		{"clock behind a macro", c, "#define NOW __rdtsc\n", "", "clock", 1, true},
		{"clock of OpenMP", c, "", "double t = omp_get_wtime();", "clock", 2, true},
		{"device global", cuda, "__device__ unsigned int g_done = 0;\n", "", "writable_global", 1, false},
		{"device pointer to const", cuda, "__device__ const float* g_a;\n", "", "writable_global", 1, false},
		{"static in a function", c, "", "static int calls = 0; calls++;", "writable_global", 2, false},
		{"file variable", c, "static float *last;\n", "", "writable_global", 1, false},
		{"plain file array", c, "float scratch[1024];\n", "", "writable_global", 1, false},
		{"size equal", c, "", "if (cols == 512) out[0] = 1;", "size_branch", 2, false},
		{"size equal turned round", c, "", "int special = 1024 == rows;", "size_branch", 2, false},
		{"size by macro", c, "#define COLS 4096\n", "if (cols != COLS) return;", "size_branch", 3, false},
		{"size by const", c, "static const int known = 0x200;\n", "if (cols == known) return;", "size_branch", 3, false},
		{"size of a copy", c, "", "int w = cols;\nif (w == 512) return;", "size_branch", 3, false},
		{"size in a switch", cuda, "", "switch (cols) { case 512: out[0] = 1; break; default: break; }", "size_branch", 2, false},
		{"no such kernel", c, "void other(void) {}\n//", "", "kernel", 1, true},
		{"wrong arity", c, "void kern(const float *in, float *out, int n) {}\n//", "", "kernel", 1, true},
		{"C++ name", cuda, "__global__ void kern(const float *in, float *out, int rows, int cols) {}\n//", "", "kernel", 1, true},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			text := sig
			if v.target == cuda {
				text = gsig
			}
			if strings.HasSuffix(v.before, "//") {
				text = ""
			}
			found := check(t, load(t, "", ""), v.target, v.before+strings.Replace(text, "%BODY%", v.body, 1))
			if v.rule == "" {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Rule != v.rule || found[0].Line != v.line || found[0].Refuse != v.refuse || found[0].Reason == "" || found[0].Remedy == "" {
				t.Errorf("found %v, want %s at line %d, refused %v", found, v.rule, v.line, v.refuse)
			}
		})
	}
}

func check(t *testing.T, tk *harness.Task, target harness.Target, source string) []rules.Violation {
	t.Helper()
	s, err := task.ParseStructure("k.c", source, tk, target)
	if err != nil {
		t.Fatal(err)
	}
	return rules.Check(tk, s)
}

// Honest code that looks a little like each of the above.
func TestHonest(t *testing.T) {
	t.Parallel()
	for _, h := range []struct {
		target harness.Target
		source string
	}{
		{c, "#include <math.h>\n#include <immintrin.h>\n#include <stdlib.h>\n#include <omp.h>\n#include <pthread.h>\n#define TILE 512\ntypedef float v8 __attribute__((vector_size(32)));\n" +
			"static const float table[4] = {1, 2, 3, 4};\nstatic inline float f(float x);\nstatic inline float f(float x) { return x * table[0]; }\nstruct pair { float a, b; };\nenum { N = 4096 };\n" +
			"/* goto, __expf and main(void) in a comment */ // static int x; asm(\"syscall\")\n" +
			"void kern(const float *restrict in, float *restrict out, int rows, int cols) {\n  if (rows == 0 || cols == 1) return;\n  const char *s = \"goto cublas \\\" int main(\"; (void)s;\n" +
			"  #pragma omp parallel for num_threads(4)\n  for (int r = 0; r < rows; r++) for (int c0 = 0; c0 < cols; c0 += TILE) { int n = cols - c0 < TILE ? cols - c0 : TILE; if (n == TILE && cols % 4 == 0) { }\n" +
			"    static const int lut[2] = {0, 1}; struct pair p = {0, 1}; for (int c = 0; c < n; c++) out[(size_t)r * cols + c0 + c] = f(in[c]) + p.a + lut[0]; }\n" +
			"  if (cols % 512 == 0 && (rows & 3) == 0) out[0] = in[0];\n  if (cols >= 1024) out[0] = in[0];\n  asm volatile(\"vzeroupper\" ::: \"memory\");\n}\n"},
		{cuda, "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <mma.h>\n#include <cstdint>\nnamespace { constexpr int kBlock = 256; __constant__ float scale[4]; }\n" +
			"template <int V> struct Vec { float v[V]; };\n__device__ __forceinline__ float wmax(float v) { for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o)); return v; }\n" +
			"__host__ __device__ inline int ceil_div(int a, int b) { return (a + b - 1) / b; }\n__device__ const float lut[2] = {0.f, 1.f};\n" +
			"extern \"C\" __global__ void __launch_bounds__(256) kern(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {\n" +
			"  __shared__ float buf[32]; extern __shared__ float dyn[];\n  int r = blockIdx.x; if (r >= rows) return; bool tail = cols % 4 != 0; if (!tail && threadIdx.x == 0) buf[0] = lut[1];\n" +
			"  asm volatile(\"ld.global.nc.f32 %0, [%1];\" : \"=f\"(buf[1]) : \"l\"(in));\n  if (threadIdx.x == 512 / 2) out[0] = wmax(dyn[0]);\n  cudaGridDependencySynchronize(); cuFloatComplex z = cuCmulf(a, b);\n  float4 v = *reinterpret_cast<const float4*>(in); out[0] = v.x;\n}\n"},
	} {
		if found := check(t, load(t, "", ""), h.target, h.source); len(found) > 0 {
			t.Errorf("%v: %v", h.target, found)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	branch := strings.Replace(sig, "%BODY%", "if (cols == 512) return;", 1)
	state := "static int calls;\n" + strings.Replace(sig, "%BODY%", "", 1)
	for _, s := range []struct {
		rule, vary, source string
		count              int
		refuse             bool
	}{
		{"", "", branch, 1, false}, {", size_branching: forbid", "", branch, 1, true}, {", size_branching: allow", "vary: none", branch, 0, false}, {"", "vary: none", branch, 1, true},
		{"", "", state, 1, false}, {", writable_globals: forbid", "", state, 1, true}, {", writable_globals: allow", "", state, 0, false},
	} {
		found := check(t, load(t, s.rule, s.vary), c, s.source)
		_, refused := rules.Refused(found)
		if len(found) != s.count || refused != s.refuse {
			t.Errorf("%q %q: %v, want %d, refused %v", s.rule, s.vary, found, s.count, s.refuse)
		}
	}
}

// The shipped kernels break no rule, and none is suspected.
func TestShippedKernels(t *testing.T) {
	t.Parallel()
	l := task.Loader{Shipped: tasks.FS}
	for _, name := range tasks.Names() {
		loaded, err := l.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []harness.Target{c, cuda} {
			structures, err := loaded.Structures(target)
			if err != nil {
				t.Fatal(err)
			}
			base, err := task.Baseline(loaded.Task, target)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range append(structures, base) {
				for _, v := range rules.Check(loaded.Task, s) {
					t.Errorf("%s/%s: %s", name, s.Name, v)
				}
			}
		}
	}
}

// The kernels that test the harness: the honest ones pass without a finding, and none of the others is refused before
// verification can judge it, as its table of verdicts wants.
func TestCases(t *testing.T) {
	t.Parallel()
	suspects := map[string]string{"14_size_branch.cu": "size_branch", "18_first_calls_honest.cu": "writable_global", "19_cache_by_pointer.cu": "writable_global", "37_one_size_regression.cu": "clock"}
	files, err := filepath.Glob("../gpu/testdata/cases/*.cu")
	if err != nil || len(files) < 18 {
		t.Fatalf("%d cases (%v)", len(files), err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := "case_vadd"
		if strings.Contains(string(source), "void softmax_rows(") {
			name = "case_softmax_rows"
		}
		tk := cases(t, name)
		s, err := task.ParseStructure(file, string(source), tk, cuda)
		if err != nil {
			t.Error(err)
			continue
		}
		want := suspects[filepath.Base(file)]
		for _, v := range rules.Check(tk, s) {
			if v.Refuse || v.Rule != want {
				t.Errorf("%s: %s", file, v)
			}
			want = v.Rule
		}
	}
}

func cases(t *testing.T, name string) *harness.Task {
	t.Helper()
	l, err := task.LoadFS(os.DirFS("../gpu/testdata/cases"), strings.TrimPrefix(name, "case_")+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if l.Task.Name != name {
		t.Fatal(fs.ErrNotExist)
	}
	return l.Task
}

func FuzzCheck(f *testing.F) {
	tk, err := task.Parse("task.yaml", strings.NewReplacer("RULES", "", "VARY", "").Replace(taskText), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sig)
	f.Add(gsig)
	f.Add("#include <x>\nR\"d(\n)d\" 'a' 0x1p-3 /* // */ %: \\\n ## <<< asm(\"x\") static int a[] = {1};")
	f.Fuzz(func(t *testing.T, source string) {
		for _, target := range []harness.Target{c, cuda} {
			s := &harness.Structure{Name: "k", Target: target, Source: source, Launches: []harness.Launch{{Kernel: "kern", Args: []string{"input", "output", "rows", "cols"}}}}
			lines := strings.Count(source, "\n") + 1
			for _, v := range rules.Check(tk, s) {
				if v.Line < 1 || v.Line > lines {
					t.Errorf("%s: line %d of %d", v, v.Line, lines)
				}
			}
		}
	})
}
