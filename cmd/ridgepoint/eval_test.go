package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/toolchain/cc"
)

const kernels = "../../harness/judge/testdata/kernels/"

// evalRun runs eval with a cache of its own.
func evalRun(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cache := t.TempDir()
	code = run(t.Context(), environment{args: append([]string{"eval"}, args...), stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
		if name == "RIDGEPOINT_CACHE" || name == "TMPDIR" {
			return cache
		}
		return env[name]
	}})
	return code, out.String(), errs.String()
}

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := cc.Find(t.Context(), "", cc.Config{}); errors.Is(err, cc.ErrNoCompiler) {
		t.Skip("no C compiler: install gcc (`ridgepoint doctor` prints the command)")
	}
}

func TestEvalExitCodes(t *testing.T) {
	needCompiler(t)
	for _, c := range []struct {
		name         string
		env          map[string]string
		args         []string
		code         int
		stdout, errs []string // each must be there
	}{
		{"a right kernel", nil, []string{"--allow-reduced", kernels + "vadd.yaml", kernels + "honest_vectors.c"}, exitOK,
			[]string{"ITERATION 1 / TASK judge_vadd\nCOMPILE_STATUS : PASS\nRUNTIME_STATUS : PASS\nNUMERICAL_STATUS : PASS\n", "n=65536 ", "speed-up", "geometric mean|disturbed", "cold: block"}, nil},
		{"a wrong one, in detail", nil, []string{"--allow-reduced", "--detail", kernels + "vadd.yaml", kernels + "nan_writer.c"}, exitVerdict,
			[]string{"NUMERICAL_STATUS : FAIL", "FAULT : incorrect", "EVIDENCE : non_finite, size n=", "input set ", "BUILD : ", "SEED : 1"}, []string{"incorrect"}},
		{"one that does not compile", nil, []string{"--allow-reduced", kernels + "vadd.yaml", kernels + "compile_error.c"}, exitVerdict, []string{"COMPILE_STATUS : FAIL\nRUNTIME_STATUS :\n"}, []string{"compile"}},
		{"no such task", nil, []string{"softmax_2e", kernels + "honest_vadd.c"}, exitUsage, nil, []string{"softmax_2d"}},
		{"no such file", nil, []string{"vector_add", "absent.c"}, exitUsage, nil, []string{"absent.c"}},
		{"no such parameter", nil, []string{"vector_add", "../../configs/tasks/vector_add/structures/cpu/vectors.c", "--param", "VECTOR=4"}, exitUsage, nil, []string{"VEC"}},
		{"no such stage", nil, []string{"--stage", "dress-rehearsal", kernels + "vadd.yaml", kernels + "honest_vadd.c"}, exitUsage, nil, []string{"search"}},
		{"no processes", nil, []string{"--processes", "0", "vector_add", "../../configs/tasks/vector_add/naive.cu"}, exitUsage, nil, []string{"--processes 0", "1 to"}},
		{"no such compiler", map[string]string{"CC": "no-such-cc"}, []string{kernels + "vadd.yaml", kernels + "honest_vadd.c"}, exitInfra, nil, []string{"no-such-cc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := evalRun(t, c.env, c.args...)
			if code != c.code {
				t.Fatalf("exit code %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
			for _, want := range c.stdout { // words with a | between them: any will do, as the machine is quiet or not
				if !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(stdout, w) }) {
					t.Errorf("stdout lacks %q:\n%s", want, stdout)
				}
			}
			for _, want := range c.errs {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
			if strings.Contains(stderr, "goroutine ") {
				t.Errorf("a stack trace:\n%s", stderr)
			}
		})
	}
}

// TestEvalProcesses wants three on a card where nobody says, one where times mean nothing or are compared within a process, and what
// cannot be done refused.
func TestEvalProcesses(t *testing.T) {
	const card, emulated = "../../configs/tasks/vector_add/naive.cu", "../../harness/gpu/testdata/kernels/"
	for _, c := range []struct {
		task, file        string
		processes, rounds int // processes -1: not given
		want              int // -1: refused
	}{
		{"vector_add", card, -1, 0, 3}, {"vector_add", card, 1, 0, 1}, {"vector_add", card, 5, 0, 5}, {"vector_add", card, -1, 4, 0},
		{emulated + "vadd.yaml", emulated + "honest_vadd.cu", -1, 0, 0}, {emulated + "vadd.yaml", emulated + "honest_vadd.cu", 2, 0, 2},
		{"vector_add", "../../configs/tasks/vector_add/naive.c", -1, 0, 0}, {"vector_add", "../../configs/tasks/vector_add/naive.c", 3, 0, -1},
		{"vector_add", card, 0, 0, -1}, {"vector_add", card, -2, 0, -1}, {"vector_add", card, 1 << 30, 0, -1}, {"vector_add", card, 3, 4, -1}, {"vector_add", card, -1, -4, -1},
	} {
		e := evalCmd{Task: c.task, File: c.file, Stage: "search", Seed: 1, Rounds: c.rounds}
		if c.processes != -1 {
			e.Processes = &c.processes
		}
		q, err := e.request()
		if (err != nil) != (c.want < 0) || err == nil && (q.Plan.Processes != c.want || q.Plan.Rounds != c.rounds) {
			t.Errorf("%s, %d processes, %d rounds: %+v, %v; want %d", c.file, c.processes, c.rounds, q, err, c.want)
		}
	}
}

// --json is the whole report, and a parameter given by --param is in its command.
func TestEvalJSON(t *testing.T) {
	needCompiler(t)
	code, stdout, stderr := evalRun(t, nil, "--json", "--allow-reduced", "--seed", "5", "--param", "VEC=4", kernels+"vadd.yaml", paramKernel(t))
	var r harness.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if r.Seed != 5 || len(r.Sizes) != 3 || r.Sizes[0].BaselineUS <= 0 || len(r.Sizes[0].SamplesUS) < 3 || !strings.Contains(strings.Join(r.Build.Command, " "), "-DVEC=4") {
		t.Errorf("report %+v", r)
	}
}

// paramKernel is a kernel with one parameter.
func paramKernel(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unrolled.c")
	text := `/* ridgepoint
launch:
  - kernel: vadd
    args: [a, b, c, n]
params:
  VEC: {values: [1, 2, 4]}
default: {VEC: 1}
*/
void vadd(const float *a, const float *b, float *c, int n) {
    int i = 0;
    for (; i + VEC <= n; i += VEC)
        for (int k = 0; k < VEC; k++) c[i + k] = a[i + k] + b[i + k];
    for (; i < n; i++) c[i] = a[i] + b[i];
}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBruteMeasuresInOneProcess wants a space's configurations on a card to be measured once each, side by side.
func TestBruteMeasuresInOneProcess(t *testing.T) {
	file := "../../configs/tasks/softmax_2d/naive.cu"
	if q, err := (evalCmd{Task: "softmax_2d", File: file, Stage: "search"}).request(); err != nil || q.Plan.Processes != evalProcesses {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, q, err := (bruteCmd{Task: "softmax_2d", Structure: file}).request(); err != nil || q.Plan.Processes != 0 {
		t.Errorf("%+v, %v", q, err)
	}
}
