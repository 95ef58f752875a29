package main

import (
	"fmt"
	"strings"

	"ridgepoint/harness"
)

// feedbackText is structured_v1 (DESIGN.md, section 6) of the first iteration.
func feedbackText(t *harness.Task, r *harness.Report) string {
	var maxAbs, meanAbs, ratio, warning string
	if e := r.Errors; e != nil && r.Numerical != harness.StatusNone {
		maxAbs, meanAbs, ratio = fmt.Sprintf("%.2g", float64(e.MaxAbs)), fmt.Sprintf("%.2g", float64(e.MeanAbs)), fmt.Sprintf("%.2g", e.MismatchRatio)
	}
	if r.Reason != "" {
		warning = r.Reason
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ITERATION 1 / TASK %s\n", t.Name)
	for _, line := range [][2]string{
		{"COMPILE_STATUS", string(r.Compile)}, {"RUNTIME_STATUS", string(r.Runtime)}, {"NUMERICAL_STATUS", string(r.Numerical)},
		{"MAX_ABS_ERROR", maxAbs}, {"MEAN_ABS_ERROR", meanAbs}, {"MISMATCH_RATIO", ratio}, {"WARNINGS", "[" + warning + "]"},
	} {
		b.WriteString(strings.TrimRight(line[0]+" : "+line[1], " ") + "\n")
	}
	return b.String()
}
