package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/profile"
)

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeSizes prints one line per scored size: time, spread, samples, rate, speed-up, and what must be known of them.
func writeSizes(w *strings.Builder, r *harness.Report) {
	width := len("size")
	for _, s := range r.Sizes {
		width = max(width, len(s.Size.String()))
	}
	fmt.Fprintf(w, "\n%-*s %12s %7s %5s %10s %12s %8s\n", width, "size", "median us", "spread", "runs", "rate", "baseline us", "speed-up")
	var logs float64
	rated := 0
	for _, s := range r.Sizes {
		speedup := ""
		if s.BaselineUS > 0 && s.MedianUS > 0 {
			speedup = fmt.Sprintf("%.2fx", s.BaselineUS/s.MedianUS)
			if s.BaselineNoisy {
				speedup = "disturbed"
			} else {
				logs += math.Log(s.BaselineUS / s.MedianUS)
				rated++
			}
		}
		fmt.Fprintf(w, "%-*s %12.1f %6.1f%% %5d %10s %12s %8s%s\n", width, s.Size, s.MedianUS, 100*s.SpreadRatio, len(s.SamplesUS), rate(s), microseconds(s.BaselineUS), speedup, mark(s))
	}
	if rated > 0 {
		fmt.Fprintf(w, "%-*s %12s %7s %5s %10s %12s %7.2fx\n", width, "geometric mean", "", "", "", "", "", math.Exp(logs/float64(rated)))
	}
	e := r.Environment
	fmt.Fprintf(w, "%s, %d cores, %s, cold: %s, sandbox %s\n", e.Device, e.Cores, e.Toolchain, e.Flush, e.Sandbox)
	for _, reason := range e.Throttle {
		fmt.Fprintf(w, "not undisturbed: %s; expect runs to differ by more than their spread\n", reason)
	}
}

func microseconds(us float64) string {
	if us == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", us)
}

// rate is GFLOP/s where the task says how much work it is, else GB/s.
func rate(s harness.SizeTime) string {
	switch {
	case s.MedianUS <= 0:
		return ""
	case s.FLOPs > 0:
		return fmt.Sprintf("%.2f GF/s", s.FLOPs/s.MedianUS/1e3)
	case s.Bytes > 0:
		return fmt.Sprintf("%.2f GB/s", s.Bytes/s.MedianUS/1e3)
	default:
		return ""
	}
}

// mark says what a reader must not overlook.
func mark(s harness.SizeTime) string {
	var words []string
	if s.Noisy {
		words = append(words, "noisy")
	}
	if s.Dropped > 0 {
		words = append(words, fmt.Sprintf("%d dropped", s.Dropped))
	}
	if s.FloorUS > 0 && s.MedianUS < s.FloorUS {
		words = append(words, "below the physical floor")
	}
	if len(words) == 0 {
		return ""
	}
	return "  " + strings.Join(words, ", ")
}

// writeDetail prints what the feedback folds away.
func writeDetail(w *strings.Builder, r *harness.Report) {
	fmt.Fprintf(w, "\nFAULT : %s\n", r.Fault)
	if r.Reason != "" {
		fmt.Fprintf(w, "REASON : %s\n", r.Reason)
	}
	if e := r.Evidence; e != nil {
		fmt.Fprintf(w, "EVIDENCE : %s\n", evidenceLine(e))
	}
	for _, d := range r.Detail {
		fmt.Fprintf(w, "DETAIL : %s\n", d)
	}
	for _, d := range r.Profile {
		p := profile.Digest(d)
		fmt.Fprintf(w, "PROFILE : %s", p.Text())
	}
	for _, s := range r.Sizes {
		for i, step := range s.Timeline {
			fmt.Fprintf(w, "TIMELINE : %s, step %d of %d: %s %.1f us\n", s.Size, i+1, len(s.Timeline), step.Name, step.MedianUS)
		}
	}
	if b := r.Build; b != nil {
		fmt.Fprintf(w, "BUILD : %s, %d bytes, key %.12s, cached %t\n", strings.Join(b.Command, " "), b.SizeBytes, b.Key, b.Cached)
	}
	s := r.Split
	fmt.Fprintf(w, "SECONDS : total %.2f: compile %.2f, load %.2f, inputs and expected values %.2f, verify %.2f, measure %.2f, flush %.2f, waiting %.2f; kernels ran %.2f\n",
		s.Total, s.Compile, s.Load, s.Inputs, s.Verify, s.Measure, s.Flush, s.Queue, s.Device)
	fmt.Fprintf(w, "CANDIDATE : %s\nSEED : %d\n", r.CandidateID, r.Seed)
}

// evidenceLine says where a kernel went wrong.
func evidenceLine(e *harness.Evidence) string {
	parts := []string{e.Kind}
	if e.Size != nil {
		hidden := ""
		if e.Hidden {
			hidden = " (hidden)"
		}
		parts = append(parts, fmt.Sprintf("size %s%s", e.Size, hidden))
	}
	if e.Distribution != "" {
		parts = append(parts, fmt.Sprintf("input set %d (%s)", e.InputSet, e.Distribution))
	}
	if e.Tensor != "" {
		parts = append(parts, fmt.Sprintf("%s%v", e.Tensor, e.Index))
	}
	if e.Pattern != "" {
		parts = append(parts, fmt.Sprintf("got %v, want %v, pattern %s", float64(e.Got), float64(e.Want), e.Pattern))
	}
	if e.Signal != "" {
		parts = append(parts, e.Signal)
	}
	if e.Timed {
		parts = append(parts, fmt.Sprintf("timed launch %d", e.Launch))
	} else {
		parts = append(parts, "while verifying")
	}
	return strings.Join(parts, ", ")
}
