package report

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// Config writes a configuration as NAME=value, sorted by name.
func Config(c harness.Configuration) string {
	names := make([]string, 0, len(c))
	for n := range c {
		names = append(names, n)
	}
	sort.Strings(names)
	for i, n := range names {
		names[i] = n + "=" + c[n].String()
	}
	return strings.Join(names, " ")
}

// Short is a candidate's id as people type it.
func Short(id string) string { return id[:min(12, len(id))] }

// Summary writes the result of a campaign: what `run` ends with.
func (r *Report) Summary(w io.Writer) error {
	p := &printer{w: w}
	res := r.Result
	p.line("%s on %s (%s): campaign %s, %s", res.Task, res.Target, r.Arch, r.Campaign, r.State)
	p.line("%d evaluations in %s (%.2f a second), device busy %.0f %%, worker held %.0f %%%s", res.Evaluations, clock(r.SpentSeconds), res.EvaluationsPerSecond,
		100*res.DeviceBusy, 100*res.WorkerHeld, counted(res.Candidates))
	if r.EndReason != "" {
		p.line("ended because %s", r.EndReason)
	}
	if r.Note != "" {
		p.line("failed: %s", r.Note)
	}
	p.line("")
	if res.Winner == nil {
		p.line("No winner: nothing was confirmed to be faster than the baseline.")
	} else {
		r.winner(p)
	}
	if n := r.Noise; n != nil {
		p.line("smallest gain that a confirmation here finds with %.0f %% power: %.2f %% (a round differs by %.2f %%, A/A of %d rounds)", 100*n.Power, 100*n.Detectable, 100*n.SD, n.Rounds)
	}
	return p.err
}

func (r *Report) winner(p *printer) {
	w := r.Result.Winner
	p.line("winner    %s  %s  (candidate %s)", w.Structure, Config(w.Configuration), Short(w.Candidate))
	if w.ReplayedSpeedup > 0 {
		searched := ""
		if s := r.Confession.SearchedSpeedup; s > 0 {
			searched = fmt.Sprintf("searched at %.2f×, ", s)
		}
		p.line("replayed  %.2f× the baseline, 95 %% between %.2f× and %.2f×   (%sconfirmed at %.2f×)", w.ReplayedSpeedup, w.Interval[0], w.Interval[1], searched, w.Speedup)
	} else {
		p.line("confirmed %.2f× the baseline, 95 %% between %.2f× and %.2f×   (not replayed)", w.Speedup, w.Interval[0], w.Interval[1])
	}
	p.line("")
	t := p.table()
	t.row("size", "baseline", "confirmed", "replayed", "speedup")
	for _, s := range w.Sizes {
		final := s.RuntimeUS
		replayed := "-"
		if s.ReplayedUS > 0 {
			final, replayed = s.ReplayedUS, micros(s.ReplayedUS)
		}
		t.row(s.Size.String(), micros(s.BaselineUS), micros(s.RuntimeUS), replayed, fmt.Sprintf("%.2f×", s.BaselineUS/final))
	}
	t.end()
	p.line("")
}

// Text writes the whole report for a terminal.
func (r *Report) Text(w io.Writer) error {
	if err := r.Summary(w); err != nil {
		return err
	}
	p := &printer{w: w}
	p.line("")
	r.confession(p)
	r.why(p)
	r.priors(p)
	p.line("Structures")
	t := p.table()
	t.row("", "structure", "direction", "tried", "evaluated", "failed", "best as searched", "configuration", "status")
	for _, s := range r.Structures {
		best := "-"
		if s.BestSpeedup > 0 {
			best = fmt.Sprintf("%.2f×", s.BestSpeedup)
		}
		t.row("", s.Name, s.Direction, fmt.Sprint(s.Asked), fmt.Sprint(s.Evaluated), fmt.Sprint(s.Failed), best, Config(s.Configuration), s.Status)
	}
	t.end()
	if len(r.Failures) > 0 {
		p.line("\nFailures")
		t = p.table()
		for _, f := range r.Failures {
			t.row("", f.Fault, fmt.Sprint(f.Count), oneLine(f.Reason, 100))
		}
		t.end()
	}
	if len(r.Losers) > 0 {
		p.line("\nNearest losers")
		t = p.table()
		for _, l := range r.Losers {
			t.row("", Short(l.Candidate), l.Structure, Config(l.Configuration), fmt.Sprintf("%.2f×", l.Speedup), oneLine(l.Why, 110))
		}
		t.end()
	}
	r.reproduce(p)
	return p.err
}

// why tells the confirmations in order.
func (r *Report) why(p *printer) {
	if len(r.Verdicts) == 0 {
		return
	}
	p.line("Confirmations")
	t := p.table()
	for _, v := range r.Verdicts {
		word := "refused"
		switch {
		case v.Crowned:
			word = "crowned"
		case v.Dethroned:
			word = "dethroned"
		}
		t.row("", word, v.Structure, Config(v.Point.Configuration), oneLine(v.Reason, 160))
	}
	t.end()
	p.line("")
}

// reproduce lists what repeats the result and what it was measured with.
func (r *Report) reproduce(p *printer) {
	p.line("\nReproduce")
	for _, c := range r.Commands() {
		p.line("  %-44s %s", c[0], c[1])
	}
	e := r.Environment
	p.line("  measured on %s (%s, %d cores), %s, %s", e.Host, e.Device, e.Cores, e.Toolchain, e.Ridgepoint)
}

// Commands are the command lines that repeat the result, with what each does.
func (r *Report) Commands() [][2]string {
	var out [][2]string
	if r.Result.Winner != nil {
		out = append(out, [2]string{"ridgepoint replay " + r.Campaign, "builds and measures the winner again, fresh"},
			[2]string{"ridgepoint export " + r.Campaign, "writes the winner with a driver that checks and times it"})
	}
	if r.State == scheduler.StateStopped || r.State == scheduler.StateFailed || r.State == scheduler.StateRunning {
		out = append(out, [2]string{"ridgepoint resume " + r.Campaign, "goes on with it"})
	}
	return append(out, [2]string{fmt.Sprintf("ridgepoint run %s --seed %d", r.Name, r.Seed), "searches again with the same seed"})
}

func counted(c scheduler.Counts) string {
	var parts []string
	if c.Censored > 0 {
		parts = append(parts, fmt.Sprintf("%d stopped by racing", c.Censored))
	}
	if c.Cached > 0 {
		parts = append(parts, fmt.Sprintf("%d cached", c.Cached))
	}
	faults := make([]string, 0, len(c.Failed))
	for f := range c.Failed {
		faults = append(faults, f)
	}
	sort.Strings(faults)
	for _, f := range faults {
		parts = append(parts, fmt.Sprintf("%d %s", c.Failed[f], f))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; besides " + strings.Join(parts, ", ")
}

func micros(us float64) string {
	switch {
	case us >= 100_000:
		return fmt.Sprintf("%.1f ms", us/1000)
	case us >= 10_000:
		return fmt.Sprintf("%.2f ms", us/1000)
	case us >= 100:
		return fmt.Sprintf("%.1f µs", us)
	default:
		return fmt.Sprintf("%.2f µs", us)
	}
}

func clock(seconds float64) string {
	s := int(seconds + 0.5)
	switch {
	case s >= 3600:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	case s >= 120:
		return fmt.Sprintf("%d min %02d s", s/60, s%60)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

type table struct {
	p *printer
	w *tabwriter.Writer
}

func (p *printer) table() *table {
	return &table{p: p, w: tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)}
}

func (t *table) row(cells ...string) {
	if t.p.err == nil {
		_, t.p.err = fmt.Fprintln(t.w, strings.Join(cells, "\t"))
	}
}

func (t *table) end() {
	if t.p.err == nil {
		t.p.err = t.w.Flush()
	}
}
