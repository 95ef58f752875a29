package queue

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ridgepoint/workers"
	"ridgepoint/workers/redistest"
)

func testConfig(t *testing.T, url string) Config {
	t.Helper()
	ring, err := workers.ParseKeyFile([]byte(strings.Repeat("ab", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Redis: url, Keyring: ring}
}

// TestDeadWorkersCandidateRunsElsewhere kills device workers with a candidate in hand and takes the time until another has
// started it. RIDGEPOINT_LONG=1 kills 20, else 3 at once.
func TestDeadWorkersCandidateRunsElsewhere(t *testing.T) {
	t.Parallel()
	rounds, kills := 1, 3
	if isLong() {
		rounds, kills = 5, 4
	}
	srv := redistest.Start(t, redistest.AOF)
	n := startNode(t, testConfig(t, srv.URL), Options{Host: "sched"})
	book := newLedger()
	background(t, func(ctx ctxt) error { return n.Scheduler(ctx, "s1", book.deliver) })
	spawn(t, roleOf(t, "compile", srv.URL, "compile0", 2))
	path := filepath.Join(t.TempDir(), "journal")
	fleet := make([]*process, 2*kills)
	for i := range fleet {
		r := roleOf(t, "gpu", srv.URL, fmt.Sprintf("gpu%d", i), 1)
		r.Journal, r.MeasureMS = path, 1500
		fleet[i] = spawn(t, r)
	}
	d := n.Dispatcher(campaignOf("c1"))
	var took []time.Duration
	trial := int64(100)
	for range rounds {
		waitFor(t, 30*time.Second, "all workers idle in the fleet", func() bool {
			c, err := d.Capacity(t.Context())
			return err == nil && c == len(fleet)
		})
		first := trial
		for range fleet {
			if err := d.Dispatch(t.Context(), testJob("c1", "s1", trial, 1, trial)); err != nil {
				t.Fatal(err)
			}
			trial++
		}
		started := map[string]int64{}
		waitFor(t, 30*time.Second, "every worker measuring", func() bool {
			for _, e := range journal(t, path) {
				if e.what == "start" && e.x >= first {
					started[e.host] = e.x
				}
			}
			return len(started) == len(fleet)
		})
		killed := time.Now()
		for _, p := range fleet[:kills] {
			p.kill()
		}
		waitFor(t, 30*time.Second, "every killed worker's candidate running elsewhere", func() bool {
			again := 0
			for _, p := range fleet[:kills] {
				if slices.ContainsFunc(journal(t, path), func(e event) bool {
					return e.what == "start" && e.x == started[p.role.Host] && e.host != p.role.Host
				}) {
					again++
				}
			}
			return again == kills
		})
		for _, e := range journal(t, path) {
			for _, p := range fleet[:kills] {
				if e.what == "start" && e.x == started[p.role.Host] && e.host != p.role.Host {
					took = append(took, e.at.Sub(killed))
				}
			}
		}
		for _, p := range fleet[:kills] {
			p.start()
		}
	}
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == rounds*len(fleet) })
	worst := slices.Max(took)
	t.Logf("%d killed workers' candidates were running elsewhere after %v at worst, %v in the median", len(took), worst, took[len(took)/2])
	if worst > 15*time.Second {
		t.Errorf("worst case %v; want at most 15s", worst)
	}
	_, others := book.count()
	if others != 0 {
		t.Errorf("%d outcomes came twice", others)
	}
}
