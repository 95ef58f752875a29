package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/llm/scripted"
	"ridgepoint/scheduler"
)

// TestSteeringAProcess says every word of ctl to a running process, with and without models, and looks in the log for what followed.
func TestSteeringAProcess(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with models": nil, "without": {"--llm", "off"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, &scripted.Script{Rules: []scripted.Rule{{Status: 503}}}, nil)
			dir := t.TempDir()
			p := start(t, "scripted", keyed(), append([]string{"run", nightFile(t, "softmax_2d", url, "10m", ""), "--data", dir}, args...)...)
			p.until(t, "the search is on", time.Minute, func() bool { l := readLog(t, dir); return l != nil && l.State.AA != nil && l.State.NextTrial > 8 })
			steer(t, p, dir)
			if code := p.wait(t, time.Minute); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, p.stderr.String())
			}
			followed(t, readLog(t, dir))
		})
	}
}

// steer says the words, each when the one before has had its effect.
func steer(t *testing.T, p *process, dir string) {
	t.Helper()
	const limit = time.Minute
	ctl(t, dir, "pause")
	p.until(t, "nothing is in flight", limit, func() bool { return len(readLog(t, dir).State.Flying) == 0 })
	looks, before := 0, readLog(t, dir).State.NextTrial
	p.until(t, "ten looks at a held campaign", limit, func() bool { looks++; return looks > 10 })
	if n := readLog(t, dir).State.NextTrial; n != before {
		t.Errorf("%d trials were planned while the campaign was held", n-before)
	}
	ctl(t, dir, "go")
	p.until(t, "trials after go", limit, grown(t, dir, 4))
	ctl(t, dir, "inject", injectable(t))
	p.until(t, "the injected structure is measured", limit, func() bool {
		for _, st := range readLog(t, dir).State.Structures {
			if st.Name == "mine" && st.Measured > 0 {
				return true
			}
		}
		return false
	})
	ctl(t, dir, "drop", "online")
	p.until(t, "trials without the dropped structure", limit, grown(t, dir, 40))
	ctl(t, dir, "pin", "blocked")
	p.until(t, "trials of the pinned structure", limit, grown(t, dir, 12))
	ctl(t, dir, "revive", "online")
	ctl(t, dir, "pin", "online")
	p.until(t, "trials of the revived structure", limit, grown(t, dir, 12))
	ctl(t, dir, "budget", "--tokens", "123456", "--evaluations", "100000", "--wall", "2h")
	p.until(t, "trials under the new budget", limit, grown(t, dir, 4))
	ctl(t, dir, "stop")
}

// followed checks what each word changed, by the order of the events alone.
func followed(t *testing.T, l *logged) {
	t.Helper()
	number := map[string]int{}
	for i := range l.State.Structures {
		number[l.State.Structures[i].Name] = i + 1
	}
	after := ""
	searched := map[string]map[int]int{} // word -> structure -> search trials planned after it and before the next
	var words []string
	for _, e := range l.events {
		switch d := e.(type) {
		case *scheduler.Control:
			after = strings.TrimSpace(string(d.Action) + " " + d.Name)
			words = append(words, after)
			searched[after] = map[int]int{}
		case *scheduler.Trial:
			if after != "" && d.Purpose == scheduler.PurposeSearch && d.Why["remeasure"] == 0 {
				searched[after][d.Point.Structure]++
			}
		}
	}
	want := []string{"pause", "go", "inject mine", "drop online", "pin blocked", "revive online", "pin online", "budget", "stop"}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Fatalf("words in the log (-want +got):\n%s", diff)
	}
	if n := searched["pause"]; len(n) != 0 {
		t.Errorf("planned while held: %v", n)
	}
	blocked, online, mine := number["blocked"], number["online"], number["mine"]
	if n := searched["pin blocked"]; n[blocked] < 3 || n[online] > 0 || n[mine] > 0 {
		t.Errorf("planned while blocked (%d) was pinned: %v", blocked, n)
	}
	if n := searched["drop online"]; n[online] > 0 || n[blocked]+n[mine] == 0 {
		t.Errorf("planned while online (%d) was dropped: %v", online, n)
	}
	if n := searched["pin online"]; n[online] < 3 || n[blocked] > 0 {
		t.Errorf("planned after online (%d) was revived and pinned: %v", online, n)
	}
	if n := searched["stop"]; len(n) != 0 {
		t.Errorf("planned after stop: %v", n)
	}
	b := l.State.Settings.Budget
	if d := l.State.Drafts.Budget; d == nil || d.Tokens != 123456 || b.Evaluations != 100000 || b.WallSeconds != 7200 {
		t.Errorf("budget %+v, of models %+v", b, l.State.Drafts.Budget)
	}
	if l.State.Stopped != "a person said stop" || l.State.Replayed == nil || mine == 0 || l.State.Structures[mine-1].Origin != "injected" {
		t.Errorf("stopped %q, replayed %t, structures %v", l.State.Stopped, l.State.Replayed != nil, number)
	}
}

// injectable is a structure file of a person's own, named mine.
func injectable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../scheduler/proposer/testdata/softmax30/draft-15.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```c\n")
	source, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("draft-15.md holds no block of code")
	}
	path := filepath.Join(t.TempDir(), "mine.c")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
