package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/report"
)

// view shows a running campaign on stderr: on a terminal one block that is redrawn in place, elsewhere plain lines. Sources and
// prompts never pass through it.
type view struct {
	campaign *scheduler.Campaign
	started  time.Time
	aa       int64      // trial of the A/A run; only the loop's goroutine uses it
	width    func() int // columns of the terminal; nil: not a terminal

	mu     sync.Mutex // guards all below, and w
	w      io.Writer
	names  []string // of structures, by number - 1
	drawn  int      // lines of the block on the screen
	latest loop.Progress
	shown  time.Time // of the last plain progress line
	best   float64   // last best speedup told in a plain line
}

// plainEvery is how often progress is told where there is no terminal.
const plainEvery = 10 * time.Second

func newView(w io.Writer, c *scheduler.Campaign) *view {
	v := &view{campaign: c, started: time.Now(), w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		v.width = func() int {
			columns, _, err := term.GetSize(int(f.Fd()))
			if err != nil || columns < 20 {
				return 80
			}
			return columns
		}
	}
	v.line("campaign %s: %s on %s (%s), seed %d, %s", c.ID, c.Task.Name, c.Target, c.Baseline.Options.Arch, c.Seed, limits(c.Settings))
	return v
}

func limits(s scheduler.Settings) string {
	var parts []string
	if s.Budget.WallSeconds > 0 {
		parts = append(parts, "budget "+span(s.Budget.WallSeconds))
	}
	if s.Budget.Evaluations > 0 {
		parts = append(parts, fmt.Sprintf("at most %d evaluations", s.Budget.Evaluations))
	}
	if s.Budget.DeviceSeconds > 0 {
		parts = append(parts, "device time "+span(s.Budget.DeviceSeconds))
	}
	if s.Target > 0 {
		parts = append(parts, fmt.Sprintf("until %.2f× is reached", s.Target))
	}
	return strings.Join(parts, ", ")
}

func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// logger writes warnings and errors between the blocks: for people on a terminal, as JSON elsewhere.
func (v *view) logger() zerolog.Logger {
	var w io.Writer = logLines{v}
	if v.width != nil {
		w = zerolog.ConsoleWriter{Out: logLines{v}, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).Level(zerolog.WarnLevel).With().Timestamp().Logger()
}

// logLines puts log lines above the block.
type logLines struct{ v *view }

// Write prints whole lines.
func (l logLines) Write(b []byte) (int, error) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.v.eraseLocked()
	n, err := l.v.w.Write(b)
	l.v.drawLocked()
	return n, err
}

// line prints one line above the block.
func (v *view) line(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.eraseLocked()
	fmt.Fprintf(v.w, "%s  %s\n", clockOf(time.Since(v.started)), fmt.Sprintf(format, args...))
	v.drawLocked()
}

func clockOf(d time.Duration) string {
	s := int(d.Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// event tells what a person may want to remember.
func (v *view) event(e *scheduler.Event, data any) {
	switch d := data.(type) {
	case *scheduler.Added:
		v.mu.Lock()
		v.names = append(v.names, d.Name)
		v.mu.Unlock()
	case *scheduler.Trial:
		if d.Purpose == scheduler.PurposeAA {
			v.aa = e.Trial
		}
		v.planned(d)
	case *scheduler.Summary:
		if d.Contest != nil && e.Trial == v.aa {
			v.line("the baseline against itself: a round differs by %.2f %%, %d rounds", 100*d.Contest.SD, d.Contest.Rounds)
		}
	case *scheduler.Verdict:
		v.judged(d)
	case *scheduler.Phase:
		switch d.Phase {
		case scheduler.PhaseEnding:
			v.line("the search ends: %s", d.Reason)
		case scheduler.PhaseStopped:
			v.line("stopping; another interrupt ends the process at once, and resume goes on from what is stored")
		default:
		}
	default:
	}
}

func (v *view) planned(t *scheduler.Trial) {
	switch t.Purpose {
	case scheduler.PurposeConfirm:
		v.line("confirming %s %s in %d paired rounds (expected gain %.1f %%, smallest that would be found %.2f %%)", v.name(t.Point.Structure), report.Config(t.Point.Configuration),
			t.Plan.Rounds, 100*t.Why["expected_gain"], 100*t.Why["detectable"])
	case scheduler.PurposeReplay:
		v.line("replaying the winner: fresh process, empty cache, new seeds")
	default:
	}
}

func (v *view) judged(d *scheduler.Verdict) {
	switch {
	case d.Dethroned:
		v.line("dethroned %s: %s", v.name(d.Point.Structure), d.Reason)
	case d.Crowned:
		v.line("new best confirmed: %s at %.2f× the baseline (%s)", v.name(d.Point.Structure), d.Paired.Speedup, d.Reason)
	default:
		v.line("not confirmed: %s: %s", v.name(d.Point.Structure), d.Reason)
	}
}

func (v *view) name(structure int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if structure < 1 || structure > len(v.names) {
		return "the baseline"
	}
	return v.names[structure-1]
}

// progress shows where the campaign stands.
func (v *view) progress(p loop.Progress) {
	v.mu.Lock()
	v.latest = p
	if v.width != nil {
		v.eraseLocked()
		v.drawLocked()
		v.mu.Unlock()
		return
	}
	better := p.BestSpeedup > v.best*1.01 && time.Since(v.shown) > time.Second
	due := better || time.Since(v.shown) >= plainEvery
	if due {
		v.shown, v.best = time.Now(), max(v.best, p.BestSpeedup)
	}
	v.mu.Unlock()
	if due {
		v.line("%s", strings.Join(plain(p), ", "))
	}
}

// plain says where a campaign stands in a few words.
func plain(p loop.Progress) []string {
	out := []string{fmt.Sprintf("%d evaluations", p.Counts.Evaluated)}
	if p.BestSpeedup > 0 {
		out = append(out, fmt.Sprintf("best %.2f× (%s)", p.BestSpeedup, p.BestStructure))
	}
	if p.Confirmed > 0 {
		out = append(out, fmt.Sprintf("confirmed %.2f×", p.Confirmed))
	}
	if f := faults(p.Counts); f != "" {
		out = append(out, f)
	}
	if p.Doing != "" {
		out = append(out, p.Doing)
	}
	return out
}

func faults(c scheduler.Counts) string {
	var parts []string
	if c.Censored > 0 {
		parts = append(parts, fmt.Sprintf("%d raced out", c.Censored))
	}
	names := make([]string, 0, len(c.Failed))
	for f := range c.Failed {
		names = append(names, f)
	}
	sort.Strings(names)
	for _, f := range names {
		parts = append(parts, fmt.Sprintf("%d %s", c.Failed[f], f))
	}
	return strings.Join(parts, ", ")
}

// block is what the terminal shows in place.
func (v *view) block() []string {
	p := v.latest
	best := "none yet"
	if p.BestSpeedup > 0 {
		best = fmt.Sprintf("%.2f× (%s)", p.BestSpeedup, p.BestStructure)
	}
	confirmed := "nothing confirmed"
	if p.Confirmed > 0 {
		confirmed = fmt.Sprintf("confirmed %.2f×", p.Confirmed)
	}
	left := "no time limit"
	if v.campaign.Settings.Budget.WallSeconds > 0 {
		left = span(p.LeftSeconds) + " left"
	}
	failed := faults(p.Counts)
	if failed == "" {
		failed = "none"
	}
	return []string{
		fmt.Sprintf("  best so far  %s, %s", best, confirmed),
		fmt.Sprintf("  evaluations  %d at %.2f/s   device busy %.0f %%   worker held %.0f %%", p.Counts.Evaluated, p.PerSecond, 100*p.DeviceBusy, 100*p.WorkerHeld),
		fmt.Sprintf("  failed       %s", failed),
		fmt.Sprintf("  now          %s", orWaiting(p.Doing)),
		fmt.Sprintf("  %s  %s", bar(p.SpentSeconds, v.campaign.Settings.Budget.WallSeconds), left),
	}
}

func orWaiting(s string) string {
	if s == "" {
		return "waiting"
	}
	return s
}

// bar draws how much of the budget is used.
func bar(spent, wall float64) string {
	const cells = 40
	if wall <= 0 {
		return "running for " + span(spent)
	}
	n := int(cells * min(1, spent/wall))
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", cells-n) + "]" // one column a character on every terminal
}

func (v *view) eraseLocked() {
	if v.drawn > 0 {
		fmt.Fprintf(v.w, "\r\x1b[%dA\x1b[J", v.drawn) // from the first column: a terminal echoes ^C
		v.drawn = 0
	}
}

func (v *view) drawLocked() {
	if v.width == nil || v.latest.Campaign == "" {
		return
	}
	lines := v.block()
	width := v.width()
	for i, l := range lines {
		if r := []rune(l); len(r) >= width {
			lines[i] = string(r[:width-1])
		}
	}
	fmt.Fprint(v.w, strings.Join(lines, "\n")+"\n")
	v.drawn = len(lines)
}

// close takes the block off the screen.
func (v *view) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.eraseLocked()
	v.latest = loop.Progress{}
}
