package judge

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

// bout evaluates a kernel of the device in memory.
func bout(t *testing.T, e *verifytest.Engine, text string, plan harness.Plan, rivals ...string) *harness.Report {
	t.Helper()
	tk := verifytest.Task(t, text)
	c := verifytest.Candidate(t, tk)
	m := verify.Module{Build: &harness.Build{}, Candidate: c}
	b := Bout{Request: &harness.Request{Task: tk, Candidate: c, Plan: plan}, Engine: e, Module: m, Pool: verifytest.Pool()}
	for _, role := range rivals {
		b.Rivals = append(b.Rivals, measure.Contestant{Role: role, Module: m})
	}
	r, err := Evaluate(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every duty of the harness is there for a kernel that only it catches: with the duty the kernel is caught, and without it the
// kernel passes. So this test fails when a duty is dropped.
func TestEveryDutyIsNeeded(t *testing.T) {
	t.Parallel()
	add := verifytest.Add
	slow := func(c *verifytest.Call, shot verify.Shot) verify.Lap { // a clock that counts work done
		us := 100.0
		if c.State["hit"] == true {
			us = 10
		}
		return verify.Lap{Kernels: time.Duration(float64(max(1, shot.Repeats)) * us * 1000)}
	}
	for _, k := range []struct {
		duty, kind string
		kernel     func(c *verifytest.Call)
		late       func(c *verifytest.Call)
		lap        func(c *verifytest.Call, shot verify.Shot) verify.Lap
		text       func(text string) string // without the duty, where it is the task's
	}{
		{duty: verifytest.DutyPoison, kind: verify.KindUnwritten, kernel: func(c *verifytest.Call) { // writes only what differs from the last launch
			last, _ := c.State[c.Size.String()].([]float32)
			next := make([]float32, c.Elements[2])
			for i := range next {
				if next[i] = c.Get(0, int64(i)) + c.Get(1, int64(i)); last == nil || last[i] != next[i] {
					c.Set(2, int64(i), next[i])
				}
			}
			c.State[c.Size.String()] = next
		}},
		{duty: verifytest.DutyZones, kind: verify.KindRedZone, kernel: func(c *verifytest.Call) { add(c); c.Set(2, c.Elements[2], 1) }},
		{duty: verifytest.DutyInputs, kind: verify.KindInputsChanged, kernel: func(c *verifytest.Call) { add(c); c.Set(0, 7, 12345) }},
		{duty: verifytest.DutyProtect, kind: verify.KindInputsChanged, kernel: func(c *verifytest.Call) { c.State["touched"] = true; add(c) }},
		{duty: verifytest.DutyLate, kind: verify.KindLateWrite, kernel: func(c *verifytest.Call) {
			for i := range c.Elements[2] - 1 {
				c.Set(2, i, c.Get(0, i)+c.Get(1, i))
			}
		}, late: add},
		{duty: verifytest.DutyWhole, kind: verify.KindUnwritten, kernel: func(c *verifytest.Call) { // honest while it is looked at first
			if c.Count <= 2 || c.Elements[2] == 1 {
				add(c)
			}
		}},
		{duty: "hidden sizes", kind: verify.KindUnwritten, kernel: func(c *verifytest.Call) {
			if n := c.Elements[2]; n == 1000 || n == 2000 || n == 3000 {
				add(c)
			}
		}, text: func(s string) string { return strings.Replace(s, "vary: {n: [1, 2500]}", "vary: none", 1) }},
		{duty: "scaled inputs", kind: verify.KindNonFinite, kernel: func(c *verifytest.Call) {
			for i := range c.Elements[2] {
				v := c.Get(0, i) + c.Get(1, i)
				if v > 500 || v < -200 {
					v *= float32(math.Inf(1))
				}
				c.Set(2, i, v)
			}
		}, text: func(s string) string {
			return strings.Replace(s, "rtol: 1e-6}", "rtol: 1e-6, exclude_distributions: {times_100: test, plus_1000: test, spikes: test}}", 1)
		}},
		{duty: "unseen contents", kind: verify.KindCached, lap: slow, kernel: func(c *verifytest.Call) {
			key := string(c.Buffers[0][:4*c.Elements[0]])
			c.State["hit"] = c.State[key] != nil
			c.State[key] = true
			add(c)
		}},
		{duty: "clock", kind: verify.KindClock, kernel: add, lap: func(c *verifytest.Call, shot verify.Shot) verify.Lap {
			n := time.Duration(max(1, shot.Repeats))
			return verify.Lap{Kernels: n * 50 * time.Microsecond, Wall: n * 100 * time.Microsecond, Busy: n * 100 * time.Microsecond}
		}},
	} {
		t.Run(k.duty, func(t *testing.T) {
			t.Parallel()
			plan := harness.Plan{Stage: harness.StageSearch, Seed: 3}
			e := &verifytest.Engine{Kernel: k.kernel, LateFunc: k.late, LapFunc: k.lap}
			if r := bout(t, e, verifytest.Text, plan); r.Fault != harness.FaultIncorrect || r.Evidence.Kind != k.kind || r.Reason == "" {
				t.Errorf("judged %s (%s), evidence %+v, want incorrect by %s", r.Fault, r.Reason, r.Evidence, k.kind)
			}
			text := verifytest.Text
			e = &verifytest.Engine{Kernel: k.kernel, LateFunc: k.late, LapFunc: k.lap, Off: map[string]bool{k.duty: true}}
			switch {
			case k.text != nil:
				text = k.text(text)
			case k.kind == verify.KindCached: // without looking at new contents every launch looks alike
				e.LapFunc = nil
			case k.kind == verify.KindClock:
				e.LapFunc = func(_ *verifytest.Call, shot verify.Shot) verify.Lap {
					return verify.Lap{Kernels: time.Duration(max(1, shot.Repeats)) * 50 * time.Microsecond}
				}
			}
			if r := bout(t, e, text, plan); !r.Fault.Measured() {
				t.Errorf("without the duty judged %s (%s), evidence %+v; want it to pass, else another duty catches it", r.Fault, r.Reason, r.Evidence)
			}
		})
	}
}

// An honest kernel passes in every stage, with its times in the task's order.
func TestHonestKernelPasses(t *testing.T) {
	t.Parallel()
	for _, stage := range []harness.Stage{harness.StageSearch, harness.StageFirst, harness.StageConfirm, harness.StageReplay} {
		r := bout(t, &verifytest.Engine{Kernel: verifytest.Add}, verifytest.Text, harness.Plan{Stage: stage, Seed: 9}, "baseline")
		if r.Fault != harness.FaultNone || len(r.Sizes) != 3 || r.Numerical != harness.StatusPass {
			t.Fatalf("%s: judged %s (%s): %+v", stage, r.Fault, r.Reason, r)
		}
		for i, n := range []int64{1000, 3000, 2000} {
			s := r.Sizes[i]
			if got, _ := s.Size.Get("n"); got != n || s.MedianUS != 100 || s.BaselineUS != 100 || len(s.SamplesUS) != 20 || s.Warmups != 2 {
				t.Errorf("%s: size %d is %+v, want n=%d at 100 us with 20 samples", stage, i, s, n)
			}
		}
		if want := map[harness.Stage]int{harness.StageReplay: mostHidden}[stage]; len(r.Hidden) != want {
			t.Errorf("%s: %d hidden sizes were timed, want %d", stage, len(r.Hidden), want)
		}
		for _, h := range r.Hidden {
			if n, _ := h.Size.Get("n"); n == 1000 || n == 2000 || n == 3000 || h.MedianUS != 100 || h.BaselineUS != 100 {
				t.Errorf("%s: hidden size %+v, want an unscored one at 100 us", stage, h)
			}
		}
		if r.Errors == nil || r.Errors.Compared == 0 || r.Errors.MismatchRatio != 0 {
			t.Errorf("%s: errors %+v", stage, r.Errors)
		}
	}
}

// The order of one timed launch is DESIGN.md's, and the module that is timed was loaded after the one that was verified.
func TestOrderOfALaunch(t *testing.T) {
	t.Parallel()
	text := strings.Replace(verifytest.Text, "sizes: [{n: 1000}, {n: 3000}, {n: 2000}]", "sizes: [{n: 1000}]", 1)
	text = strings.Replace(text, "vary: {n: [1, 2500]}", "vary: none", 1)
	e := &verifytest.Engine{Kernel: verifytest.Add, T: verify.Traits{FlushPerLaunch: true}}
	bout(t, e, text, harness.Plan{Stage: harness.StageSearch, Seed: 1})
	second := slices.Index(e.Log[1:], "open") + 1
	if len(e.Opened) != 2 || !e.Opened[0].Verifying || e.Opened[1].Verifying || second < 2 {
		t.Fatalf("opened %+v: want one module to verify and a new one to time", e.Opened)
	}
	want := []string{"write", "poison", "flush", "launch", "breach", "compare whole=true"}
	if diff := cmp.Diff(want, e.Log[second+1:second+7]); diff != "" {
		t.Errorf("order of a timed launch (-want +got):\n%s", diff)
	}
	want[2] = "launch" // verification leaves the caches alone
	if diff := cmp.Diff([]string{"write", "poison", "launch", "breach", "compare whole=true"}, e.Log[1:6]); diff != "" {
		t.Errorf("order of a verified launch (-want +got):\n%s", diff)
	}
}

// Confirmation and replay draw fresh inputs and hidden sizes; the search draws from a few that are shared.
func TestSeeds(t *testing.T) {
	t.Parallel()
	tk := verifytest.Task(t, verifytest.Text)
	cases := func(stage harness.Stage, seed uint64) []verify.Case {
		return verify.Cases(tk, harness.TargetCPU, stage, seed, 1<<30)
	}
	for _, stage := range []harness.Stage{harness.StageConfirm, harness.StageReplay} {
		if cmp.Equal(cases(stage, 1), cases(stage, 2)) {
			t.Errorf("%s: two seeds give the same sets", stage)
		}
	}
	distinct := map[uint64]bool{}
	for seed := range uint64(100) {
		distinct[verify.SetSeed(harness.StageSearch, seed)] = true
	}
	if len(distinct) < 2 || len(distinct) > 8 {
		t.Errorf("100 searches draw from %d seeds, want a few", len(distinct))
	}
	if !cmp.Equal(cases(harness.StageReplay, 5), cases(harness.StageReplay, 5)) {
		t.Error("one seed gives two sets of cases")
	}
}
