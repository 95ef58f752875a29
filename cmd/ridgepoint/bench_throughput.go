package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/configs"
	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// benchThroughputCmd tunes one structure for a while with the whole system round it and says how many candidates a second that
// gives, how busy the device was, and where the time of one evaluation went.
type benchThroughputCmd struct {
	Task      string        `default:"softmax_2d" help:"Task: a shipped name, a file or a folder."`
	Target    string        `default:"cuda" help:"Target: cuda, hip or cpu."`
	Structure string        `help:"Tune this structure alone; default: the task's first."`
	For       time.Duration `default:"3m" help:"How long to tune."`
	Racing    bool          `help:"Stop candidates that cannot win (racing)."`
	InFlight  int           `default:"12" help:"Candidates under way at once."`
	Optimizer string        `default:"tpe" help:"Parameter search."`
	Seed      uint64        `default:"1" help:"Seed of every random choice."`
	Records   string        `placeholder:"FILE" help:"Write the raw records, one JSON object a line."`
	Emulated  int           `placeholder:"N" help:"Instead, send N candidates over the queue to the emulated device and count what became of them: no card is needed, and times are refused."`
	Latency   int           `placeholder:"N" help:"Instead, submit N candidates one after another to idle workers and print how long each took to its report."`
	JSON      bool          `name:"json" help:"Print one JSON object."`
}

// throughput is what the command prints. Rates are a second of wall time between the first and the last search evaluation.
type throughput struct {
	Task        string             `json:"task"`
	Structure   string             `json:"structure"`
	Racing      bool               `json:"racing"`
	Device      string             `json:"device"`
	Ridgepoint  string             `json:"ridgepoint"`
	WallSeconds float64            `json:"wall_seconds"`
	Evaluations int                `json:"evaluations"` // distinct, fully verified and timed
	Censored    int                `json:"censored"`
	Failed      int                `json:"failed"`
	PerSecond   float64            `json:"evaluations_per_second"`
	Decided     float64            `json:"decided_per_second"` // censored and failed ones counted too
	DeviceBusy  float64            `json:"device_busy"`        // event-measured device time over wall time
	WorkerHeld  float64            `json:"worker_held"`        // time in which a worker held the device, over wall time
	MedianMS    map[string]float64 `json:"median_ms"`          // of one full evaluation, by part
	// Verification is the median share of an evaluation's device time that is neither flush nor timed kernels.
	Verification float64            `json:"verification_share"`
	HeldBy       map[string]float64 `json:"held_by"`           // share of the wall time by the trials' purpose
	Untimed      bool               `json:"untimed,omitempty"` // emulated: counts alone
}

// Run tunes in a store of its own, which it removes.
func (c *benchThroughputCmd) Run(ctx context.Context, env environment) error {
	cfg, err := configs.Load("softmax-cuda")
	if err != nil {
		return err
	}
	k := &cfg.Campaign
	k.Name, k.Task, k.File, k.Target, k.Seed, k.Optimizer, k.InFlight, k.Racing = "throughput", c.Task, "", c.Target, c.Seed, c.Optimizer, c.InFlight, c.Racing
	k.ProfileEvery = 0 // a profiler would hold the device that is being timed
	k.Budget.Wall, k.Budget.Evaluations = configs.Duration(c.For), 0
	campaign, structures, err := newCampaign(k)
	if err != nil {
		return err
	}
	at := 0
	if c.Structure != "" {
		at = slices.IndexFunc(structures, func(s *harness.Structure) bool { return s.Name == c.Structure })
		if at < 0 {
			return &exitError{exitUsage, fmt.Errorf("task %s has no structure %s for %s", c.Task, c.Structure, c.Target)}
		}
	}
	if c.Emulated > 0 {
		return c.emulated(ctx, env, campaign, structures[at])
	}
	if c.Latency > 0 {
		return c.latency(ctx, env, campaign, structures[at])
	}
	dir, err := os.MkdirTemp("", "ridgepoint-throughput-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	store, err := memory.Open(ctx, dir)
	if err != nil {
		return err
	}
	quiet := env
	quiet.stdout = io.Discard
	s := &session{env: quiet, store: store, campaign: campaign, structures: structures[at : at+1], json: true}
	runErr := s.run(ctx)
	var verdict *exitError
	if errors.As(runErr, &verdict) && verdict.code == exitVerdict {
		runErr = nil // that no winner was found says nothing of the rate
	}
	var records []*harness.Record
	err = store.Records(ctx, campaign.ID, 0, func(r *harness.Record) error { records = append(records, r); return nil })
	if err = errors.Join(runErr, err, store.Close()); err != nil {
		return err
	}
	return c.told(env, records, campaign, structures[at])
}

// told keeps the records where they are asked for and prints their summary.
func (c *benchThroughputCmd) told(env environment, records []*harness.Record, campaign *scheduler.Campaign, st *harness.Structure) error {
	if c.Records != "" {
		if err := writeRecords(c.Records, records); err != nil {
			return err
		}
	}
	t := summarise(records)
	t.Task, t.Structure, t.Racing, t.Ridgepoint = c.Task, st.Name, c.Racing, buildVersion()
	if t.Untimed = campaign.Baseline.Options.Arch == device.Emulated; t.Untimed {
		t.refuse()
	}
	if c.JSON {
		return writeJSON(env.stdout, t)
	}
	return t.print(env.stdout)
}

// refuse takes every time back: on the emulated device none means anything.
func (t *throughput) refuse() {
	t.PerSecond, t.Decided, t.DeviceBusy, t.WorkerHeld, t.WallSeconds, t.Verification = 0, 0, 0, 0, 0, 0
	t.MedianMS, t.HeldBy = nil, nil
}

func writeRecords(file string, records []*harness.Record) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, r := range records {
		if err := writeJSON(f, r); err != nil {
			return err
		}
	}
	return nil
}

// summarise counts search evaluations over the time from the first one's start to the last one's end.
func summarise(records []*harness.Record) throughput {
	var t throughput
	var begin, end time.Time
	parts := map[string][]float64{}
	for _, r := range records {
		if r.Purpose != string(scheduler.PurposeSearch) {
			continue
		}
		p := &r.Report
		if begin.IsZero() || p.Started.Before(begin) {
			begin = p.Started
		}
		if p.Finished.After(end) {
			end = p.Finished
		}
		if p.Environment.Device != "" {
			t.Device = p.Environment.Device
		}
		switch {
		case !p.Fault.Measured():
			t.Failed++
			continue
		case p.Censored != nil:
			t.Censored++
			continue
		}
		t.Evaluations++
		s := p.Split
		if s.Device > 0 {
			parts["verification"] = append(parts["verification"], 1e3*(s.Device-s.Flush-s.Kernels)/s.Device)
		}
		for name, v := range map[string]float64{"queue": s.Queue, "compile": s.Compile, "load": s.Load, "inputs": s.Inputs, "verify": s.Verify, "measure": s.Measure, "device": s.Device, "flush": s.Flush, "kernels": s.Kernels,
			"total": s.Total, "rest": s.Total - s.Load - s.Inputs - s.Verify - s.Measure} {
			parts[name] = append(parts[name], 1e3*v)
		}
	}
	var busy, held float64 // of confirmations in between, too
	t.HeldBy = map[string]float64{}
	t.WallSeconds = end.Sub(begin).Seconds()
	for _, r := range records {
		if p := &r.Report; !p.Started.Before(begin) && !p.Finished.After(end) {
			busy += p.Split.Device
			held += p.Split.Total
			t.HeldBy[r.Purpose] += p.Split.Total / t.WallSeconds
		}
	}
	if t.WallSeconds > 0 {
		t.PerSecond = float64(t.Evaluations) / t.WallSeconds
		t.Decided = float64(t.Evaluations+t.Censored+t.Failed) / t.WallSeconds
		t.DeviceBusy, t.WorkerHeld = busy/t.WallSeconds, held/t.WallSeconds
	}
	if v := parts["verification"]; len(v) > 0 {
		t.Verification = measure.Median(v) / 1e3
		delete(parts, "verification")
	}
	t.MedianMS = map[string]float64{}
	for name, v := range parts {
		sort.Float64s(v)
		t.MedianMS[name] = v[len(v)/2]
	}
	return t
}

func (t throughput) print(w io.Writer) error {
	if t.Untimed {
		_, err := fmt.Fprintf(w, "%s / %s on the emulated device: %d evaluations, %d failed; times are refused there\n", t.Task, t.Structure, t.Evaluations, t.Failed)
		return err
	}
	_, err := fmt.Fprintf(w, "%s / %s on %s, racing %t, %.1f s\n%d evaluations, %d censored, %d failed\n%.2f evaluations a second, %.2f decided a second, device_busy %.2f, worker_held %.2f\nmedian of one evaluation, ms:",
		t.Task, t.Structure, t.Device, t.Racing, t.WallSeconds, t.Evaluations, t.Censored, t.Failed, t.PerSecond, t.Decided, t.DeviceBusy, t.WorkerHeld)
	for _, name := range []string{"queue", "compile", "load", "inputs", "verify", "flush", "measure", "rest", "total", "device", "kernels"} {
		if err == nil {
			_, err = fmt.Fprintf(w, " %s %.1f", name, t.MedianMS[name])
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "\nverification takes %.0f %% of an evaluation's device time (flush and timed kernels the rest; wanted: 35 %% at most)\nthe device was held by:", 100*t.Verification)
	}
	for _, name := range slices.Sorted(maps.Keys(t.HeldBy)) {
		if err == nil {
			_, err = fmt.Fprintf(w, " %s %.2f", name, t.HeldBy[name])
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// latency submits candidates one after another to a harness that has nothing else to do. The first warms it up: it starts the
// device's process and makes the input sets, and is not counted.
func (c *benchThroughputCmd) latency(ctx context.Context, env environment, campaign *scheduler.Campaign, s *harness.Structure) error {
	h, closeFunc, err := env.openHarness(ctx, harnessConfig{Task: campaign.Task, Target: campaign.Target, Log: zerolog.New(env.stderr)})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0x1a7e))
	var took []float64
	for tries := 0; len(took) <= c.Latency; tries++ {
		if err := ctx.Err(); err != nil {
			return errors.Join(&exitError{exitStopped, errors.New("interrupted; run the command again")}, closeFunc())
		}
		if tries > 10_000 {
			return errors.Join(&exitError{exitVerdict, fmt.Errorf("structure %s: none of %d configurations drawn is feasible", s.Name, tries)}, closeFunc())
		}
		candidate, err := task.NewCandidate(campaign.Task, s, drawn(s, rng))
		if err != nil {
			continue // not feasible: draw again
		}
		q := &harness.Request{Task: campaign.Task, Candidate: candidate, Plan: harness.Plan{Stage: harness.StageSearch, Seed: rng.Uint64(), FreshCache: true}}
		begin := time.Now()
		b, r, err := h.Compile(ctx, q)
		if err == nil && b != nil {
			r, err = h.Benchmark(ctx, q, b)
		}
		if err != nil {
			return errors.Join(err, closeFunc())
		}
		if !r.Fault.Measured() && len(took) == 0 {
			return errors.Join(&exitError{exitVerdict, fmt.Errorf("structure %s: %s: %s; name another with --structure", s.Name, r.Fault, r.Reason)}, closeFunc())
		}
		if r.Fault.Measured() || len(took) > 0 {
			took = append(took, 1e3*time.Since(begin).Seconds())
		}
	}
	took = took[1:]
	sort.Float64s(took)
	result := map[string]float64{"candidates": float64(len(took)), "median_ms": took[len(took)/2], "p90_ms": took[len(took)*9/10], "worst_ms": took[len(took)-1]}
	if c.JSON {
		return errors.Join(closeFunc(), writeJSON(env.stdout, result))
	}
	_, err = fmt.Fprintf(env.stdout, "%d candidates, one at a time: median %.0f ms, p90 %.0f ms, worst %.0f ms\n", len(took), result["median_ms"], result["p90_ms"], result["worst_ms"])
	return errors.Join(closeFunc(), err)
}
