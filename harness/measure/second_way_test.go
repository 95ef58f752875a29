package measure_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

// graphing is an engine whose benches time a graph of launches at a tenth less than single ones, and each step of a plan.
type graphing struct{ *verifytest.Engine }

func (e graphing) Open(ctx context.Context, m verify.Module) (verify.Program, error) {
	p, err := e.Engine.Open(ctx, m)
	return graphingProgram{p}, err
}

type graphingProgram struct{ verify.Program }

func (p graphingProgram) Bind(ctx context.Context, l *verify.Layout) (verify.Bench, error) {
	b, err := p.Program.Bind(ctx, l)
	return graphingBench{b, l}, err
}

type graphingBench struct {
	verify.Bench
	layout *verify.Layout
}

func (b graphingBench) Graph(_ context.Context, _ *verify.Set, launches int) (time.Duration, error) {
	return time.Duration(launches) * 90 * time.Nanosecond, nil
}

func (b graphingBench) Timeline(context.Context, *verify.Set, int) ([]harness.Step, error) {
	var out []harness.Step
	for i, l := range b.layout.Plan.Launches {
		out = append(out, harness.Step{Name: l.Kernel, MedianUS: float64(i + 1)})
	}
	return out, nil
}

// Short kernels are timed a second way outside the search, and both times are kept; plans of several launches get a timeline.
func TestSecondWayAndTimeline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		us       float64
		stage    harness.Stage
		launches int
		graphUS  float64
		timeline int
	}{
		{"short, first", 5, harness.StageFirst, 1, 4.5, 0}, {"short, confirm", 5, harness.StageConfirm, 2, 4.5, 2}, {"short, search", 5, harness.StageSearch, 2, 0, 0}, {"long", 12, harness.StageReplay, 2, 0, 2},
	} {
		e := &verifytest.Engine{Kernel: verifytest.Add, T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true},
			LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap { return lap(c.us, s) }}
		tk := verifytest.Task(t, verifytest.Text)
		candidate := verifytest.Candidate(t, tk)
		structure := *candidate.Structure
		for len(structure.Launches) < c.launches {
			structure.Launches = append(structure.Launches, structure.Launches[0])
		}
		candidate.Structure = &structure
		r, err := measure.Run(t.Context(), graphing{e}, measure.Order{Task: tk, Target: harness.TargetCPU, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: verify.Module{Candidate: candidate}},
			Stage: c.stage, Seed: 1, Pool: verifytest.Pool(), LimitFunc: func(harness.Size) time.Duration { return time.Second }})
		if err != nil || r.Stop != nil || len(r.Sizes) == 0 {
			t.Fatalf("%s: %+v, %v", c.name, r, err)
		}
		for _, s := range r.Sizes {
			if diff := cmp.Diff([]any{c.us, c.graphUS, c.timeline}, []any{s.MedianUS, s.GraphUS, len(s.Timeline)}); diff != "" {
				t.Errorf("%s at %s: %s", c.name, s.Size, diff)
			}
		}
	}
}
