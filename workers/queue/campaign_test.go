package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/redistest"
)

const campaignID = "scripted-cpu-0001"

// scriptedCampaign has 110 configurations, of which A=7, B=3 of "fast" is the best, and a budget for all of them.
func scriptedCampaign(evaluations int) (*scheduler.Campaign, []*harness.Structure) {
	structures := []*harness.Structure{
		harnesstest.Structure("slow", harnesstest.Ints("A", 0, 9)),
		harnesstest.Structure("fast", harnesstest.Ints("A", 0, 9), harnesstest.Ints("B", 0, 9)),
	}
	task := harnesstest.Task(2)
	return &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: campaignID, Name: "test", Task: task, Target: harness.TargetCPU, Baseline: harnesstest.Baseline(),
		Seed: 42, Reward: task.Reward, Created: time.UnixMilli(1_800_000_000_000).UTC(),
		Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: int64(evaluations)}, Optimizer: "random", Probes: 2, InFlight: 2, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 40, Share: 1}}}, structures
}

func campaignTime(c *harness.Candidate, size harness.Size) float64 {
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

func (r role) campaignHarness() harness.Harness {
	return &harnesstest.Scripted{NoiseSD: 0.004, TimeFunc: campaignTime, CompileLatency: time.Duration(r.CompileMS) * time.Millisecond,
		Latency: time.Duration(r.MeasureMS) * time.Millisecond}
}

// schedule is a scheduler's process: it takes its campaign up where its store has it, and writes the result when it is done.
func (r role) schedule(ctx context.Context, n *Node, log zerolog.Logger) (err error) {
	store, err := memory.Open(ctx, r.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	campaign, structures := scriptedCampaign(r.Trials)
	d := n.Dispatcher(Campaign{ID: campaign.ID, Target: harness.TargetCPU, Arch: "x86-64"})
	l, err := loop.New(loop.Config{Campaign: campaign, Structures: structures, Store: store, Dispatcher: d, Log: log,
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New(campaign.Settings.Optimizer, s, strategy.Options{Seed: seed})
		}})
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	var g errgroup.Group
	g.Go(func() error { return n.Scheduler(life, store.SchedulerID(), l.Deliver) })
	result, err := l.Run(ctx)
	end()
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Journal, text, 0o600)
}

// TestEverybodyKilled runs a campaign with one scheduler, two compile workers and two device workers on a real Redis, kills
// each of them and Redis with SIGKILL at random moments (ten times each with RIDGEPOINT_LONG=1), and starts them again: every
// planned trial is accounted for exactly once, and the winner is the scripted truth.
func TestEverybodyKilled(t *testing.T) {
	t.Parallel()
	kills, measureMS := 1, 60
	if isLong() {
		kills, measureMS = 10, 1200
	}
	for name, persistence := range map[string]redistest.Persistence{"aof": redistest.AOF, "nothing persists": redistest.None} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, persistence)
			sched := roleOf(t, "scheduler", srv.URL, "sched", 0)
			sched.Trials = 200
			victims := map[string][]*process{"scheduler": {spawn(t, sched)}}
			for i := range 2 {
				c, g := roleOf(t, "compile", srv.URL, fmt.Sprintf("compile%d", i), 2), roleOf(t, "gpu", srv.URL, fmt.Sprintf("gpu%d", i), 1)
				c.Campaign, c.CompileMS, g.Campaign, g.MeasureMS = true, 10, true, measureMS
				victims["compile"] = append(victims["compile"], spawn(t, c))
				victims["gpu"] = append(victims["gpu"], spawn(t, g))
			}
			ended := func() bool { _, err := os.Stat(sched.Journal); return err == nil }
			killed := killAll(t, srv, victims, kills, ended)
			started := time.Now()
			waitFor(t, 5*time.Minute, "the end of the campaign", ended)
			t.Logf("killed %v; the campaign ended %v after the last", killed, time.Since(started).Round(time.Second))
			accounted(t, sched)
		})
	}
}

// killAll kills everybody a number of times, in random order with random pauses, and starts them again.
func killAll(t *testing.T, srv *redistest.Server, victims map[string][]*process, times int, ended func() bool) map[string]int {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("random moments from seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var order []string
	for _, kind := range []string{"scheduler", "compile", "gpu", "redis"} {
		for range times {
			order = append(order, kind)
		}
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	killed := map[string]int{}
	nap := func(most time.Duration) {
		timer := time.NewTimer(time.Duration(rng.Int64N(int64(most))))
		<-timer.C
	}
	nap(2 * time.Second)
	for _, kind := range order {
		if ended() {
			t.Errorf("the campaign ended before everybody was killed: %v", killed)
			break
		}
		if kind == "redis" {
			srv.Kill()
			nap(time.Second)
			srv.Restart()
		} else {
			p := victims[kind][rng.IntN(len(victims[kind]))]
			p.kill()
			nap(time.Second)
			p.start()
		}
		killed[kind]++
		nap(1500 * time.Millisecond)
	}
	return killed
}

// accounted checks the store of a campaign that has ended.
func accounted(t *testing.T, sched role) {
	t.Helper()
	text, err := os.ReadFile(sched.Journal)
	if err != nil {
		t.Fatal(err)
	}
	var result scheduler.Result
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	w := result.Winner
	if w == nil || w.Structure != "fast" || fmt.Sprint(w.Configuration["A"], w.Configuration["B"]) != "7 3" {
		t.Errorf("winner %+v; want A=7, B=3 of fast", w)
	}
	store, err := memory.OpenReader(t.Context(), filepath.Clean(sched.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // read only
	planned, outcomes, strikes := map[int64]int{}, map[int64]int{}, 0
	err = store.Events(t.Context(), campaignID, 0, func(e *scheduler.Event) error {
		switch e.Kind {
		case scheduler.EventPlanned:
			planned[e.Trial]++
		case scheduler.EventOutcome:
			outcomes[e.Trial]++
		case scheduler.EventStrike:
			strikes++
		default: // not about one trial
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for trial, n := range planned {
		if n != 1 || outcomes[trial] != 1 {
			t.Errorf("trial %d: planned %d times with %d outcomes; want 1 and 1", trial, n, outcomes[trial])
		}
	}
	records := map[int64]int{}
	if err := store.Records(t.Context(), campaignID, 0, func(r *harness.Record) error { records[r.Trial]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for trial, n := range records {
		if n != 1 {
			t.Errorf("trial %d has %d records", trial, n)
		}
	}
	t.Logf("%d trials planned, %d outcomes, %d records, %d strikes; %d evaluated", len(planned), len(outcomes), len(records), strikes, result.Candidates.Evaluated)
	if len(planned) < 110 || len(outcomes) != len(planned) {
		t.Errorf("%d planned and %d outcomes; want all of the 110 configurations and as many outcomes", len(planned), len(outcomes))
	}
}
