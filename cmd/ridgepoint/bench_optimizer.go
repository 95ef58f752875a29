package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ridgepoint/optimizer/gp"
	"ridgepoint/optimizer/replay"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/optimizer/transfer"
)

// benchOptimizerCmd runs search strategies against recorded tuning spaces.
type benchOptimizerCmd struct {
	Spaces      string   `type:"existingdir" placeholder:"DIR" help:"Folder of recorded spaces: our .jsonl(.gz), Kernel Tuner caches and T4 results (.json, .json.gz)."`
	Strategy    []string `default:"portfolio" placeholder:"NAME" help:"Strategies, separated by commas (random, local, tpe, goptuna-tpe, gp, portfolio)."`
	Seeds       int      `default:"30" help:"Runs of each strategy on each space."`
	FirstSeed   uint64   `placeholder:"N" help:"Seed of the first run; the next have N+1, N+2 and so on. Figures that decided something want other seeds to be confirmed with."`
	Budget      int      `default:"220" help:"Unique configurations a run may evaluate."`
	Transfer    bool     `help:"Offer the other recordings of the same space as records, and compare with the same seeds without."`
	Adversarial string   `enum:",reversed,foreign" default:"" help:"Offer misleading records instead: reversed (fast and slow swapped) or foreign (another kernel's, by equal parameter names); compared in the same way."`
	InFlight    int      `default:"1" help:"Evaluations at a time."`
	Noise       bool     `help:"Add log-normal noise of the recorded spread (at most 5 %) and 1 % outliers of 1.5 times."`
	Only        string   `placeholder:"TEXT" help:"Only the spaces whose name contains TEXT."`
	Except      string   `placeholder:"TEXT" help:"Not the spaces whose name contains TEXT."`
	Structures  bool     `help:"Take the algorithm switches of conv, gemm and pnpoly as structures, and compare ways of spending one budget over them."`
	Ablate      bool     `help:"Compare the portfolio with itself less one part, for each part, on the same seeds."`
	Latency     bool     `help:"Instead: how long asks take at 1000 and 2000 observations of a space with 8 parameters and 20 000 configurations."`
	CSV         string   `type:"path" placeholder:"FILE" help:"Write one line a run to FILE."`
	SVG         string   `type:"path" placeholder:"FILE" help:"Draw the curves to FILE."`
	JSON        bool     `help:"Print the summaries as JSON."`
	Jobs        int      `short:"j" default:"0" help:"Runs at a time; 0: one for each processor."`
}

// Run prints how close each strategy came to the recorded optimum, over the evaluations.
func (c benchOptimizerCmd) Run(ctx context.Context, env environment) error {
	if err := c.check(); err != nil {
		return &exitError{exitUsage, err}
	}
	err := c.do(ctx, env)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return &exitError{exitStopped, errors.New("interrupted; nothing was written, run the command again (fewer --seeds end sooner)")}
	}
	return err
}

// mostRuns bounds --seeds and --budget; the shared figures take 30 and 220.
const mostRuns = 1_000_000

// check refuses flags that are out of range or would do nothing together.
func (c benchOptimizerCmd) check() error {
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{{"--seeds", c.Seeds, 1}, {"--budget", c.Budget, 1}, {"--in-flight", c.InFlight, 1}, {"--jobs", c.Jobs, 0}} {
		if n.value < n.least || n.value > mostRuns {
			return fmt.Errorf("%s is %d: want %d to %d", n.flag, n.value, n.least, mostRuns)
		}
	}
	for i, name := range c.Strategy {
		if !slices.Contains(strategy.Names(), name) {
			return fmt.Errorf("strategy %q is unknown: use %s", name, strings.Join(strategy.Names(), ", "))
		}
		if slices.Contains(c.Strategy[:i], name) {
			return fmt.Errorf("strategy %q is named twice: take one out", name)
		}
	}
	other := c.Transfer || c.Adversarial != "" || c.CSV != "" || c.SVG != ""
	switch {
	case c.Transfer && c.Adversarial != "":
		return errors.New("--transfer offers honest records and --adversarial misleading ones: keep one")
	case count(c.Structures, c.Ablate, c.Latency) > 1:
		return errors.New("--structures, --ablate and --latency are three different measurements: keep one")
	case (c.Structures || c.Latency) && (other || c.InFlight > 1 || c.Noise || c.FirstSeed > 0):
		return errors.New("--structures and --latency go without --transfer, --adversarial, --first-seed, --in-flight, --noise, --csv and --svg: take those out")
	case (c.Structures || c.Ablate) && len(c.Strategy) > 1:
		return errors.New("--structures and --ablate take one strategy: name it alone")
	case c.Ablate && !strategy.ReadsRecords(c.Strategy[0]):
		return fmt.Errorf("--ablate: strategy %s has no parts to leave out: use portfolio or gp", c.Strategy[0])
	case (c.Transfer || c.Adversarial != "") && !slices.ContainsFunc(c.Strategy, strategy.ReadsRecords):
		return fmt.Errorf("none of the strategies %s reads records: add portfolio or gp, or leave --transfer and --adversarial out", strings.Join(c.Strategy, ", "))
	case c.CSV != "" && c.CSV == c.SVG:
		return fmt.Errorf("--csv and --svg are both %s: give each its own file", c.CSV)
	}
	return errors.Join(writable("--csv", c.CSV), writable("--svg", c.SVG))
}

func count(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// writable reports a result file that cannot be written before hours are spent on what goes into it. It leaves no file behind.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("%s: %w: name a file in a folder that exists", flag, err)
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func (c benchOptimizerCmd) do(ctx context.Context, env environment) error {
	if c.Latency {
		return c.latencies(ctx, env)
	}
	if c.Spaces == "" {
		return &exitError{exitUsage, fmt.Errorf("--spaces DIR is needed: the folder of recorded spaces")}
	}
	all, err := replay.LoadDir(c.Spaces)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	records := c.filter(all)
	if len(records) == 0 {
		return &exitError{exitUsage, fmt.Errorf("--only %q --except %q leaves none of the %d spaces in %s", c.Only, c.Except, len(all), c.Spaces)}
	}
	if c.Structures {
		return c.contests(ctx, env, records)
	}
	if c.Ablate {
		c.Strategy = ablations(c.Strategy[0])
	} else if c.Transfer || c.Adversarial != "" {
		c.Strategy = withoutRecords(c.Strategy)
	}
	priors, err := c.priors(records, all)
	if err != nil {
		return err
	}
	plan := replay.Plan{
		Records: records, Strategies: c.Strategy, Seeds: c.Seeds, FirstSeed: c.FirstSeed, Parallel: c.jobs(),
		Conditions: replay.Conditions{Budget: c.Budget, InFlight: c.InFlight, Noise: c.Noise, Now: time.Now},
		New: func(r *replay.Record, name string, seed uint64) (replay.Searcher, error) {
			prior := priors[r.Name]
			if plain, cold := strings.CutSuffix(name, replay.WithoutRecords); cold {
				name, prior = plain, nil
			}
			name, part, _ := strings.Cut(name, ablationMark)
			return strategy.New(name, r.Space, strategy.Options{Seed: seed, Prior: prior, Without: part})
		},
		Progress: progress(env.stderr),
	}
	cells, err := plan.Do(ctx)
	if err != nil {
		return err
	}
	return c.write(env, cells, c.unrecorded(records, priors))
}

// unrecorded returns the names of the recordings that records were wanted for and none of the kind exist.
func (c benchOptimizerCmd) unrecorded(records []*replay.Record, priors map[string]*transfer.Prior) []string {
	var out []string
	for _, r := range records {
		if (c.Transfer || c.Adversarial != "") && priors[r.Name] == nil {
			out = append(out, r.Name)
		}
	}
	return out
}

// rival is the strategy that none may fall behind.
const rival = "random"

// ablationMark stands between a strategy and the part that it does without.
const ablationMark = " without "

// ablations returns a strategy and the same less one part, for each.
func ablations(name string) []string {
	out := []string{name}
	for _, p := range gp.Parts() {
		out = append(out, name+ablationMark+string(p))
	}
	if name == "portfolio" {
		out = append(out, name+ablationMark+strategy.WithoutArms)
	}
	return out
}

// withoutRecords returns the strategies, and behind each that reads records the same without.
func withoutRecords(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, name)
		if strategy.ReadsRecords(name) {
			out = append(out, name+replay.WithoutRecords)
		}
	}
	return out
}

// latencies measures the strategies one after another, alone.
func (c benchOptimizerCmd) latencies(ctx context.Context, env environment) error {
	space, err := replay.LatencySpace()
	if err != nil {
		return err
	}
	var out []*replay.Latency
	for _, name := range c.Strategy {
		for _, n := range []int{1000, 2000} {
			s, err := strategy.New(name, space, strategy.Options{Seed: 1})
			if err != nil {
				return err
			}
			l, err := replay.MeasureLatency(ctx, name, space, s, n, time.Now)
			if err != nil {
				return err
			}
			out = append(out, l)
		}
	}
	if !c.JSON {
		return replay.WriteLatencies(env.stdout, space, out)
	}
	e := json.NewEncoder(env.stdout)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func (c benchOptimizerCmd) jobs() int {
	if c.Jobs > 0 {
		return c.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// contests compares ways of spending one budget over structures.
func (c benchOptimizerCmd) contests(ctx context.Context, env environment, records []*replay.Record) error {
	plan := replay.ContestPlan{Records: records, Seeds: c.Seeds, Budget: c.Budget, Parallel: c.jobs(),
		New: func(part *replay.Record, seed uint64) (replay.Contender, error) {
			return strategy.New(c.Strategy[0], part.Space, strategy.Options{Seed: seed})
		}}
	contests, err := plan.Do(ctx)
	if errors.Is(err, replay.ErrNoSwitches) {
		return &exitError{exitUsage, fmt.Errorf("--structures: %w", err)}
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		return replay.WriteContests(env.stdout, contests)
	}
	e := json.NewEncoder(env.stdout)
	e.SetIndent("", "  ")
	return e.Encode(contests)
}

func (c benchOptimizerCmd) filter(all []*replay.Record) []*replay.Record {
	var out []*replay.Record
	for _, r := range all {
		if strings.Contains(r.Name, c.Only) && (c.Except == "" || !strings.Contains(r.Name, c.Except)) {
			out = append(out, r)
		}
	}
	return out
}

// priors returns what the other recordings say of each, by name; every recording in the folder may be a source.
func (c benchOptimizerCmd) priors(records, all []*replay.Record) (map[string]*transfer.Prior, error) {
	out := map[string]*transfer.Prior{}
	if !c.Transfer && c.Adversarial == "" {
		return out, nil
	}
	for _, r := range records {
		p, err := replay.PriorFor(r, all, c.Adversarial)
		if err != nil {
			return nil, err
		}
		if p != nil {
			out[r.Name] = p
		}
	}
	return out, nil
}

func (c benchOptimizerCmd) write(env environment, cells []replay.Cell, unrecorded []string) error {
	if c.CSV != "" {
		if err := toFile(c.CSV, func(w io.Writer) error { return replay.WriteCSV(w, cells) }); err != nil {
			return err
		}
	}
	if c.SVG != "" {
		if err := toFile(c.SVG, func(w io.Writer) error { return replay.WriteSVG(w, cells, c.Budget) }); err != nil {
			return err
		}
	}
	sums := replay.Summarise(cells)
	if c.Ablate && !c.JSON {
		return replay.WriteAblation(env.stdout, sums)
	}
	comparisons, err := replay.Compare(cells, c.Budget)
	if err != nil {
		return err
	}
	if !c.JSON {
		if err := replay.WriteTable(env.stdout, sums); err != nil {
			return err
		}
		if err := replay.WriteComparisons(env.stdout, comparisons, unrecorded); err != nil || !slices.Contains(c.Strategy, rival) {
			return err
		}
		return replay.WriteMargins(env.stdout, cells, rival)
	}
	e := json.NewEncoder(env.stdout)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Checkpoints []int               `json:"checkpoints"`
		Summaries   []replay.Summary    `json:"summaries"`
		Comparisons []replay.Comparison `json:"comparisons,omitempty"` // with records and without
		Unrecorded  []string            `json:"unrecorded,omitempty"`  // recordings that no records were found for
	}{replay.Marks(c.Budget), sums, comparisons, unrecorded})
}

// toFile writes a whole file; a failed close is an error.
func toFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return write(f)
}

// progress prints a line whenever another tenth of the runs is done.
func progress(w io.Writer) func(done, total int) {
	last := 0
	return func(done, total int) {
		if tenth := 10 * done / total; tenth > last {
			last = tenth
			_, _ = fmt.Fprintf(w, "%d of %d runs\n", done, total) // progress only: a closed stderr must not end the benchmark
		}
	}
}
