package local_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/local"
)

// childEnv makes the test binary run the scripted campaign in the folder that it names, and nothing else.
const childEnv = "RIDGEPOINT_KILL_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := runCampaign(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// killCampaign is the scripted campaign: three structures, faults of all kinds, noise, confirmations, racing, a replay.
func killCampaign() (*scheduler.Campaign, []*harness.Structure, *harnesstest.Scripted) {
	t := harnesstest.Task(4)
	c := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: "scripted-cpu-kill", Name: "kill", Task: t, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Seed: 11,
		Reward: t.Reward, Created: time.Unix(1_700_000_000, 0).UTC(), Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: 150}, Optimizer: "tpe", Probes: 2, InFlight: 3,
			Racing: true, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 30, Share: 1}}}
	structures := []*harness.Structure{
		harnesstest.Structure("one", harnesstest.Ints("A", 0, 15)),
		harnesstest.Structure("two", harnesstest.Ints("A", 0, 15), harnesstest.Ints("B", 0, 15)),
		harnesstest.Structure("three", harnesstest.Ints("A", 0, 7), harnesstest.Ints("B", 0, 7), harnesstest.Ints("C", 0, 7)),
	}
	script := &harnesstest.Scripted{NoiseSD: 0.004, Latency: time.Millisecond, RoundLatency: 100 * time.Microsecond,
		TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
			n, _ := size.Get("n")
			t := float64(n) / 10
			for i, name := range []string{"A", "B", "C"} {
				if v, ok := c.Configuration[name]; ok {
					k, _ := v.AsInt()
					t *= 0.75 + 0.02*math.Abs(float64(k)-float64(5+i))
				}
			}
			return t
		},
		FaultFunc: func(c *harness.Candidate, p *harness.Plan) harness.Fault {
			if a, ok := c.Configuration["A"].AsInt(); !ok || p.Stage != harness.StageSearch || a%5 != 4 {
				return harness.FaultNone
			} else if b, _ := c.Configuration["B"].AsInt(); true {
				return []harness.Fault{harness.FaultCompile, harness.FaultIncorrect, harness.FaultLaunch, harness.FaultCrash, harness.FaultTimeout}[(a+b)%5]
			}
			return harness.FaultNone
		}}
	return c, structures, script
}

// runCampaign runs the scripted campaign in dir from wherever it stands. Outcomes are delivered in order, so that the whole log
// is determined.
func runCampaign(ctx context.Context, dir string) (err error) {
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	c, structures, script := killCampaign()
	d := local.New(local.Config{Harness: script, Alternating: true, Compilers: 1, Batch: 1, Deliverers: 1, Log: zerolog.Nop()})
	l, err := loop.New(loop.Config{Campaign: c, Structures: structures, Store: store, Dispatcher: d, Log: zerolog.Nop(),
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New(c.Settings.Optimizer, s, strategy.Options{Seed: seed})
		}})
	if err != nil {
		return err
	}
	work, cancel := context.WithCancel(ctx)
	done := make(chan error, 1) // one result
	go func() {
		// How long an evaluation took is the one thing that is not scripted, and costs steer the search: all take the same here.
		done <- d.Run(work, func(ctx context.Context, o *scheduler.Outcome) error {
			o.WorkerHeld, o.Report.Split.Total = 0.001, 0.001
			return l.Deliver(ctx, o)
		})
	}()
	_, err = l.Run(ctx)
	cancel()
	return errors.Join(err, <-done)
}

// decisions reads what must not depend on kills: plans, outcomes and verdicts, without attempt numbers. Rows for one trial
// must be there once.
func decisions(t *testing.T, dir string) []string {
	t.Helper()
	store, err := memory.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // read only
	attempt := regexp.MustCompile(`"attempt":[0-9]+,`)
	var out []string
	err = store.Events(t.Context(), "scripted-cpu-kill", 0, func(e *scheduler.Event) error {
		switch e.Kind {
		case scheduler.EventPlanned, scheduler.EventOutcome, scheduler.EventVerdict:
			out = append(out, fmt.Sprintf("%s %d %s", e.Kind, e.Trial, attempt.ReplaceAllString(string(e.Data), "")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// records counts the records and final outcomes of each trial.
func records(t *testing.T, dir string) map[int64]int {
	t.Helper()
	store, err := memory.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // read only
	out := map[int64]int{}
	if err := store.Records(t.Context(), "scripted-cpu-kill", 0, func(r *harness.Record) error { out[r.Trial]++; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKilledCampaignLosesNothing kills the process at random moments of the campaign, again and again until it ends, and compares
// its log with that of an uninterrupted run. RIDGEPOINT_LONG kills 50 times.
func TestKilledCampaignLosesNothing(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	if err := runCampaign(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want := decisions(t, whole)
	kills, target := 0, 6
	if os.Getenv("RIDGEPOINT_LONG") != "" {
		target = 50
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for round := 0; kills < target; round++ {
		dir := t.TempDir()
		kills += killUntilDone(t, dir, target-kills, rng)
		if diff := cmp.Diff(want, decisions(t, dir)); diff != "" {
			t.Fatalf("the log of a killed campaign differs (-uninterrupted +killed):\n%.3000s", diff)
		}
		for trial, n := range records(t, dir) {
			if n != 1 {
				t.Errorf("trial %d has %d records", trial, n)
			}
		}
		if len(records(t, dir)) != len(records(t, whole)) {
			t.Errorf("%d records, want %d", len(records(t, dir)), len(records(t, whole)))
		}
		if round > 4*target {
			t.Fatalf("only %d kills in %d campaigns: the campaign is over before it can be killed", kills, round)
		}
	}
	t.Logf("%d kills, %d events compared each time", kills, len(want))
}

// killUntilDone starts the campaign and kills it up to limit times, then lets it end. It returns how often it killed.
func killUntilDone(t *testing.T, dir string, limit int, rng *rand.Rand) (kills int) {
	t.Helper()
	for {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1) // one result
		go func() { ended <- cmd.Wait() }()
		moment := time.Duration(20+rng.IntN(900)) * time.Millisecond
		var timer <-chan time.Time
		if kills < limit {
			timer = time.After(moment)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the campaign failed after %d kills: %v\n%s", kills, err, stderr.String())
			}
			return kills
		case <-timer:
			if err := cmd.Process.Kill(); err == nil {
				kills++
			}
			<-ended
		}
	}
}
