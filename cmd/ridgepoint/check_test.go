package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"ridgepoint/harness/check"
	"ridgepoint/harness/toolchain/cc"
)

// lint runs a command over a task of one size whose reference and kernel body are given.
func lint(t *testing.T, reference, body string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if _, err := cc.Find(t.Context(), "", cc.Config{}); errors.Is(err, cc.ErrNoCompiler) {
		t.Skip("no C compiler: install gcc (`ridgepoint doctor` prints the command)")
	}
	dir := t.TempDir()
	text := strings.Replace(goodTask, "torch.softmax(input, dim=-1)", reference, 1)
	text = strings.Replace(text, "rows: 8, cols: 4", "rows: 512, cols: 512", 1) + "eval: {atol: 1e-6, rtol: 1e-6}\n"
	write(t, dir, "naive.c", "void k(const float *in, float *out, int rows, int cols) {\n  for (long i = 0; i < (long)rows * cols; i++) "+body+"\n}\n")
	file := write(t, dir, "task.yaml", text)
	cache, tmp := t.TempDir(), t.TempDir()
	getenv := func(key string) string {
		switch key {
		case "RIDGEPOINT_CACHE":
			return cache
		case "TMPDIR": // a lock of its own: what is timed here matters to no one
			return tmp
		}
		return os.Getenv(key)
	}
	var out, errs bytes.Buffer
	args = append(args[:1:1], append([]string{file, "--allow-reduced"}, args[1:]...)...)
	code = run(t.Context(), environment{args: args, getenv: getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func TestCheckCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	code, stdout, stderr := lint(t, "input * 0", "out[i] = 0;", "check", "--json")
	if code != exitVerdict || !strings.Contains(stderr, "does not pass its check") {
		t.Errorf("exit code %d, want %d: %s", code, exitVerdict, stderr)
	}
	failed := map[string]bool{}
	for line := range strings.Lines(stdout) {
		var f check.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		failed[f.Check] = failed[f.Check] || f.Verdict == check.Fail
	}
	if !failed["nulls"] || !failed["inputs"] || failed["baseline"] {
		t.Errorf("failed: %v; want nulls and inputs, not the baseline\n%s", failed, stdout)
	}
}

func TestCalibrateCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	code, stdout, stderr := lint(t, "input * 3", "out[i] = in[i] * 3.0003f;", "calibrate")
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"errors of baseline (cpu, x86-64)", "written   eval: {atol: 1e-06, rtol: 1e-06}", "proposed  eval: {atol: ", "rows=512,cols=512", "may refuse this kernel", "let no null answer pass"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing from\n%s", want, stdout)
		}
	}
}
