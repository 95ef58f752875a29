package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/llm/scripted"
	"ridgepoint/scheduler"
)

// smallTask is softmax_2d at two small sizes, so that the real harness judges a kernel in a fraction of a second.
func smallTask(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const from = "../../configs/tasks/softmax_2d/"
	baseline, err := os.ReadFile(from + "naive.c")
	if err != nil {
		t.Fatal(err)
	}
	structure, err := os.ReadFile(from + "structures/cpu/online.c")
	if err != nil {
		t.Fatal(err)
	}
	task := `task_name: softmax_small
description: Row-wise softmax of a contiguous row-major float32 matrix.
problem_shape: {rows: 96, cols: 128, dtype: float32}
reference: torch.softmax(input, dim=-1)
sizes: [{rows: 64, cols: 64}, {rows: 96, cols: 128}]
vary: {rows: [1, 100], cols: [1, 300]}
eval: {atol: 1e-8, rtol: 2e-5, warmup_iters: 10, timed_iters: 50, metric: gflops}
work: {flops: "5*rows*cols", bytes: "8*rows*cols"}
targets: {cpu: {arch: native, baseline: naive.c}}
default_launch: {kernel: softmax, args: [input, output, rows, cols]}
structures: [online.c]
`
	for name, text := range map[string]string{"task.yaml": task, "naive.c": string(baseline), "online.c": string(structure)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "task.yaml")
}

// TestKeyIsNowhereAroundAProcess runs a campaign with the real harness against a server that says the key wherever it can, and looks for the
// key in the command lines of all processes, in the environments of the process's children, in every file that it wrote, in all that it
// said and in what the reading commands print.
func TestKeyIsNowhereAroundAProcess(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	script := thirty(t, 0)
	script.Rules = append([]scripted.Rule{{Times: 1, Text: "your key is " + processKey}, {Times: 1, Status: 500, Body: "bad key " + processKey},
		{From: 9, Status: 400, Body: `{"error": {"message": "Incorrect API key provided: ` + processKey + `"}}`}}, script.Rules...)
	server, url := serve(t, script, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Key", processKey)
			h.ServeHTTP(w, r)
		})
	})
	home, dir := t.TempDir(), t.TempDir()
	env := append(keyed(), "TMPDIR="+home, "RIDGEPOINT_CACHE="+filepath.Join(home, "cache"), "HOME="+home)
	p := start(t, "real", env, "run", nightFile(t, smallTask(t), url, "10m", ""), "--data", dir)
	looked := 0
	p.until(t, "drafts have been tried, and the refusal is told", 4*time.Minute, func() bool {
		looked += lookAtProcesses(t, p.cmd.Process.Pid)
		l := readLog(t, dir)
		return l != nil && len(l.State.Drafts.Taken) >= 2 && len(l.notes) > 0 && len(server.Calls()) >= 9
	})
	ctl(t, dir, "stop")
	if code := p.wait(t, 2*time.Minute); code != exitOK && code != exitVerdict {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	if looked < 10 {
		t.Errorf("only %d looks at children: nothing was seen", looked)
	}
	said := map[string]string{"stdout": p.stdout.String(), "stderr": p.stderr.String(), "notes": strings.Join(readLog(t, dir).notes, "\n")}
	for _, args := range [][]string{{"prompt", "last"}, {"prompt", "last", "--exchanges"}, {"report", "last"}, {"report", "last", "--json"}, {"why", "5"}, {"ls"}} {
		_, out, errs := ctlRun(t, dir, args...)
		said[strings.Join(args, " ")] = out + errs
	}
	for what, text := range said {
		if text == "" || strings.Contains(text, processKey) {
			t.Errorf("%s is empty or holds the key", what)
		}
	}
	files := 0
	for _, root := range []string{dir, home} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if files++; strings.Contains(string(b), processKey) {
				t.Errorf("%s holds the key", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 5 {
		t.Errorf("%d files looked at", files)
	}
}

// lookAtProcesses looks for the key in the command lines of all processes and the environments of pid's descendants, and returns how many
// of these it saw. Processes that end meanwhile are passed over.
func lookAtProcesses(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("needs /proc")
	}
	parent, line := map[int]int{}, map[int]string{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil {
			if line[n] = string(b); strings.Contains(line[n], processKey) {
				t.Errorf("the command line of process %d holds the key", n)
			}
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		if _, rest, ok := strings.Cut(string(stat), ") "); ok {
			if f := strings.Fields(rest); len(f) > 1 {
				parent[n], _ = strconv.Atoi(f[1]) // the kernel writes a number
			}
		}
	}
	seen := 0
	for n := range parent {
		up := parent[n]
		for up > 1 && up != pid {
			up = parent[up]
		}
		if up != pid || line[n] == line[pid] { // between fork and exec a child still is its parent, environment and all
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", n))
		if err != nil {
			continue
		}
		if seen++; strings.Contains(string(b), processKey) {
			t.Errorf("process %d, a child, has the key in its environment", n)
		}
	}
	return seen
}

// cheatsAreNotMeasured checks that the cheats among the scripted drafts were tried and refused.
func cheatsAreNotMeasured(t *testing.T, l *logged, want int) {
	t.Helper()
	cheats := 0
	for i, st := range l.Structures {
		if k := st.Launches[0].Kernel; k == "softmax_known" || k == "softmax_remember" {
			if s := &l.State.Structures[i]; s.Measured > 0 || s.Told == 0 {
				t.Errorf("the cheat %s was judged %d times and passed %d times", st.Name, s.Told, s.Measured)
			} else {
				cheats++
			}
		}
	}
	if cheats != want {
		t.Errorf("%d cheats were tried, want %d", cheats, want)
	}
}

// TestThirtyDraftsForReal is the whole show: the shipped campaign softmax-cpu-models on the real harness, thirty drafts of which each reply
// takes 3 s. It takes half an hour on a quiet machine with two cores, and only counts there:
//
//	RIDGEPOINT_LONG=1 go test ./cmd/ridgepoint -run TestThirtyDraftsForReal -timeout 60m -v
func TestThirtyDraftsForReal(t *testing.T) {
	if os.Getenv("RIDGEPOINT_LONG") != "1" {
		t.Skip("half an hour on a quiet machine: RIDGEPOINT_LONG=1")
	}
	needCompiler(t)
	server, url := serve(t, thirty(t, 3*time.Second), nil)
	shipped, err := os.ReadFile("../../configs/campaigns/softmax-cpu-models.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(shipped), "base_url: http://127.0.0.1:8999/v1", "base_url: "+url+"\n      key_env: "+keyVariable, 1)
	if !strings.Contains(text, url) {
		t.Fatal("the shipped campaign names another server")
	}
	file, dir := filepath.Join(t.TempDir(), "night.yaml"), t.TempDir()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "real", keyed(), "run", file, "--json", "--seed", "7", "--data", dir)
	if code := p.wait(t, 55*time.Minute); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	var result scheduler.Result
	if err := json.Unmarshal([]byte(p.stdout.String()), &result); err != nil {
		t.Fatal(err)
	}
	l := readLog(t, dir)
	c := l.State.Drafts.Counts
	t.Logf("%d calls, drafts %v, %d mended, worker held %.1f %%, winner %+v", finished(server), c, l.State.Drafts.Repairs, 100*result.WorkerHeld, result.Winner)
	if c[scheduler.DraftReady]+c[scheduler.DraftDropped]+c[scheduler.DraftDuplicate]+c[scheduler.DraftRefused] != 30 || len(l.State.Drafts.Open)+len(l.State.Drafts.Ready) != 0 {
		t.Errorf("drafts %v, %d open, %d not tried; want 30 accounted for", c, len(l.State.Drafts.Open), len(l.State.Drafts.Ready))
	}
	if c[scheduler.DraftDuplicate] != 3 || c[scheduler.DraftDropped] != 2 || l.State.Drafts.Repairs < 2 {
		t.Errorf("%d duplicates, %d dropped, %d mended; want 3, 2 and at least 2", c[scheduler.DraftDuplicate], c[scheduler.DraftDropped], l.State.Drafts.Repairs)
	}
	cheatsAreNotMeasured(t, l, 2)
	if result.WorkerHeld < 0.85 {
		t.Errorf("worker_held is %.3f, want 0.85", result.WorkerHeld)
	}
	improvementWins(t, l, &result)
}

// improvementWins checks that the winner is the best of the three real improvements, tuned, and holds in the replay.
func improvementWins(t *testing.T, l *logged, result *scheduler.Result) {
	t.Helper()
	if result.Winner == nil || result.Winner.ReplayedSpeedup < 0.9*result.Winner.Speedup {
		t.Fatalf("winner %+v", result.Winner)
	}
	improvement := map[string]bool{"softmax_tiles": true, "softmax_pairs": true, "softmax_buffered": true}
	best, bestName, asked := 0.0, "", 0
	var winner *harness.Structure
	for i, st := range l.Structures {
		s := &l.State.Structures[i]
		if improvement[st.Launches[0].Kernel] && s.Best > 0 && (best == 0 || s.Best < best) {
			best, bestName = s.Best, st.Name
		}
		if st.Name == result.Winner.Structure {
			winner, asked = st, s.Asked
		}
	}
	if winner == nil || !improvement[winner.Launches[0].Kernel] {
		t.Fatalf("%s won, which is none of the three improvements; the best of them is %s", result.Winner.Structure, bestName)
	}
	if asked <= 1+l.State.Settings.Probes {
		t.Errorf("%s was asked for %d configurations: it was not tuned", winner.Name, asked)
	}
}
