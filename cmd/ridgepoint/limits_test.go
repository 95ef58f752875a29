package main

import (
	"reflect"
	"strings"
	"testing"

	"ridgepoint/scheduler"
	permits "ridgepoint/workers/limits"
)

func TestLimitsFor(t *testing.T) {
	t.Parallel()
	campaigns := []*scheduler.Campaign{
		{Settings: scheduler.Settings{Limits: map[string]scheduler.Limit{"gpu": {Permits: 3}, "compile": {Permits: 4, Rate: 10, Burst: 20}}}},
		{Settings: scheduler.Settings{Limits: map[string]scheduler.Limit{"gpu": {Permits: 2, Rate: 5, Burst: 1}, "compile": {Permits: 8}}}},
		{},
	}
	type rates = map[string]permits.Rate
	for flag, want := range map[string]fleetLimits{
		"":                 {map[string]int{"gpu": 2, "compile": 4}, rates{"gpu": {PerSecond: 5, Burst: 1}, "compile": {PerSecond: 10, Burst: 20}}},
		"gpu=0":            {map[string]int{"gpu": 0, "compile": 4}, rates{"gpu": {PerSecond: 5, Burst: 1}, "compile": {PerSecond: 10, Burst: 20}}},
		"compile=1@0":      {map[string]int{"gpu": 2, "compile": 1}, rates{"gpu": {PerSecond: 5, Burst: 1}, "compile": {}}},
		"gpu=@0.5/3":       {map[string]int{"gpu": 2, "compile": 4}, rates{"gpu": {PerSecond: 0.5, Burst: 3}, "compile": {PerSecond: 10, Burst: 20}}},
		"gpu=9,compile=@7": {map[string]int{"gpu": 9, "compile": 4}, rates{"gpu": {PerSecond: 5, Burst: 1}, "compile": {PerSecond: 7, Burst: 1}}},
	} {
		if got, err := limitsFor(campaigns, flag); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v %v; want %+v", flag, got, err, want)
		}
	}
	for _, flag := range []string{"gpu", "gpu=", "gpu=-1", "gpu=two", "cpu=2", "gpu=2@", "gpu=2@-1", "gpu=2@1/0", "gpu=2@NaN", "gpu=2@1/x", "gpu=2;compile=4"} {
		if _, err := limitsFor(nil, flag); err == nil || !strings.Contains(err.Error(), "compile=4@10/20") {
			t.Errorf("%q: %v; want an error that says how to write it", flag, err)
		}
	}
}

func TestFleetShowsLimits(t *testing.T) {
	t.Parallel()
	v := &fleetView{Limits: []permits.Usage{{Class: "compile", Permits: 4, Holders: 1, Waiting: 2, Rate: 10, Burst: 20, Tokens: -3}, {Class: "gpu", Rate: 0.5, Burst: 1, Tokens: 1}}}
	var out strings.Builder
	if err := v.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"compile 4 1 2 10 20 -3.0", "gpu - 0 0 0.5 1 1.0"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("fleet prints\n%s\nwant %q", out.String(), want)
		}
	}
}

func TestSchedulerWeight(t *testing.T) {
	t.Parallel()
	for _, weight := range []string{"0", "-1", "NaN", "1e300"} {
		var out, errs strings.Builder
		code := run(t.Context(), environment{args: []string{"scheduler", "--weight=" + weight, "--redis", "127.0.0.1:1"}, getenv: func(string) string { return "" }, stdout: &out, stderr: &errs})
		if code != exitUsage || !strings.Contains(errs.String(), "--weight") {
			t.Errorf("--weight %s: %d %s; want it refused", weight, code, errs.String())
		}
	}
}
