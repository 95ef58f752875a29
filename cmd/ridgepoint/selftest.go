package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/workers/local"
)

// selftestCmd runs a whole campaign against kernels whose best configuration is known.
type selftestCmd struct {
	Seed        uint64 `default:"1" help:"Where the optimum is planted, and the campaign's seed."`
	Evaluations int64  `default:"120" help:"Budget of the campaign."`
	Optimizer   string `default:"portfolio" help:"The strategy."`
	JSON        bool   `name:"json" help:"Print the verdict as JSON."`
}

// selftestVerdict is what the self-test found.
type selftestVerdict struct {
	Planted     harness.Configuration `json:"planted"`
	Structure   string                `json:"planted_structure"`
	Result      *scheduler.Result     `json:"result"`
	Reached     float64               `json:"reached"` // planted optimum over the winner's true time
	TrueSpeedup float64               `json:"true_speedup"`
	Passed      bool                  `json:"passed"`
	Reasons     []string              `json:"reasons,omitempty"`
	TookSeconds float64               `json:"took_seconds"`
}

// Run plants an optimum, runs loop, store, dispatcher and optimizer on it, and checks what came out: exit code 1 when the
// winner is more than 5 % from the optimum, was not confirmed and replayed, or its replayed speedup is not the true one.
func (c selftestCmd) Run(ctx context.Context, env environment) (err error) {
	if c.Evaluations < 1 || !slices.Contains(strategy.Names(), c.Optimizer) {
		return &exitError{exitUsage, fmt.Errorf("--evaluations %d --optimizer %q: want at least 1 evaluation (120 find the optimum), and one of %s", c.Evaluations, c.Optimizer, strings.Join(strategy.Names(), ", "))}
	}
	dir, err := os.MkdirTemp("", "ridgepoint-selftest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := plant(c.Seed)
	began := time.Now()
	result, err := c.campaign(ctx, dir, p)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, loop.ErrStopped)) {
		return &exitError{exitStopped, errors.New("interrupted; nothing is kept, run the command again")}
	}
	if err != nil {
		return err
	}
	v := p.judge(result)
	v.TookSeconds = time.Since(began).Seconds()
	if c.JSON {
		e := json.NewEncoder(env.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	} else {
		err = v.print(env)
	}
	if err == nil && !v.Passed {
		return &exitError{exitVerdict, fmt.Errorf("selftest: %s", v.Reasons[0])}
	}
	return err
}

func (c selftestCmd) campaign(ctx context.Context, dir string, p *planted) (result *scheduler.Result, err error) {
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	campaign := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: scheduler.NewCampaignID("selftest", harness.TargetCPU, fmt.Sprintf("%08x", c.Seed)),
		Name: "selftest", Task: harnesstest.Task(4), Target: harness.TargetCPU, Baseline: harnesstest.Baseline(), Seed: c.Seed,
		Reward: harnesstest.Task(4).Reward, Created: time.Now().UTC(), Settings: scheduler.Settings{Budget: scheduler.Budget{Evaluations: c.Evaluations},
			Optimizer: c.Optimizer, Probes: 2, InFlight: 2, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
			Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 40, Share: 1}}}
	d := local.New(local.Config{Harness: p.harness(), Devices: 1, Compilers: 1, Deliverers: 1, Log: zerolog.Nop()})
	l, err := loop.New(loop.Config{Campaign: campaign, Structures: p.structures, Store: store, Dispatcher: d, Log: zerolog.Nop(),
		OptimizerFunc: func(s *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New(c.Optimizer, s, strategy.Options{Seed: seed})
		}})
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error { return d.Run(ctx, l.Deliver) })
	group.Go(func() (err error) {
		defer cancel()
		result, err = l.Run(ctx)
		return err
	})
	return result, group.Wait()
}

// planted is a made-up landscape over two structures with one best configuration, put somewhere by the seed.
type planted struct {
	structures []*harness.Structure
	at         map[string]int64 // of the structure "tiled"
}

// plant draws the optimum. Threads and tiles interact, an odd block wastes part of a warp, one corner fails to launch.
func plant(seed uint64) *planted {
	rng := rand.New(rand.NewPCG(seed, 2026))
	pick := func(values ...int64) int64 { return values[rng.IntN(len(values))] }
	at := map[string]int64{"BX": pick(32, 64, 96, 128, 160), "BY": pick(1, 2, 4), "TILE": pick(2, 3, 4), "UNROLL": pick(1, 2, 4), "PAD": pick(0, 1)}
	values := func(v ...int64) []expr.Value {
		out := make([]expr.Value, len(v))
		for i, x := range v {
			out[i] = expr.Int(x)
		}
		return out
	}
	block := harness.Param{Name: "BX", Type: "int", Values: values(16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256)}
	tiled := harnesstest.Structure("tiled", block, harness.Param{Name: "BY", Type: "int", Values: values(1, 2, 4, 8, 16)},
		harness.Param{Name: "TILE", Type: "int", Values: values(1, 2, 3, 4, 6, 8)}, harness.Param{Name: "UNROLL", Type: "int", Values: values(1, 2, 4, 8)},
		harness.Param{Name: "PAD", Type: "int", Values: values(0, 1)})
	tiled.Constraints = []string{"BX * BY <= 1024"}
	return &planted{structures: []*harness.Structure{harnesstest.Structure("plain", block), tiled}, at: at}
}

// slowdown is a configuration's time as ratio to the optimum's.
func (p *planted) slowdown(c *harness.Candidate) float64 {
	get := func(name string) float64 { v, _ := c.Configuration[name].AsInt(); return float64(v) }
	if c.Structure.Name == "plain" {
		return 2 + 0.2*math.Abs(math.Log2(get("BX")/128))
	}
	if c.Structure.Name != "tiled" {
		return 3 // the baseline
	}
	threads := math.Log2(get("BX") * get("BY") / float64(p.at["BX"]*p.at["BY"]))
	t := 1 + 0.15*math.Abs(threads) + 0.05*math.Abs(math.Log2(get("BX")/float64(p.at["BX"]))) + 0.12*math.Abs(get("TILE")-float64(p.at["TILE"]))
	t += 0.06*math.Abs(math.Log2(get("UNROLL")/float64(p.at["UNROLL"]))) + 0.08*math.Abs(get("PAD")-float64(p.at["PAD"]))
	if math.Mod(get("BX")*get("BY"), 32) != 0 {
		t *= 1.2
	}
	return t
}

// harness answers with the landscape, 0.5 % noise, and a launch failure where a tile would not fit.
func (p *planted) harness() *harnesstest.Scripted {
	return &harnesstest.Scripted{NoiseSD: 0.005,
		TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
			n, _ := size.Get("n")
			return float64(n) / 10 * p.slowdown(c)
		},
		FaultFunc: func(c *harness.Candidate, _ *harness.Plan) harness.Fault {
			by, _ := c.Configuration["BY"].AsInt()
			tile, _ := c.Configuration["TILE"].AsInt()
			if by*tile >= 48 {
				return harness.FaultLaunch
			}
			return harness.FaultNone
		}}
}

// judge compares the campaign's result with the truth.
func (p *planted) judge(r *scheduler.Result) *selftestVerdict {
	v := &selftestVerdict{Structure: "tiled", Planted: harness.Configuration{}, Result: r}
	for name, x := range p.at {
		v.Planted[name] = expr.Int(x)
	}
	fail := func(format string, args ...any) { v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...)) }
	if r.Winner == nil {
		fail("no candidate was confirmed")
		return v
	}
	slow := 0.0
	for _, s := range append(p.structures, harnesstest.Structure("naive")) {
		if s.Name == r.Winner.Structure {
			slow = p.slowdown(&harness.Candidate{Structure: s, Configuration: r.Winner.Configuration})
		}
	}
	v.Reached, v.TrueSpeedup = 1/slow, 3/slow
	if v.Reached < 0.95 {
		fail("the winner reaches %.3f of the planted optimum, want 0.95 or more", v.Reached)
	}
	switch {
	case r.Winner.ReplayedSpeedup == 0:
		fail("the winner was not replayed")
	case math.Abs(r.Winner.ReplayedSpeedup/v.TrueSpeedup-1) > 0.01:
		fail("the replayed speedup is %.3f, the true one %.3f", r.Winner.ReplayedSpeedup, v.TrueSpeedup)
	}
	v.Passed = len(v.Reasons) == 0
	return v
}

func (v *selftestVerdict) print(env environment) error {
	verdict := "PASS"
	if !v.Passed {
		verdict = "FAIL"
	}
	w := v.Result.Winner
	if w == nil {
		_, err := fmt.Fprintf(env.stdout, "%s: %s\n", verdict, v.Reasons[0])
		return err
	}
	_, err := fmt.Fprintf(env.stdout, "%s: %d evaluations in %.1f s; planted %s %v, found %s %v: %.3f of the optimum; speedup %.3f confirmed, %.3f replayed, %.3f true\n",
		verdict, v.Result.Evaluations, v.TookSeconds, v.Structure, v.Planted, w.Structure, w.Configuration, v.Reached, w.Speedup, w.ReplayedSpeedup, v.TrueSpeedup)
	return err
}
