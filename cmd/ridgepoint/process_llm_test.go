package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/llm/scripted"
)

// kills is how often a process is killed: RIDGEPOINT_LONG=1 does it more often.
func kills() int {
	if os.Getenv("RIDGEPOINT_LONG") == "1" {
		return 12
	}
	return 3
}

// TestKilledProcessPaysForNoReplyTwice ends the process with kill -9 while calls are in flight. Every reply that the server had
// given in full is in the log by then, so that what the server gave and what the log holds must agree to the last reply, and the
// budget must count over all processes.
func TestKilledProcessPaysForNoReplyTwice(t *testing.T) {
	t.Parallel()
	var g *gate
	script := thirty(t, 0)
	// Every other reply is broken, so that kills find drafts that were begun, with replies that were paid for.
	script.Rules = append([]scripted.Rule{{Every: 2, To: 2 * kills(), Text: "I would make it faster."}}, script.Rules...)
	server, url := serve(t, script, func(h http.Handler) http.Handler { g = newGate(h); return g })
	const tokens = 90000
	file, dir := patient(t, nightFile(t, "softmax_2d", url, "10m", "  budget: {tokens: 90000, usd: 0, tokens_per_day: 0, usd_per_day: 0}\n  max_drafts: 30\n")), t.TempDir()
	replies := func() int {
		l, n := readLog(t, dir), 0
		if l != nil {
			for _, e := range l.exchanges {
				if e.Reply != nil {
					n++
				}
			}
		}
		return n
	}
	args := []string{"run", file, "--data", dir}
	given, open := 0, 0
	for range kills() {
		p := start(t, "scripted", keyed(), args...)
		g.let(2)
		given += 2
		p.until(t, "two more replies are in the log", time.Minute, func() bool { return replies() == given })
		open += len(readLog(t, dir).State.Drafts.Open)
		p.kill() // one or more calls waited at the gate
		g.left(t)
		args = []string{"resume", "last", "--data", dir}
	}
	if open == 0 {
		t.Error("no kill found a draft under way: they show nothing")
	}
	if n := finished(server); n != given {
		t.Fatalf("the server gave %d replies, the log holds %d", n, given)
	}
	g.let(500)
	p := start(t, "scripted", keyed(), args...)
	said := func() bool {
		l := readLog(t, dir)
		return l != nil && strings.Contains(strings.Join(l.notes, "\n"), "no more drafts")
	}
	p.until(t, "the budget is spent", time.Minute, said)
	ctl(t, dir, "stop")
	if code := p.wait(t, time.Minute); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	l := readLog(t, dir)
	seen := map[string]bool{}
	var sum int64
	for _, e := range l.exchanges {
		if e.Reply == nil {
			continue
		}
		if seen[e.Request.ID] {
			t.Errorf("reply %s was paid for twice", e.Request.ID)
		}
		seen[e.Request.ID] = true
		sum += int64(e.Reply.Usage.Total())
	}
	if n := finished(server); n != len(seen) {
		t.Errorf("the server gave %d replies in full, the log holds %d", n, len(seen))
	}
	if spent := l.State.Drafts.Spent; spent.Tokens > tokens || spent.Tokens != sum || spent.Tokens < tokens/2 || spent.Calls != int64(len(seen)) {
		t.Errorf("spent %+v of %d tokens over %d replies of %d tokens", spent, tokens, len(seen), sum)
	}
	for n := range l.State.Drafts.Open {
		t.Errorf("draft %d was begun and never ended", n)
	}
}

// TestUselessServerDoesNotHoldAProcessUp runs a whole campaign against a server that answers 429 only, and one that never answers.
func TestUselessServerDoesNotHoldAProcessUp(t *testing.T) {
	t.Parallel()
	evaluations := int64(60)
	if os.Getenv("RIDGEPOINT_LONG") == "1" {
		evaluations = 400
	}
	for name, rule := range map[string]scripted.Rule{"only 429": {Status: 429, RetryAfter: "1"}, "hanging": {Text: "x", StallAfter: new(int)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, url := serve(t, &scripted.Script{Rules: []scripted.Rule{rule}}, nil)
			dir := t.TempDir()
			p := start(t, "scripted", keyed(), "run", nightFile(t, "softmax_2d", url, "10m", ""), "--data", dir, "--evaluations", fmt.Sprint(evaluations))
			if code := p.wait(t, time.Minute); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, p.stderr.String())
			}
			l := readLog(t, dir)
			if n := strings.Count(p.stderr.String(), "models unavailable"); n != 1 || len(l.notes) != 1 {
				t.Errorf("told %d times that the model is away, %d notes; want once:\n%s", n, len(l.notes), p.stderr.String())
			}
			if l.State.Counts.Evaluated < evaluations || l.State.Replayed == nil || len(server.Calls()) == 0 || finished(server) != 0 {
				t.Errorf("%d evaluations, replayed: %t, %d calls", l.State.Counts.Evaluated, l.State.Replayed != nil, len(server.Calls()))
			}
			if !strings.Contains(p.stdout.String(), "×") {
				t.Errorf("no report:\n%s", p.stdout.String())
			}
		})
	}
}

// TestARecordingMakesTheSameDrafts takes the recording of a process that had a model to one that has none, and lets the model write the
// winner again.
func TestARecordingMakesTheSameDrafts(t *testing.T) {
	t.Parallel()
	script := thirty(t, 5*time.Millisecond)
	winner, err := os.ReadFile("../../scheduler/proposer/testdata/softmax30/draft-09.md")
	if err != nil {
		t.Fatal(err)
	}
	again := scripted.Rule{Contains: []string{"Its source is lost"}, Text: string(winner)}
	script.Rules = append([]scripted.Rule{again}, script.Rules...)
	server, url := serve(t, script, nil)
	file, dir, second := nightFile(t, "softmax_2d", url, "10m", "  max_drafts: 12\n"), t.TempDir(), t.TempDir()
	night := func(dir string, args ...string) *logged {
		p := start(t, "scripted", keyed(), append([]string{"run", file, "--data", dir}, args...)...)
		p.until(t, "twelve drafts have ended", time.Minute, func() bool {
			l := readLog(t, dir)
			return l != nil && l.State.Drafts.Last == 12 && len(l.State.Drafts.Open) == 0 && len(l.State.Drafts.Ready) == 0
		})
		p.until(t, "trials enough to tune the best", time.Minute, grown(t, dir, 80))
		ctl(t, dir, "stop")
		if code := p.wait(t, time.Minute); code != exitOK {
			t.Fatalf("exit code %d\n%s", code, p.stderr.String())
		}
		return readLog(t, dir)
	}
	first := night(dir)
	code, tape, errs := ctlRun(t, dir, "prompt", "last", "--exchanges")
	if code != exitOK {
		t.Fatal(errs)
	}
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	if err := os.WriteFile(path, []byte(tape), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := len(server.Calls())
	replayed := night(second, "--llm", "replay:"+path)
	if n := len(server.Calls()); n != calls {
		t.Errorf("the recording made %d calls", n-calls)
	}
	for name, d := range first.drafts {
		if r := replayed.drafts[name]; r == nil || r.Source != d.Source {
			t.Errorf("%s differs: %+v", name, r)
		}
	}
	if len(first.drafts) != 12 || len(replayed.drafts) != 12 {
		t.Errorf("%d drafts, and %d by the recording; want 12", len(first.drafts), len(replayed.drafts))
	}
	p := start(t, "scripted", keyed(), "replay", "last", "--regenerate", "--data", dir, "--json")
	if code := p.wait(t, time.Minute); code != exitOK || !strings.Contains(p.stdout.String(), `"holds":true`) || !strings.Contains(p.stdout.String(), `"regenerated":"`) {
		t.Errorf("regenerate: exit code %d\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	if n := len(server.Calls()); n == calls {
		t.Error("nobody asked the model to write the winner again")
	}
}

// grown returns what says whether n more trials have been planned since the first call.
func grown(t *testing.T, dir string, n int64) func() bool {
	from := int64(-1)
	return func() bool {
		l := readLog(t, dir)
		if l == nil {
			return false
		}
		if from < 0 {
			from = l.State.NextTrial
		}
		return l.State.NextTrial >= from+n
	}
}
