package measure_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/harness"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

// lap makes a lap of us microseconds a launch.
func lap(us float64, shot verify.Shot) verify.Lap {
	return verify.Lap{Kernels: time.Duration(us * float64(max(1, shot.Repeats)) * 1000)}
}

func run(t *testing.T, e *verifytest.Engine, change func(o *measure.Order)) *measure.Result {
	t.Helper()
	tk := verifytest.Task(t, verifytest.Text)
	o := measure.Order{Task: tk, Target: harness.TargetCPU, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: verify.Module{Candidate: verifytest.Candidate(t, tk)}},
		Stage: harness.StageSearch, Seed: 1, Pool: verifytest.Pool(), LimitFunc: func(harness.Size) time.Duration { return time.Second }}
	if change != nil {
		change(&o)
	}
	r, err := measure.Run(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rivals(o *measure.Order, roles ...string) {
	for _, role := range roles {
		o.Rivals = append(o.Rivals, measure.Contestant{Role: role, Module: o.Candidate.Module})
	}
}

// On the cpu a size gets 3 to 20 runs within 40 ms.
func TestRunsGoByTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		us   float64
		runs int
	}{{10, 20}, {4_000, 10}, {9_000, 4}, {30_000, 3}, {500_000, 3}} {
		e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap { return lap(c.us, s) }}
		r := run(t, e, nil)
		for _, s := range r.Sizes {
			if len(s.SamplesUS) != c.runs || s.MedianUS != c.us || s.Noisy || s.FLOPs == 0 || s.Bytes == 0 {
				t.Errorf("at %v us: %+v, want %d runs", c.us, s, c.runs)
			}
		}
	}
}

// GPUs get the task's own counts, and never fewer than ten launches before the first kept one.
func TestGPUCounts(t *testing.T) {
	t.Parallel()
	e := &verifytest.Engine{Kernel: verifytest.Add, T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true}}
	tk := verifytest.Task(t, verifytest.Text)
	m := measure.TimingFor(tk, e.Traits())
	if m.Warmups < 10 || m.MaxRuns != tk.Eval.TimedIters || m.MinRuns != m.MaxRuns || !m.Flush {
		t.Errorf("timing %+v for warm-ups %d and runs %d", m, tk.Eval.WarmupIters, tk.Eval.TimedIters)
	}
	board := *tk
	board.Eval.WarmupIters, board.Eval.Protocol = 1, harness.Protocol{Runs: 10, Discard: 2, Statistic: "mean", NoFlush: true}
	if m = measure.TimingFor(&board, e.Traits()); m.Warmups != 12 || m.MinRuns != 10 || m.MaxRuns != 10 || m.Statistic != "mean" || m.Flush {
		t.Errorf("a board's timing is %+v", m)
	}
}

// Samples with steal time or switches are dropped and taken again; where none is clean, the least spoiled are kept and said so.
func TestSpoiledSamplesAreRetaken(t *testing.T) {
	t.Parallel()
	e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(c *verifytest.Call, s verify.Shot) verify.Lap {
		l := lap(100, s)
		if c.Count%3 == 0 && s.Repeats == 0 {
			l.Kernels, l.Switches, l.Waited, l.Steal = 5*l.Kernels, int64(c.Count%2), l.Kernels, c.Count%2 == 0
		}
		return l
	}}
	r := run(t, e, nil)
	for _, s := range r.Sizes {
		if s.MedianUS != 100 || slices.Max(s.SamplesUS) != 100 || s.Dropped == 0 || s.Noisy || len(s.SamplesUS) != 20 {
			t.Errorf("%+v: want 20 clean samples and some dropped", s)
		}
	}
	e.LapFunc = func(c *verifytest.Call, s verify.Shot) verify.Lap {
		if l := lap(100+30*float64(c.Count/7%3), s); c.Count%7 == 0 {
			l.Switches, l.Waited = 1, verify.Unknown
			return l
		}
		l := lap(900, s)
		l.Switches, l.Waited = 5, l.Kernels/50
		return l
	}
	r = run(t, e, nil)
	if len(r.Sizes) != 3 || len(r.Sizes[0].SamplesUS) < 3 || !r.Noisy || slices.Max(r.Sizes[0].SamplesUS) > 160 {
		t.Errorf("%+v: want at least three samples, those with the fewest switches, and noisy", r.Sizes)
	}
}

// A switch that made the candidate wait for less than a hundredth of its time spoils nothing, nor do waits for its own threads.
func TestHarmlessWaitsAreKept(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(l *verify.Lap){
		"short": func(l *verify.Lap) { l.Waited = l.Kernels / 110 },
		"own":   func(l *verify.Lap) { l.Waited, l.Busy = 3*l.Kernels, l.Kernels },
	} {
		e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap {
			l := lap(100, s)
			l.Switches = 2
			spoil(&l)
			return l
		}}
		for _, s := range run(t, e, nil).Sizes {
			if s.Dropped != 0 || s.Noisy || len(s.SamplesUS) != 20 {
				t.Errorf("%s: %+v: want 20 samples and none dropped", name, s)
			}
		}
	}
}

// A wide spread is taken again twice and marked when it stays.
func TestNoiseIsMarked(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap { return lap(100*(1+rng.Float64()), s) }}
	r := run(t, e, nil)
	if !r.Noisy || !r.Sizes[0].Noisy || r.Sizes[0].SpreadRatio < 0.2 {
		t.Errorf("not marked noisy: %+v", r.Sizes[0])
	}
	launches := 0
	for _, op := range e.Log {
		if op == "launch" {
			launches++
		}
	}
	if least := 3 * 3 * 22; launches < least { // sizes, sample sets, warm-ups and runs
		t.Errorf("%d launches, want at least %d: two more sample sets a size", launches, least)
	}
}

// Racing goes from the least work to the most, stops early and says how far it got.
func TestRacingCensors(t *testing.T) {
	t.Parallel()
	e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap { return lap(100, s) }}
	r := run(t, e, func(o *measure.Order) {
		o.Race = &harness.Race{IncumbentUS: []float64{10, 30, 20}, BestUS: []float64{10, 30, 20}, BaselineUS: []float64{50, 150, 100}}
	})
	if r.Censored == nil || r.Censored.MeasuredSizes != 1 || r.Censored.LowerBound <= 1 || len(r.Sizes) != 1 || r.Sizes[0].BaselineUS != 50 {
		t.Fatalf("censored %+v, sizes %+v", r.Censored, r.Sizes)
	}
	if n, _ := r.Sizes[0].Size.Get("n"); n != 1000 {
		t.Errorf("measured n=%d first, want the least work", n)
	}
	if r = run(t, e, func(o *measure.Order) { o.Race = &harness.Race{IncumbentUS: []float64{100, 100, 100}} }); r.Censored != nil || len(r.Sizes) != 3 {
		t.Errorf("an equal was censored: %+v", r.Censored)
	}
}

// A contest interleaves A/B and B/A and keeps every round's medians by contestant and size.
func TestContest(t *testing.T) {
	t.Parallel()
	order := []string{}
	e := &verifytest.Engine{Kernel: verifytest.Add}
	counts := map[string]int{}
	e.LapFunc = func(c *verifytest.Call, s verify.Shot) verify.Lap {
		who, _ := c.State["who"].(float64)
		if who == 0 { // modules are opened in the order candidate, baseline, incumbent
			who = float64(100 * (1 + len(counts)))
			c.State["who"] = who
			counts[string(rune('a'+len(counts)))]++
		}
		order = append(order, map[float64]string{100: "candidate", 200: "baseline", 300: "incumbent"}[who])
		return lap(who, s)
	}
	r := run(t, e, func(o *measure.Order) { rivals(o, "baseline", "incumbent"); o.Rounds = 4 })
	c := r.Contest
	if c == nil || !cmp.Equal(c.Contestants, []string{"baseline", "incumbent", "candidate"}) || !cmp.Equal(c.Order, [][]int{{0, 1, 2}, {2, 1, 0}, {0, 1, 2}, {2, 1, 0}}) {
		t.Fatalf("contest %+v", c)
	}
	if len(c.MedianUS) != 4 || len(c.Sizes) != 3 || r.Sizes[0].BaselineUS == 0 || len(r.Sizes[0].SamplesUS) != 12 {
		t.Fatalf("contest of %d rounds, sizes %+v", len(c.MedianUS), r.Sizes)
	}
	first := c.MedianUS[0]
	for round := range c.MedianUS {
		for who := range 3 {
			for size := range 3 {
				if c.MedianUS[round][who][size] != first[who][0] {
					t.Errorf("round %d, contestant %d, size %d: %v, want %v", round, who, size, c.MedianUS[round][who][size], first[who][0])
				}
			}
		}
	}
	if first[0][0] == first[1][0] || first[1][0] == first[2][0] {
		t.Errorf("the contestants' times are mixed up: %v", first)
	}
}

// Whose fault it was is said: a rival that is wrong is no fault of the candidate.
func TestRivalAtFault(t *testing.T) {
	t.Parallel()
	opened := 0
	e := &verifytest.Engine{Kernel: func(c *verifytest.Call) {
		if c.State["who"] == nil {
			opened++
			c.State["who"] = opened
		}
		if verifytest.Add(c); c.State["who"] == 2 {
			c.Set(2, 0, 1e9)
		}
	}}
	r := run(t, e, func(o *measure.Order) { rivals(o, "baseline") })
	if r.Stop == nil || r.Role != "baseline" || r.Stop.Evidence.Launch != 1 || !r.Stop.Evidence.Timed || r.Errors == nil || r.Errors.MismatchRatio == 0 {
		t.Errorf("stop %+v of %q, errors %+v", r.Stop, r.Role, r.Errors)
	}
}

// burstEngine is the device in memory whose benches run launches in bursts.
type burstEngine struct {
	*verifytest.Engine
	bursts int
}

type burstProgram struct {
	verify.Program
	engine *burstEngine
}

type burstBench struct {
	verify.Bench
	engine *burstEngine
}

func (e *burstEngine) Open(ctx context.Context, m verify.Module) (verify.Program, error) {
	p, err := e.Engine.Open(ctx, m)
	return &burstProgram{p, e}, err
}

func (p *burstProgram) Bind(ctx context.Context, l *verify.Layout) (verify.Bench, error) {
	b, err := p.Program.Bind(ctx, l)
	return &burstBench{b, p.engine}, err
}

// Burst runs the launches one after the other.
func (b *burstBench) Burst(ctx context.Context, run *verify.Burst) ([]verify.Shotted, error) {
	b.engine.bursts++
	var out []verify.Shotted
	for range run.Warmups {
		if err := b.Write(ctx, run.Launches[0].Set); err != nil {
			return nil, err
		}
		lap, err := b.Launch(ctx, verify.Shot{Limit: run.Limit})
		if err != nil {
			return nil, err
		}
		run.Warmed += lap.Kernels
	}
	for _, l := range run.Launches {
		if err := errors.Join(b.Write(ctx, l.Set), b.Poison(ctx, l.Seed)); err != nil {
			return out, err
		}
		lap, err := b.Launch(ctx, verify.Shot{Limit: run.Limit})
		if err != nil {
			return out, err
		}
		breach, err := b.Breach(ctx, l.Set)
		if err != nil {
			return out, err
		}
		found, err := b.Compare(ctx, l.Set, l.Seed, l.Whole)
		if err != nil {
			return out, err
		}
		out = append(out, verify.Shotted{Lap: lap, Breach: breach, Comparisons: found})
	}
	return out, nil
}

// A device that runs bursts is measured in bursts, of which the warm-ups count as kernels' time, and the launch at fault is named
// all the same.
func TestBursts(t *testing.T) {
	t.Parallel()
	e := &burstEngine{Engine: &verifytest.Engine{Kernel: verifytest.Add, T: verify.Traits{Target: harness.TargetCUDA, FlushPerLaunch: true}}}
	tk := verifytest.Task(t, verifytest.Text)
	o := measure.Order{Task: tk, Target: harness.TargetCPU, Candidate: measure.Contestant{Role: measure.RoleCandidate, Module: verify.Module{Candidate: verifytest.Candidate(t, tk)}},
		Stage: harness.StageSearch, Seed: 1, Pool: verifytest.Pool(), LimitFunc: func(harness.Size) time.Duration { return time.Second }}
	r, err := measure.Run(t.Context(), e, o)
	if err != nil || r.Stop != nil || e.bursts != 3 || len(r.Sizes) != 3 || len(r.Sizes[0].SamplesUS) != tk.Eval.TimedIters {
		t.Fatalf("%v, stop %v, %d bursts, sizes %+v", err, r.Stop, e.bursts, r.Sizes)
	}
	if least := 0.0001 * float64(3*(10+tk.Eval.TimedIters)); r.Split.Kernels < 0.99*least {
		t.Errorf("kernels took %v s, want the warm-ups counted: %v", r.Split.Kernels, least)
	}
	e.Kernel = func(c *verifytest.Call) {
		if verifytest.Add(c); c.Count == 17 {
			c.Set(2, 5, -77)
		}
	}
	r, err = measure.Run(t.Context(), e, o)
	if err != nil || r.Stop == nil || r.Stop.Evidence.Launch != 17 || r.Stop.Evidence.Kind != verify.KindMismatch || r.Errors.MismatchRatio == 0 {
		t.Errorf("%v, stop %+v: want launch 17", err, r.Stop)
	}
}

// A clock that disagrees with the judge's in every batch is a false one; an honest kernel on a crowded machine agrees in some
// batch, if only after a pause.
func TestClocksMustAgreeOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crowded int // batches of a size that a crowded machine spoils; -1: all
		fault   harness.Fault
	}{"quiet": {0, harness.FaultNone}, "crowded": {10, harness.FaultNone}, "false": {-1, harness.FaultIncorrect}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batches := 0
			e := &verifytest.Engine{Kernel: verifytest.Add, LapFunc: func(_ *verifytest.Call, s verify.Shot) verify.Lap {
				l := lap(100, s)
				l.Wall, l.Busy = l.Kernels, l.Kernels
				if s.Repeats > 1 {
					if batches++; c.crowded < 0 || batches <= c.crowded {
						l.Wall, l.Busy = 3*l.Kernels, 3*l.Kernels
					}
				}
				return l
			}}
			fault := harness.FaultNone
			if r := run(t, e, nil); r.Stop != nil {
				fault = r.Stop.Fault
			}
			if fault != c.fault || batches == 0 {
				t.Errorf("fault %v after %d batches, want %v", fault, batches, c.fault)
			}
		})
	}
}
