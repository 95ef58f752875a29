package judge_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/judge"
)

// TestPool pools three processes, one of which is slow throughout and one noisy at the second size. Two of them timed graphs, two were
// throttled, and each measured other peaks.
func TestPool(t *testing.T) {
	report := func(offset float64, compared int64, maxAbs harness.Number) *harness.Report {
		r := &harness.Report{Errors: &harness.Errors{MaxAbs: maxAbs, MeanAbs: maxAbs / 2, Compared: compared}, Detail: []string{"same"}}
		for _, base := range []float64{4, 40} {
			s := harness.SizeTime{BaselineUS: 2*base + offset, GraphUS: base / 2, Dropped: 1, ClockMHz: [2]int{1900 + int(100*offset), 1980}}
			for k := range 10 {
				s.SamplesUS = append(s.SamplesUS, base+offset+0.01*float64(k))
			}
			s.MedianUS = base + offset + 0.045
			r.Sizes = append(r.Sizes, s)
		}
		r.Split = harness.Split{Queue: 1, Verify: 2, Measure: 3, Device: 4, Total: 5}
		return r
	}
	task := &harness.Task{}
	task.Eval.Protocol.Statistic = "median"
	three := []*harness.Report{report(0, 100, 1e-6), report(0.3, 100, 4e-6), report(0.1, 200, 1e-6)}
	three[1].Fault, three[1].Reason, three[1].Sizes[1].Noisy = harness.FaultNoisy, "noise", true
	three[2].Detail = []string{"same", "other"}
	three[1].Sizes[1].BaselineNoisy = true
	three[0].Sizes[1].ClockMHz, three[1].Sizes[1].ClockMHz, three[2].Sizes[1].ClockMHz = [2]int{}, [2]int{1850, 1950}, [2]int{1800, 2000}
	three[2].Finished = three[0].Finished.Add(time.Minute)
	three[0].Sizes[0].GraphUS, three[2].Sizes[0].GraphUS = 0, 3
	for i, floor := range []float64{0.9, 0.8, 0.85} {
		three[i].Sizes[0].FloorUS = floor
		three[i].Hidden = []harness.SizeTime{{MedianUS: float64(5 + i), SamplesUS: []float64{float64(5 + i)}}}
	}
	three[1].Environment = harness.Environment{Throttle: []string{"sw_power"}, ClocksMHz: map[string][2]int{"sm": {1500, 1900}}}
	three[2].Environment = harness.Environment{Throttle: []string{"hw_thermal", "sw_power"}, ClocksMHz: map[string][2]int{"sm": {1600, 1980}}}
	three[0].Detail = append(three[0].Detail, ": 10 samples kept, 1 dropped for steal time or involuntary switches, spread 0 %")
	r := judge.Pool(task, three)
	for i, base := range []float64{4, 40} {
		s := r.Sizes[i]
		if len(s.SamplesUS) != 30 || math.Abs(s.MedianUS-base-0.145) > 0.02 || math.Abs(s.BaselineUS-2*base-0.1) > 1e-9 || s.Dropped != 3 || s.ClockMHz != [][2]int{{1900, 1980}, {1800, 2000}}[i] || s.GraphUS != []float64{2.5, 20}[i] || s.FloorUS != []float64{0.8, 0}[i] {
			t.Errorf("size %d: %+v", i, s)
		}
		if want := (base + 0.36 - base - 0.03) / s.MedianUS; math.Abs(s.SpreadRatio-want) > 0.01 {
			t.Errorf("size %d: spread %g, want about %g", i, s.SpreadRatio, want)
		}
		if s.Noisy != (i == 1) || s.BaselineNoisy != s.Noisy {
			t.Errorf("size %d: noisy %t", i, s.Noisy)
		}
	}
	if len(r.Hidden) != 1 || len(r.Hidden[0].SamplesUS) != 3 || r.Hidden[0].MedianUS != 6 {
		t.Errorf("hidden %+v", r.Hidden)
	}
	if e := r.Environment; len(e.Throttle) != 2 || e.ClocksMHz["sm"] != [2]int{1500, 1980} {
		t.Errorf("%+v", e)
	}
	if r.Fault != harness.FaultNoisy || !r.Finished.Equal(three[2].Finished) || r.Reason != "noise" || len(r.Detail) != 4 || r.Detail[0] != "same" || r.Detail[1] != "other" || !strings.Contains(r.Detail[2], "30 samples kept, 3 dropped") {
		t.Errorf("%v %q %q", r.Fault, r.Reason, r.Detail)
	}
	if e := r.Errors; e.Compared != 400 || e.MaxAbs != 4e-6 || math.Abs(float64(e.MeanAbs)-(1e-6*100/2+4e-6*100/2+1e-6*200/2)/400) > 1e-12 {
		t.Errorf("%+v", e)
	}
	if r.Split.Total != 15 || r.Split.Queue != 3 || r.Split.Verify != 6 || r.Split.Measure != 9 || r.Split.Device != 12 {
		t.Errorf("%+v", r.Split)
	}
	one := report(0, 1, 0)
	if got := judge.Pool(task, []*harness.Report{one}); got != one || len(got.Sizes[0].SamplesUS) != 10 {
		t.Error("one report is itself")
	}
}
