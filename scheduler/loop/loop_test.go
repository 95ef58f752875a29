package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/replay"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"

	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
)

// bundle is a scripted campaign with everything it needs, apart from workers (internal imports go one way: the dispatcher
// here is a small one of the test's own).
type bundle struct {
	campaign   *scheduler.Campaign
	structures []*harness.Structure
	script     *harnesstest.Scripted
	dir        string
	capacity   int
	records    []*replay.Record
}

// setup makes a campaign over two structures whose best configuration is A=7, B=3 of "fast".
func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{dir: t.TempDir(), capacity: 1}
	b.structures = []*harness.Structure{
		harnesstest.Structure("slow", harnesstest.Ints("A", 0, 9)),
		harnesstest.Structure("fast", harnesstest.Ints("A", 0, 9), harnesstest.Ints("B", 0, 9)),
	}
	b.script = &harnesstest.Scripted{NoiseSD: 0.004, TimeFunc: trueTime, Latency: 200 * time.Microsecond}
	b.campaign = &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: "scripted-cpu-0001", Name: "test", Task: harnesstest.Task(4), Target: harness.TargetCPU,
		Baseline: harnesstest.Baseline(), Seed: 42, Reward: harnesstest.Task(4).Reward, Created: time.Now().UTC(), Settings: settings()}
	return b
}

func settings() scheduler.Settings {
	return scheduler.Settings{Budget: scheduler.Budget{Evaluations: 60}, Optimizer: "random", Probes: 2, InFlight: 2, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
		Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 40, Share: 1}}
}

func trueTime(c *harness.Candidate, size harness.Size) float64 {
	n, _ := size.Get("n")
	t := float64(n) / 10
	value := func(name string) float64 { v, _ := c.Configuration[name].AsInt(); return float64(v) }
	switch c.Structure.Name {
	case "slow":
		return t * (0.8 + 0.01*math.Abs(value("A")-5))
	case "fast":
		return t * (0.4 + 0.02*math.Abs(value("A")-7) + 0.03*math.Abs(value("B")-3))
	default:
		return t
	}
}

// serial evaluates jobs one after another in the order in which they came.
type serial struct {
	script   harness.Harness
	capacity int
	jobs     chan *scheduler.Job
}

func (s *serial) Dispatch(ctx context.Context, j *scheduler.Job) error {
	select {
	case s.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *serial) Capacity(context.Context) (int, error) { return s.capacity, nil }

func (s *serial) run(ctx context.Context, deliver scheduler.Deliver) {
	for {
		select {
		case j := <-s.jobs:
			o := &scheduler.Outcome{Key: j.Key, Worker: "test"}
			b, rep, err := s.script.Compile(ctx, &j.Request)
			if err == nil && b != nil {
				rep, err = s.script.Benchmark(ctx, &j.Request, b)
			}
			if err != nil {
				rep = &harness.Report{Version: 1, Target: harness.TargetCPU, Fault: harness.FaultInfra, Reason: err.Error()}
			}
			o.Report, o.WorkerHeld = *rep, rep.Split.Total
			o.Final = scheduler.Final(rep.Fault, j.Strikes)
			if err := deliver(ctx, o); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// run runs the campaign until it ends, or until stop says so of an event.
func (b *bundle) run(t testing.TB, stop func(e *scheduler.Event, data any) bool) (*scheduler.Result, error) {
	t.Helper()
	store, err := memory.Open(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &serial{script: b.script, capacity: b.capacity, jobs: make(chan *scheduler.Job, 100)} // more than in flight
	l, err := loop.New(loop.Config{Campaign: b.campaign, Structures: b.structures, Store: store, Dispatcher: d, Log: zerolog.Nop(), Records: b.records,
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New(b.campaign.Settings.Optimizer, s, strategy.Options{Seed: seed})
		},
		EventFunc: func(e *scheduler.Event, data any) {
			if stop != nil && stop(e, data) {
				cancel()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.run(ctx, l.Deliver)
	}()
	result, err := l.Run(ctx)
	cancel()
	<-done
	return result, err
}

// log reads the campaign's events as text, without times.
func (b *bundle) log(t testing.TB) []string {
	t.Helper()
	s, err := memory.OpenReader(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // read only
	var out []string
	err = s.Events(t.Context(), b.campaign.ID, 0, func(e *scheduler.Event) error {
		out = append(out, fmt.Sprintf("%s %d %s", e.Kind, e.Trial, e.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCampaignFindsConfirmsAndReplays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r, err := b.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Winner == nil || r.Winner.Structure != "fast" {
		t.Fatalf("winner %+v, want a configuration of fast", r.Winner)
	}
	if r.Evaluations != 60 || r.Candidates.Evaluated != 60 {
		t.Errorf("%d evaluations, want the budget of 60", r.Evaluations)
	}
	if r.Winner.ReplayedSpeedup < 2 || r.Winner.Interval[0] > r.Winner.ReplayedSpeedup || r.Winner.Interval[1] < r.Winner.ReplayedSpeedup {
		t.Errorf("replayed %.3f in %v, want over 2 and within its interval", r.Winner.ReplayedSpeedup, r.Winner.Interval)
	}
	if len(r.Winner.Sizes) != 4 || r.Winner.Sizes[0].ReplayedUS == 0 {
		t.Errorf("sizes of the winner: %+v", r.Winner.Sizes)
	}
}

func TestStoppedCampaignGoesOnAsIfItHadNot(t *testing.T) {
	t.Parallel()
	whole := setup(t)
	if _, err := whole.run(t, nil); err != nil {
		t.Fatal(err)
	}
	want := decisions(whole.log(t))
	for _, after := range []int64{1, 2, 5, 30, 63} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.campaign.Created = whole.campaign.Created
			stop := func(e *scheduler.Event, _ any) bool { return e.Kind == scheduler.EventOutcome && e.Trial == after }
			if _, err := b.run(t, stop); !errors.Is(err, loop.ErrStopped) {
				t.Fatalf("got %v, want ErrStopped", err)
			}
			if _, err := b.run(t, nil); err != nil {
				t.Fatal(err)
			}
			got := decisions(b.log(t))
			if len(got) != len(want) {
				t.Errorf("%d plans, outcomes and verdicts, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("entry %d is\n%s\nwant\n%s", i, got[i], want[i])
				}
			}
		})
	}
}

// decisions keeps what must not depend on when a campaign was stopped: plans, outcomes and verdicts. Attempts differ.
func decisions(log []string) []string {
	var out []string
	for _, line := range log {
		var kind, rest string
		if _, err := fmt.Sscanf(line, "%s", &kind); err == nil && (kind == "planned" || kind == "outcome" || kind == "verdict") {
			rest = attemptRE.ReplaceAllString(line, "")
			out = append(out, rest)
		}
	}
	return out
}

func TestBrokenKernelsAreResultsAndBrokenMachinesAreNot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	faults := []harness.Fault{harness.FaultCompile, harness.FaultLaunch, harness.FaultIncorrect, harness.FaultCrash, harness.FaultTimeout, harness.FaultNoisy}
	b.script.FaultFunc = func(c *harness.Candidate, p *harness.Plan) harness.Fault {
		a, _ := c.Configuration["A"].AsInt()
		bb, _ := c.Configuration["B"].AsInt()
		if c.Structure.Name == "fast" && bb >= 5 && p.Stage == harness.StageSearch {
			return faults[int(a)%len(faults)]
		}
		return harness.FaultNone
	}
	b.script.ErrorFunc = func(n int64) error {
		if n%17 == 0 {
			return errors.New("the device fell off the bus")
		}
		return nil
	}
	r, err := b.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Winner == nil || r.Winner.ReplayedSpeedup == 0 {
		t.Errorf("no replayed winner among faults: %+v", r)
	}
	for _, f := range []string{"compile", "crash", "incorrect"} {
		if r.Candidates.Failed[f] == 0 {
			t.Errorf("no candidate counted as %s: %v", f, r.Candidates.Failed)
		}
	}
	if r.Candidates.Failed["infra"] != 0 {
		t.Errorf("a broken machine was counted against %d kernels", r.Candidates.Failed["infra"])
	}
}

func TestBrokenBaselineEndsTheCampaign(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.script.FaultFunc = func(c *harness.Candidate, _ *harness.Plan) harness.Fault { return harness.FaultIncorrect }
	if _, err := b.run(t, nil); !errors.Is(err, loop.ErrTask) {
		t.Errorf("got %v, want ErrTask", err)
	}
	b = setup(t)
	b.script.ErrorFunc = func(int64) error { return errors.New("no device") }
	if _, err := b.run(t, nil); !errors.Is(err, loop.ErrBroken) {
		t.Errorf("got %v, want ErrBroken", err)
	}
}

// TestEveryIncumbentIsProfiledOnce counts the profiles of a campaign: one of each incumbent at most, never two within the
// evaluations that must lie between them, and the same ones when the campaign is stopped and resumed.
func TestEveryIncumbentIsProfiledOnce(t *testing.T) {
	t.Parallel()
	const every = 5
	b := setup(t)
	b.campaign.Settings.ProfileEvery = every
	seen := map[string]bool{}
	evaluated, last := 0, 0
	searching := map[int64]bool{}
	watch := func(e *scheduler.Event, data any) bool {
		switch d := data.(type) {
		case *scheduler.Trial:
			searching[e.Trial] = d.Purpose == scheduler.PurposeSearch
			if d.Purpose != scheduler.PurposeProfile {
				break
			}
			if seen[d.Point.ID] || !d.Plan.Profile || evaluated-last < every {
				t.Errorf("trial %d profiles %.8s (before: %v, plan %+v) %d evaluations after the last", e.Trial, d.Point.ID, seen[d.Point.ID], d.Plan, evaluated-last)
			}
			seen[d.Point.ID], last = true, evaluated
		case *scheduler.Summary:
			if searching[e.Trial] && d.Fault.Measured() && !d.Cached {
				evaluated++
			}
		}
		return false
	}
	if _, err := b.run(t, func(e *scheduler.Event, data any) bool { return watch(e, data) || evaluated == 30 }); !errors.Is(err, loop.ErrStopped) {
		t.Fatalf("got %v, want ErrStopped", err)
	}
	if _, err := b.run(t, watch); err != nil {
		t.Fatal(err)
	}
	if len(seen) == 0 {
		t.Error("no incumbent was profiled")
	}
}

func TestFailedReplayDethrones(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.script.FaultFunc = func(c *harness.Candidate, p *harness.Plan) harness.Fault {
		if p.Stage == harness.StageReplay && c.Structure.Name == "fast" {
			return harness.FaultIncorrect
		}
		return harness.FaultNone
	}
	dethroned := 0
	r, err := b.run(t, func(_ *scheduler.Event, data any) bool {
		if v, ok := data.(*scheduler.Verdict); ok && v.Dethroned {
			dethroned++
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	if dethroned == 0 {
		t.Error("no incumbent was dethroned although every replay of fast fails")
	}
	if r.Winner != nil && r.Winner.Structure == "fast" {
		t.Errorf("winner %+v failed its replay", r.Winner)
	}
}

var attemptRE = regexp.MustCompile(`"attempt":[0-9]+,`)
