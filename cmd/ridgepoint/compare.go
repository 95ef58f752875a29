package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// compareCmd puts finished campaigns, or groups of repeats, side by side.
type compareCmd struct {
	Groups []string `arg:"" help:"Campaigns to compare; repeats of one setting are joined by commas: A1,A2,A3 B1,B2,B3."`
	JSON   bool     `name:"json" help:"Print one JSON object."`
	dataFlag
}

// course is how one campaign went.
type course struct {
	ID        string           `json:"campaign"`
	Objective []float64        `json:"-"` // best so far after each evaluation, as ratio to the baseline
	Device    []float64        `json:"-"` // device seconds at each evaluation
	Speedup   float64          `json:"speedup"`
	Device0   float64          `json:"device_seconds"`
	Tokens    int64            `json:"tokens"`
	MicroUSD  int64            `json:"micro_usd"`
	Failed    map[string]int64 `json:"failed"`
	Drafts    int64            `json:"drafts"`
}

// estimate is a mean over the repeats of a group, with its 95 % interval; one repeat has none.
type estimate struct {
	Mean     float64     `json:"mean"`
	Interval *[2]float64 `json:"interval,omitempty"`
	N        int         `json:"n"`
}

// compared is one group.
type compared struct {
	Group        string              `json:"group"`
	Campaigns    []string            `json:"campaigns"`
	Speedup      estimate            `json:"speedup"` // replayed, else confirmed
	Evaluations  estimate            `json:"evaluations"`
	Device       estimate            `json:"device_seconds"`
	Tokens       estimate            `json:"tokens"`
	USD          estimate            `json:"usd"`
	Drafts       estimate            `json:"drafts"`
	Failed       map[string]estimate `json:"failed"`
	ByEvaluation map[string]estimate `json:"best_at_evaluations"`    // evaluations -> best so far over the baseline's time
	ByDevice     map[string]estimate `json:"best_at_device_seconds"` // the same against device seconds
}

// Run compares.
func (c *compareCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	groups := make([][]*course, len(c.Groups))
	task := ""
	for i, g := range c.Groups {
		for _, id := range strings.Split(g, ",") {
			k, name, err := courseOf(ctx, store, strings.TrimSpace(id))
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if task != "" && name != task {
				return &exitError{exitUsage, fmt.Errorf("campaign %s searched %s, the others %s: only campaigns of one task and target compare", k.ID, name, task)}
			}
			task = name
			groups[i] = append(groups[i], k)
		}
	}
	out := make([]compared, len(groups))
	evaluations, device := marks(groups)
	for i, g := range groups {
		out[i] = groupSummary(c.Groups[i], g, evaluations, device)
	}
	if c.JSON {
		return writeJSON(env.stdout, map[string]any{"task": task, "groups": out})
	}
	return printComparison(env.stdout, task, out, evaluations, device)
}

// courseOf reads a campaign's way from its log.
func courseOf(ctx context.Context, store *memory.Store, id string) (*course, string, error) {
	k := &course{Failed: map[string]int64{}}
	best := 0.0
	v, err := viewOf(ctx, store, id, func(_ *scheduler.Event, data any, s *decide.State) {
		if o, ok := data.(*scheduler.Summary); ok && int(s.Counts.Evaluated) > len(k.Objective) {
			if o.Objective > 0 && !o.Censored && (best == 0 || o.Objective < best) {
				best = o.Objective
			}
			k.Objective, k.Device = append(k.Objective, best), append(k.Device, s.Time.Device)
		}
	})
	if err != nil {
		return nil, "", err
	}
	k.ID = v.Campaign.ID
	k.Device0, k.Tokens, k.MicroUSD, k.Drafts = v.State.Time.Device, v.State.Drafts.Spent.Tokens, v.State.Drafts.Spent.MicroUSD, v.State.Drafts.Last
	for fault, n := range v.State.Counts.Failed {
		k.Failed[fault] = n
	}
	if inc := v.State.Incumbent(); inc != nil && inc.Verdict.Paired != nil {
		k.Speedup = inc.Verdict.Paired.Speedup
		if r := v.State.Replayed; r != nil && r.Contest != nil {
			k.Speedup = r.Contest.Speedup
		}
	}
	return k, fmt.Sprintf("%s on %s", v.Campaign.Task.Name, v.Campaign.Target), nil
}

// marks are the evaluations and device seconds at which curves are read: up to what every campaign reached.
func marks(groups [][]*course) (evaluations []int, device []float64) {
	most, seconds := math.MaxInt, math.Inf(1)
	for _, g := range groups {
		for _, k := range g {
			most, seconds = min(most, len(k.Objective)), math.Min(seconds, k.Device0)
		}
	}
	for _, n := range []int{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120} {
		if n < most {
			evaluations = append(evaluations, n)
		}
	}
	if most > 0 && most < math.MaxInt {
		evaluations = append(evaluations, most)
	}
	for _, part := range []float64{0.1, 0.25, 0.5, 1} {
		device = append(device, seconds*part)
	}
	return evaluations, device
}

func (k *course) at(n int) float64 {
	if n < 1 || n > len(k.Objective) {
		return math.NaN()
	}
	return k.Objective[n-1]
}

func (k *course) atDevice(seconds float64) float64 {
	return k.at(sort.Search(len(k.Device), func(i int) bool { return k.Device[i] > seconds }))
}

func groupSummary(name string, g []*course, evaluations []int, device []float64) compared {
	of := func(f func(*course) float64) estimate {
		var m crown.Moments
		for _, k := range g {
			if v := f(k); !math.IsNaN(v) {
				m.Add(v)
			}
		}
		e := estimate{Mean: m.Mean, N: int(m.N)}
		if m.N >= 2 {
			half := distuv.StudentsT{Sigma: 1, Nu: float64(m.N - 1)}.Quantile(0.975) * math.Sqrt(m.Variance()/float64(m.N))
			e.Interval = &[2]float64{m.Mean - half, m.Mean + half}
		}
		return e
	}
	out := compared{Group: name, Failed: map[string]estimate{}, ByEvaluation: map[string]estimate{}, ByDevice: map[string]estimate{},
		Speedup: of(func(k *course) float64 { return k.Speedup }), Evaluations: of(func(k *course) float64 { return float64(len(k.Objective)) }),
		Device: of(func(k *course) float64 { return k.Device0 }), Tokens: of(func(k *course) float64 { return float64(k.Tokens) }),
		USD: of(func(k *course) float64 { return float64(k.MicroUSD) / 1e6 }), Drafts: of(func(k *course) float64 { return float64(k.Drafts) })}
	for _, k := range g {
		out.Campaigns = append(out.Campaigns, k.ID)
		for fault := range k.Failed {
			out.Failed[fault] = of(func(k *course) float64 { return float64(k.Failed[fault]) })
		}
	}
	for _, n := range evaluations {
		out.ByEvaluation[fmt.Sprint(n)] = of(func(k *course) float64 { return k.at(n) })
	}
	for _, s := range device {
		out.ByDevice[fmt.Sprintf("%.3g", s)] = of(func(k *course) float64 { return k.atDevice(s) })
	}
	return out
}

// String writes the mean, and the interval where there is one.
func (e estimate) String() string {
	switch {
	case e.N == 0:
		return "-"
	case e.Interval == nil:
		return fmt.Sprintf("%.4g", e.Mean)
	default:
		return fmt.Sprintf("%.4g [%.4g, %.4g]", e.Mean, e.Interval[0], e.Interval[1])
	}
}

func printComparison(w io.Writer, task string, out []compared, evaluations []int, device []float64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, f func(c compared) string) {
		fmt.Fprint(t, name) //nolint:errcheck // a tabwriter fails at Flush
		for _, c := range out {
			fmt.Fprint(t, "\t", f(c)) //nolint:errcheck // as above
		}
		fmt.Fprintln(t) //nolint:errcheck // as above
	}
	row(task, func(c compared) string { return fmt.Sprintf("%s (n=%d)", c.Group, len(c.Campaigns)) })
	row("speedup", func(c compared) string { return c.Speedup.String() })
	for _, n := range evaluations {
		row(fmt.Sprintf("best at %d evaluations", n), func(c compared) string { return c.ByEvaluation[fmt.Sprint(n)].String() })
	}
	for _, s := range device {
		row(fmt.Sprintf("best at %.3g device-seconds", s), func(c compared) string { return c.ByDevice[fmt.Sprintf("%.3g", s)].String() })
	}
	row("evaluations", func(c compared) string { return c.Evaluations.String() })
	row("device-seconds", func(c compared) string { return c.Device.String() })
	row("drafts", func(c compared) string { return c.Drafts.String() })
	row("tokens", func(c compared) string { return c.Tokens.String() })
	row("US dollars", func(c compared) string { return c.USD.String() })
	faults := map[string]bool{}
	for _, c := range out {
		for f := range c.Failed {
			faults[f] = true
		}
	}
	names := make([]string, 0, len(faults))
	for f := range faults {
		names = append(names, f)
	}
	sort.Strings(names)
	for _, f := range names {
		row("failed: "+f, func(c compared) string { return c.Failed[f].String() })
	}
	return t.Flush()
}
