package report_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
)

// worker evaluates jobs one after another.
type worker struct {
	script harness.Harness
	jobs   chan *scheduler.Job
}

func (w *worker) Capacity(context.Context) (int, error) { return 1, nil }

func (w *worker) Dispatch(ctx context.Context, j *scheduler.Job) error {
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *worker) run(ctx context.Context, deliver scheduler.Deliver) {
	for {
		select {
		case j := <-w.jobs:
			b, rep, err := w.script.Compile(ctx, &j.Request)
			if err == nil && b != nil {
				rep, err = w.script.Benchmark(ctx, &j.Request, b)
			}
			if err != nil {
				return
			}
			if deliver(ctx, &scheduler.Outcome{Key: j.Key, Worker: "test", Report: *rep, WorkerHeld: rep.Split.Total, Final: true}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// campaign runs a scripted campaign of fifty evaluations to its end and returns the store it left.
func campaign(t *testing.T, script *harnesstest.Scripted) (*memory.Store, string) {
	t.Helper()
	store, err := memory.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: "confess-cpu-0001", Name: "test", Task: harnesstest.Task(3), Target: harness.TargetCPU,
		Baseline: harnesstest.Baseline(), Seed: 7, Reward: harnesstest.Task(3).Reward, Created: time.Now().UTC(),
		Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: 50}, Optimizer: "random", Probes: 2, InFlight: 1, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 40, Share: 1}}}
	w := &worker{script: script, jobs: make(chan *scheduler.Job, 10)} // more than are in flight
	l, err := loop.New(loop.Config{Campaign: c, Structures: []*harness.Structure{harnesstest.Structure("tiles", harnesstest.Ints("A", 0, 9), harnesstest.Ints("B", 0, 9))},
		Store: store, Dispatcher: w, Log: zerolog.Nop(), OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New("random", s, strategy.Options{Seed: seed})
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx, l.Deliver)
	}()
	_, err = l.Run(ctx)
	cancel()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return store, c.ID
}

func at(c *harness.Candidate, name string) int64 {
	v, _ := c.Configuration[name].AsInt()
	return v
}

// scripted is a machine on which A=9 seems to break the laws of physics, every sixth configuration stays noisy, the search flatters
// everything by a tenth, and hidden sizes gain half of what scored ones do.
func scripted() *harnesstest.Scripted {
	return &harnesstest.Scripted{
		NoiseSD: 0.004,
		TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
			n, _ := size.Get("n")
			if c.Structure.Name != "tiles" {
				return float64(n)
			}
			return float64(n) * (0.5 + 0.02*math.Abs(float64(at(c, "A"))-6) + 0.02*math.Abs(float64(at(c, "B"))-3))
		},
		FaultFunc: func(c *harness.Candidate, p *harness.Plan) harness.Fault {
			if p.Stage != harness.StageReplay && p.Rounds == 0 && (at(c, "A")+at(c, "B"))%6 == 5 {
				return harness.FaultNoisy
			}
			return harness.FaultNone
		},
		ReportFunc: func(c *harness.Candidate, rep *harness.Report) {
			if rep.Contest == nil && c.Structure.Name == "tiles" {
				for i := range rep.Sizes {
					rep.Sizes[i].MedianUS *= 0.9
					if at(c, "A") == 9 {
						rep.Sizes[i].FloorUS = 2 * rep.Sizes[i].MedianUS
					}
				}
			}
			if rep.Stage == harness.StageReplay {
				rep.Hidden = []harness.SizeTime{
					{Size: harness.Size{{Name: "n", Value: 777}}, MedianUS: 100, BaselineUS: 150},
					{Size: harness.Size{{Name: "n", Value: 991}}, MedianUS: 100, BaselineUS: 900, BaselineNoisy: true},
				}
			}
		},
	}
}

// The report of a finished campaign, read from the store alone, says how far the search flattered the winner, what became of it at
// hidden sizes, how much was disturbed, what was quarantined and why, and what could not have been found.
func TestReportConfesses(t *testing.T) {
	t.Parallel()
	store, id := campaign(t, scripted())
	r, err := report.Build(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	c, w := r.Confession, r.Result.Winner
	if w == nil || w.ReplayedSpeedup == 0 {
		t.Fatalf("winner %+v, want one that was replayed", w)
	}
	if c.ReplayedSpeedup != w.ReplayedSpeedup || c.Overstated < 0.08 || c.Overstated > 0.14 || c.BestSearched < c.SearchedSpeedup {
		t.Errorf("searched %.3f, best searched %.3f, replayed %.3f, overstated %.3f; want a tenth over the replay", c.SearchedSpeedup, c.BestSearched, c.ReplayedSpeedup, c.Overstated)
	}
	if c.HiddenSpeedup != 1.5 || len(c.Hidden) != 2 || !c.Hidden[1].Disturbed {
		t.Errorf("hidden %.3f of %+v; want 1.5, the disturbed baseline left out", c.HiddenSpeedup, c.Hidden)
	}
	if c.Measured < 50 || c.Noisy == 0 || c.Noisy >= c.Measured {
		t.Errorf("%d noisy of %d", c.Noisy, c.Measured)
	}
	if len(c.Quarantined) == 0 {
		t.Fatal("nothing was quarantined; A=9 was below the floor")
	}
	for _, q := range c.Quarantined {
		if a, _ := q.Configuration["A"].AsInt(); a != 9 || q.Candidate == w.Candidate || !strings.Contains(q.Reason, "where the device's own limits allow") {
			t.Errorf("quarantined %+v", q)
		}
	}
	var text, page bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"winner&#39;s curse: searched at", "hidden size n=777", "disturbed: not counted", "hidden sizes: 1.50×", "measurements stayed noisy", "quarantined: tiles A=9", "detectable: gains under"} {
		if plain := strings.ReplaceAll(want, "&#39;", "'"); !strings.Contains(text.String(), plain) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in the text (%t) or the page (%t)", want, strings.Contains(text.String(), plain), strings.Contains(page.String(), want))
		}
	}
	if want := "(searched at "; !strings.Contains(text.String(), want) {
		t.Errorf("the winner's line has no %q", want)
	}
	if t.Failed() {
		t.Log(text.String())
	}
}
