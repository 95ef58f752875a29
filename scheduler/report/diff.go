package report

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"ridgepoint/harness"
)

// Difference compares two records: what they were made of and measured with, and their times.
type Difference struct {
	Changed   []Change   `json:"changed"`
	Sizes     []SizeDiff `json:"sizes"`
	GeoMean   float64    `json:"geo_mean_ratio"` // second over first, over the sizes that both have
	Regressed bool       `json:"regressed"`      // some size is slower beyond its noise
}

// Change is a field that differs.
type Change struct {
	Field  string `json:"field"`
	First  string `json:"first"`
	Second string `json:"second"`
}

// SizeDiff compares one size. Ratio is second over first; Noise is the relative difference that repeats of these samples
// would show (99 %).
type SizeDiff struct {
	Size     harness.Size `json:"size"`
	FirstUS  float64      `json:"first_us"`
	SecondUS float64      `json:"second_us"`
	Ratio    float64      `json:"ratio"`
	Noise    float64      `json:"noise"`
	Verdict  string       `json:"verdict"` // same, slower or faster
}

// sameFloor is the relative difference below which two medians of different processes are not told apart, whatever their
// samples say: about what the A/A runs of quiet machines show.
const sameFloor = 0.02

// Diff compares two records.
func Diff(a, b *harness.Record) *Difference {
	d := &Difference{Changed: []Change{}, Sizes: []SizeDiff{}}
	d.field("candidate", a.CandidateID, b.CandidateID)
	d.field("structure", a.Structure, b.Structure)
	d.field("structure_sha256", a.StructureSHA, b.StructureSHA)
	d.field("kernel_sha256", a.KernelSHA, b.KernelSHA)
	d.field("configuration", Config(a.Config), Config(b.Config))
	d.field("options", fmt.Sprintf("%+v", a.Options), fmt.Sprintf("%+v", b.Options))
	d.field("task_digest", a.Report.TaskDigest, b.Report.TaskDigest)
	d.field("stage", string(a.Report.Stage), string(b.Report.Stage))
	d.field("fault", a.Report.Fault.String(), b.Report.Fault.String())
	d.environment(reflect.ValueOf(a.Report.Environment), reflect.ValueOf(b.Report.Environment))
	var logs float64
	for i := range a.Report.Sizes {
		for j := range b.Report.Sizes {
			if a.Report.Sizes[i].Size.Equal(b.Report.Sizes[j].Size) {
				s := sizeDiff(&a.Report.Sizes[i], &b.Report.Sizes[j])
				d.Sizes = append(d.Sizes, s)
				d.Regressed = d.Regressed || s.Verdict == "slower"
				logs += math.Log(s.Ratio)
			}
		}
	}
	if n := len(d.Sizes); n > 0 {
		d.GeoMean = math.Exp(logs / float64(n))
	}
	if a.Report.Fault.Measured() && !b.Report.Fault.Measured() {
		d.Regressed = true
	}
	return d
}

func (d *Difference) field(name, first, second string) {
	if first != second {
		d.Changed = append(d.Changed, Change{name, first, second})
	}
}

// environment compares every field of an Environment, by its JSON name.
func (d *Difference) environment(a, b reflect.Value) {
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		d.field("environment."+name, fmt.Sprint(a.Field(i).Interface()), fmt.Sprint(b.Field(i).Interface()))
	}
}

func sizeDiff(a, b *harness.SizeTime) SizeDiff {
	s := SizeDiff{Size: a.Size, FirstUS: a.MedianUS, SecondUS: b.MedianUS, Ratio: b.MedianUS / a.MedianUS, Verdict: "same"}
	s.Noise = max(sameFloor, 2.58*math.Hypot(medianError(a), medianError(b)))
	switch {
	case s.Ratio > 1+s.Noise:
		s.Verdict = "slower"
	case s.Ratio < 1/(1+s.Noise):
		s.Verdict = "faster"
	}
	return s
}

// medianError is the relative standard error of a median, from the spread p10 to p90 (2.56 deviations of a normal).
func medianError(s *harness.SizeTime) float64 {
	n := len(s.SamplesUS)
	if n == 0 {
		return 0
	}
	return 1.25 * s.SpreadRatio / 2.56 / math.Sqrt(float64(n))
}
