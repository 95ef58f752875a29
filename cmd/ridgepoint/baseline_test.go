package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/baselines"
)

// TestBaselineTable prints the textbook baseline's times with external ones beside them, and says which were disturbed.
func TestBaselineTable(t *testing.T) {
	t.Parallel()
	one, two := harness.Size{{Name: "n", Value: 1}}, harness.Size{{Name: "n", Value: 2}}
	e := &baselines.Entry{Key: baselines.Key{Task: "sum", Device: "H200"}, Textbook: baselines.Measured{Times: []baselines.Time{{Size: one, MedianUS: 3.25}}},
		External: map[string]baselines.Measured{"python3 torch.py": {Times: []baselines.Time{{Size: one, MedianUS: 7}, {Size: two, MedianUS: 8.5}}}}}
	var out strings.Builder
	if err := writeBaselines(&out, e, []harness.Size{one, two}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"baselines of sum on H200 (no driver)", "n=1                                 3.2          7.0", "n=2                                              8.5", "external 1: python3 torch.py", "disturbed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// TestBaselineRefusesWhatItCannotMeasure wants the exit code to tell whose fault it is.
func TestBaselineRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"baseline", "no_such_task"}, exitUsage}, {[]string{"baseline", "vector_add", "--target", "tpu"}, exitUsage}} {
		var out, errs strings.Builder
		code := run(t.Context(), environment{args: c.args, stdout: &out, stderr: &errs, stdin: strings.NewReader(""), getenv: func(name string) string {
			if name == "RIDGEPOINT_CACHE" {
				return filepath.Join(os.TempDir(), "ridgepoint-test")
			}
			return os.Getenv(name)
		}})
		if code != c.want {
			t.Errorf("%v: exit %d, want %d: %s", c.args, code, c.want, errs.String())
		}
	}
}
