package judge

import (
	"math"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

// mutation is one line of DESIGN.md's verify and measure contract that is no single call of a bench: a kernel that only it
// catches, and the same harness without it.
type mutation struct {
	line   string // of DESIGN.md, section 6, in short
	engine func() *verifytest.Engine
	text   string
	plan   harness.Plan
	// caught says how the kernel must be found out; empty where it was not.
	caught func(r *harness.Report) string
	// without changes the engine, the text or the plan so that the line is dropped.
	without func(e *verifytest.Engine, text *string, plan *harness.Plan)
}

func kind(want string) func(*harness.Report) string {
	return func(r *harness.Report) string {
		if r.Fault == harness.FaultIncorrect && r.Evidence.Kind == want {
			return want
		}
		return ""
	}
}

func kernel(k func(c *verifytest.Call)) func() *verifytest.Engine {
	return func() *verifytest.Engine { return &verifytest.Engine{Kernel: k} }
}

func off(duty string) func(*verifytest.Engine, *string, *harness.Plan) {
	return func(e *verifytest.Engine, _ *string, _ *harness.Plan) { e.Off = map[string]bool{duty: true} }
}

func mutations(t *testing.T) []mutation {
	t.Helper()
	add, search := verifytest.Add, harness.Plan{Stage: harness.StageSearch, Seed: 3}
	remembered := map[string]bool{} // what a search shows of its inputs, learnt from it
	bout(t, &verifytest.Engine{Kernel: func(c *verifytest.Call) {
		remembered[string(c.Buffers[0][:4*c.Elements[0]])] = true
		add(c)
	}}, verifytest.Text, search)
	return []mutation{
		{line: "rewrite inputs in place", text: verifytest.Text, plan: search, caught: kind(verify.KindMismatch), without: off(verifytest.DutyWrite),
			engine: kernel(func(c *verifytest.Call) { // adds what b was when it first ran at a size
				key := "b" + c.Size.String()
				if c.State[key] == nil {
					c.State[key] = append([]byte(nil), c.Buffers[1][:4*c.Elements[1]]...)
				}
				now := append([]byte(nil), c.Buffers[1][:4*c.Elements[1]]...)
				copy(c.Buffers[1], c.State[key].([]byte))
				add(c)
				copy(c.Buffers[1], now)
			})},
		{line: "finite checks: compare as !(d <= tol)", text: verifytest.Text, plan: search, caught: kind(verify.KindNonFinite), without: off(verifytest.DutyFinite),
			engine: kernel(func(c *verifytest.Call) {
				add(c)
				c.Set(2, c.Elements[2]/3, float32(math.NaN()))
			})},
		{line: "projections with a calibrated bound where the output is large", text: verifytest.Text, plan: search, caught: kind(verify.KindProjection), without: off(verifytest.DutyProject),
			engine: func() *verifytest.Engine {
				e := &verifytest.Engine{T: verify.Traits{WholeCompareBytes: 1}}
				e.Kernel = func(c *verifytest.Call) {
					add(c)
					if len(e.Opened) == 2 && c.Count == 2 { // of the timed module: neither the first, the last nor the random launch
						c.Set(2, 5, c.Get(2, 5)+1)
					}
				}
				return e
			}},
		{line: "the module is reloaded between verify and measure", text: verifytest.Text, plan: search, caught: kind(verify.KindMismatch), without: off(verifytest.DutyReload),
			engine: kernel(func(c *verifytest.Call) { // is right as long as it remembers having been verified
				add(c)
				if n := c.Elements[2]; n != 1000 && n != 2000 && n != 3000 {
					c.State["hidden size seen"] = true
				}
				if c.Count > 20 && c.State["hidden size seen"] == nil {
					c.Set(2, 0, 1e9)
				}
			})},
		{line: "fresh seeds in confirmation and replay", text: verifytest.Text, plan: harness.Plan{Stage: harness.StageConfirm, Seed: 77}, caught: kind(verify.KindUnwritten),
			engine: kernel(func(c *verifytest.Call) { // knows the sets that the search draws from
				if remembered[string(c.Buffers[0][:4*c.Elements[0]])] {
					add(c)
				}
			}), without: func(_ *verifytest.Engine, _ *string, plan *harness.Plan) { *plan = search }},
		{line: "determinism where the task asks", text: strings.Replace(verifytest.Text, "rtol: 1e-6}", "rtol: 1e-6, deterministic: true}", 1), plan: search, caught: kind(verify.KindNotRepeatable),
			engine: kernel(func(c *verifytest.Call) { // right to a rounding, otherwise every time
				add(c)
				if c.Count%2 == 0 {
					c.Set(2, 0, math.Nextafter32(c.Get(2, 0), 1e9))
				}
			}), without: func(_ *verifytest.Engine, text *string, _ *harness.Plan) { *text = verifytest.Text }},
		{line: "at least 10 launches before the first kept one on cuda", text: verifytest.Text, plan: search,
			engine: func() *verifytest.Engine { // clocks rise for ten launches
				return &verifytest.Engine{Kernel: add, T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true}, LapFunc: func(c *verifytest.Call, _ verify.Shot) verify.Lap {
					if c.Count <= 10 {
						return verify.Lap{Kernels: 115 * time.Microsecond}
					}
					return verify.Lap{Kernels: 100 * time.Microsecond}
				}}
			},
			caught: func(r *harness.Report) string {
				for _, us := range r.Sizes[0].SamplesUS {
					if us != 100 {
						return ""
					}
				}
				return "the cold launches were left out"
			},
			without: func(e *verifytest.Engine, _ *string, _ *harness.Plan) { e.T.Target = harness.TargetCPU }},
		{line: "a runtime below 0.9 x the floor is quarantined", text: verifytest.Text, plan: search,
			engine: func() *verifytest.Engine {
				return &verifytest.Engine{Kernel: add, T: verify.Traits{BytesPerSecond: 1e8}, LapFunc: func(*verifytest.Call, verify.Shot) verify.Lap { return verify.Lap{Kernels: 50 * time.Microsecond} }}
			},
			caught: func(r *harness.Report) string {
				if r.Fault.Measured() && r.Sizes[0].MedianUS < r.Sizes[0].FloorUS && strings.Contains(strings.Join(r.Detail, "\n"), "quarantined") {
					return "below the floor"
				}
				return ""
			},
			without: func(e *verifytest.Engine, _ *string, _ *harness.Plan) { e.T.BytesPerSecond = 0 }},
	}
}

// Every line of the contract is there for a kernel that only it catches. With TestEveryDutyIsNeeded, TestOrderOfALaunch and
// harness/gpu's TestScribbleIsNeeded this is the mutation table of DESIGN.md's section 6.
func TestEveryLineIsNeeded(t *testing.T) {
	for _, m := range mutations(t) {
		t.Run(m.line, func(t *testing.T) {
			e, text, plan := m.engine(), m.text, m.plan
			if r := bout(t, e, text, plan); m.caught(r) == "" {
				t.Errorf("with the line: judged %s (%s), evidence %+v, detail %q", r.Fault, r.Reason, r.Evidence, r.Detail)
			}
			e = m.engine()
			m.without(e, &text, &plan)
			if r := bout(t, e, text, plan); !r.Fault.Measured() || m.caught(r) != "" {
				t.Errorf("without the line: judged %s (%s), evidence %+v; want it to pass unseen, else another line catches it", r.Fault, r.Reason, r.Evidence)
			}
		})
	}
}
