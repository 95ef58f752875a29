// Package feedback turns a report into the words that authors of kernels read, people and models alike: structured_v1 of
// DESIGN.md, section 6, or plain prose; and the diagnoses behind it, each with the direction of a change. It reads reports and
// measures nothing.
package feedback

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ridgepoint/harness"
)

// maxMinor is how many minor problems stand beside the main one.
const maxMinor = 2

// Fill sets the report's Warnings to the main problem and at most two minor ones of the stage that failed, else of
// performance, and moves what does not fit to the front of Detail. Warnings that are there already (the rules' findings) take
// part. Filling a report again changes nothing.
func Fill(t *harness.Task, r *harness.Report) {
	list := diagnose(t, r)
	if len(list) > 1+maxMinor {
		var folded []string
		for _, d := range list[1+maxMinor:] {
			folded = append(folded, sentence(d))
		}
		r.Detail = append(missing(folded, r.Detail), r.Detail...)
		list = list[:1+maxMinor]
	}
	r.Warnings = list
}

func missing(lines, have []string) []string {
	var out []string
	for _, l := range lines {
		known := false
		for _, h := range have {
			known = known || h == l
		}
		if !known {
			out = append(out, l)
		}
	}
	return out
}

// Text returns the feedback in the task's schema, ending in a line end. iteration counts an author's attempts from 1.
func Text(t *harness.Task, r *harness.Report, iteration int) string {
	list := r.Warnings
	if all := diagnose(t, r); len(list) == 0 || list[0] != all[0] { // not filled yet
		list = all[:min(len(all), 1+maxMinor)]
	}
	if t.Agent.FeedbackSchema == "plain" {
		return plain(t, r, list, iteration)
	}
	return structured(t, r, list, iteration)
}

// structured is structured_v1: exactly these keys, in this order; once a stage fails the values of later ones are empty.
func structured(t *harness.Task, r *harness.Report, list []harness.Diagnosis, iteration int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ITERATION %d / TASK %s\n", iteration, t.Name)
	var maxAbs, meanAbs, mismatch, gflops, base, speedup string
	if e := r.Errors; e != nil && r.Numerical != harness.StatusNone {
		maxAbs, meanAbs, mismatch = scientific(float64(e.MaxAbs)), scientific(float64(e.MeanAbs)), share(e.MismatchRatio)
	}
	if r.Fault.Measured() {
		s := Summarise(r)
		gflops, base, speedup = positive(s.GFLOPS), positive(s.BaselineGFLOPS), positive(s.Speedup)
	}
	var words []string
	for _, d := range list {
		words = append(words, sentence(d))
	}
	for _, row := range []struct{ key, value string }{
		{"COMPILE_STATUS", string(r.Compile)}, {"RUNTIME_STATUS", string(r.Runtime)}, {"NUMERICAL_STATUS", string(r.Numerical)}, {"MAX_ABS_ERROR", maxAbs},
		{"MEAN_ABS_ERROR", meanAbs}, {"MISMATCH_RATIO", mismatch}, {"GFLOPS", gflops}, {"BASELINE_GFLOPS", base}, {"SPEEDUP", speedup}, {"WARNINGS", quoted(words)},
	} {
		b.WriteString(strings.TrimRight(row.key+" : "+row.value, " ") + "\n")
	}
	return b.String()
}

// Summary is a measured report in three numbers, each a geometric mean over the scored sizes; 0 where it is not known.
type Summary struct {
	GFLOPS, BaselineGFLOPS, Speedup float64
}

// Summarise sums a measured report up. A size without work or without a baseline leaves the number that needs it unknown. Sizes at
// which the baseline was disturbed say nothing of the speed-up and are left out of it and of the baseline's rate; without any
// other both are unknown.
func Summarise(r *harness.Report) Summary {
	var rate, base, speedup geometric
	for _, s := range r.Sizes {
		rate.add(s.FLOPs, s.MedianUS*1e3)
		if s.BaselineNoisy {
			continue
		}
		base.add(s.FLOPs, s.BaselineUS*1e3)
		speedup.add(s.BaselineUS, s.MedianUS)
	}
	return Summary{rate.mean(), base.mean(), speedup.mean()}
}

// geometric is a geometric mean of quotients.
type geometric struct {
	logs    float64
	n       int
	unknown bool
}

func (g *geometric) add(over, under float64) {
	if over <= 0 || under <= 0 {
		g.unknown = true
		return
	}
	g.logs += math.Log(over / under)
	g.n++
}

func (g *geometric) mean() float64 {
	if g.unknown || g.n == 0 {
		return 0
	}
	return math.Exp(g.logs / float64(g.n))
}

// scientific writes 2.3e-3: two figures, the exponent without padding.
func scientific(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 1, 64), "e")
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return mantissa + "e" + exponent
	}
	return fmt.Sprintf("%se%d", mantissa, n)
}

func share(v float64) string {
	if v > 0 && v < 0.001 {
		return scientific(v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// sentence is a diagnosis in one line: what is wrong, where, and which way to go.
func sentence(d harness.Diagnosis) string {
	s := d.Code + ": " + d.Problem
	if d.Evidence != "" {
		s += " (" + d.Evidence + ")"
	}
	return s + "; " + d.Direction
}

// quoted writes a list of strings as JSON does, without its escapes for web pages.
func quoted(words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(w); err != nil {
			panic(fmt.Sprintf("feedback: a string cannot be written as JSON: %v", err)) // it always can
		}
		parts[i] = strings.TrimSuffix(b.String(), "\n")
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// plain is the same in prose: what plain-text feedback gave authors in the experiments that structured_v1 comes from.
func plain(t *harness.Task, r *harness.Report, list []harness.Diagnosis, iteration int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Attempt %d at %s: ", iteration, t.Name)
	if r.Fault.Measured() {
		s := Summarise(r)
		b.WriteString("the kernel is correct")
		if s.Speedup > 0 {
			fmt.Fprintf(&b, " and runs at %.2f times the baseline's speed", s.Speedup)
		}
		b.WriteString(".")
	} else {
		fmt.Fprintf(&b, "the kernel failed (%s): %s.", r.Fault, strings.TrimSuffix(r.Reason, "."))
	}
	for _, d := range list {
		fmt.Fprintf(&b, " %s. %s.", capital(d.Problem), capital(d.Direction))
	}
	b.WriteString("\n")
	return b.String()
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
