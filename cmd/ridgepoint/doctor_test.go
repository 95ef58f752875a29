package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ridgepoint/harness/gpu"
	"ridgepoint/harness/runner"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain/nvrtc"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || runner.Main(os.Args[1:]) || nvrtc.Main(os.Args[1:]) || gpu.Main(os.Args[1:]) {
		return
	}
	if os.Getenv(asProcess) != "" {
		processMain() // this process is to be a ridgepoint of its own
	}
	os.Exit(m.Run())
}

func TestDoctorNamesARemedyForWhatIsMissing(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), environment{args: []string{"doctor", "--json"}, getenv: os.Getenv, stdout: &stdout, stderr: &stderr})
	if code != exitOK && code != exitInfra {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	seen := map[string]bool{}
	for line := range strings.Lines(stdout.String()) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		seen[f.What] = true
		if f.Detail == "" {
			t.Errorf("%s has no detail", f.What)
		}
		if !f.Found && f.Remedy == "" {
			t.Errorf("%s is missing and has no remedy", f.What)
		}
	}
	for _, what := range []string{whatCC, whatGPU, "sandbox", "NVRTC", "redis-server", "ncu"} {
		if !seen[what] {
			t.Errorf("doctor does not speak of %s", what)
		}
	}
}
