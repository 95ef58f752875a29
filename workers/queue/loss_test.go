package queue

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/scheduler"
	"ridgepoint/workers/redistest"
)

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), text)
}

// TestRedisStopped takes Redis away in mid-campaign, for 60 s with RIDGEPOINT_LONG=1 and for 4 s otherwise: work in hand is
// finished and delivered after, nothing is measured twice, and the log has one line per change.
func TestRedisStopped(t *testing.T) {
	t.Parallel()
	outage := 4 * time.Second
	if isLong() {
		outage = 60 * time.Second
	}
	for _, way := range []string{"killed", "frozen"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, redistest.AOF)
			h := newScripted()
			h.measureTime = 500 * time.Millisecond
			log := &buffer{}
			n, book, d := fleetOf(t, testConfig(t, srv.URL), Options{Log: zerolog.New(log).Level(zerolog.InfoLevel)}, h, "gpu0", "gpu1")
			const trials = 12
			dispatch(t, d, trials-1)
			book.await(t, 30*time.Second, func(final, _ int) bool { return final >= 2 })
			timer := time.NewTimer(outage)
			if way == "killed" {
				pauseAOF(t)
				srv.Kill()
				accepted := make(chan error, 1)
				go func() { accepted <- d.Dispatch(t.Context(), testJob("c1", "s1", trials-1, 1, trials-1)) }() // received below
				<-timer.C
				if len(accepted) > 0 {
					t.Error("a job was answered without Redis")
				}
				srv.Restart()
				if err := <-accepted; err != nil {
					t.Errorf("a job that waited for Redis: %v", err)
				}
			} else {
				srv.Freeze()
				<-timer.C
				srv.Thaw()
				if err := d.Dispatch(t.Context(), testJob("c1", "s1", trials-1, 1, trials-1)); err != nil {
					t.Fatal(err)
				}
			}
			book.await(t, 60*time.Second, func(final, _ int) bool { return final == trials })
			waitFor(t, 30*time.Second, "up again", n.Up)
			h.mu.Lock()
			defer h.mu.Unlock()
			for x, times := range h.times {
				if times != 1 {
					t.Errorf("trial %d was measured %d times", x, times)
				}
			}
			// A worker that a slow machine keeps from its beat for longer than the outage is taken for dead: that is a line of its own.
			if lines := log.count(`"level":"warn"`) + log.count(`"level":"error"`) + log.count(`"level":"info"`) - log.count("its worker died"); lines != 2 {
				t.Errorf("%d lines in the log; want one for each of the two changes:\n%s", lines, log.b.String())
			}
			lost, back := log.count(`redis lost;`), log.count(`redis back`)
			t.Logf("%v without Redis: %d lines that it was lost, %d that it is back", outage, lost, back)
			if lost != 1 || back != 1 {
				t.Errorf("%d lines say that Redis was lost and %d that it is back; want one each", lost, back)
			}
		})
	}
}

// pauseAOF waits until Redis has synced what it was told: appendfsync everysec.
func pauseAOF(t *testing.T) {
	t.Helper()
	timer := time.NewTimer(1200 * time.Millisecond)
	<-timer.C
}

// TestRedisLosesItsData kills a Redis without persistence: the epoch changes, lost attempts are told, a new attempt of each
// runs with its blobs published again, limits are set again, and outcomes that were on their way come from the spool.
func TestRedisLosesItsData(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	h := newScripted()
	h.measureTime = 100 * time.Millisecond
	n, book, d := fleetOf(t, testConfig(t, srv.URL), Options{Limits: map[string]int{"gpu": 1}}, h, "gpu0")
	const trials = 12
	dispatch(t, d, trials)
	book.await(t, 30*time.Second, func(final, _ int) bool { return final >= 3 })
	srv.Kill()
	srv.Restart()
	waitFor(t, 30*time.Second, "told that the data is gone", func() bool { return n.metricsEpochs() == 1 })
	var open []scheduler.TrialKey
	book.mu.Lock()
	for i := range int64(trials) {
		if _, ok := book.final[i]; !ok {
			open = append(open, scheduler.TrialKey{Campaign: "c1", Trial: i, Attempt: 1})
		}
	}
	book.mu.Unlock()
	missing, err := d.Missing(t.Context(), open)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) < 5 {
		t.Errorf("%d of %d open attempts are told missing; want nearly all", len(missing), len(open))
	}
	for _, key := range missing {
		if err := d.Dispatch(t.Context(), testJob("c1", "s1", key.Trial, 2, key.Trial)); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := d.Missing(t.Context(), []scheduler.TrialKey{{Campaign: "c1", Trial: missing[len(missing)-1].Trial, Attempt: 2}}); err != nil || len(again) != 0 {
		t.Errorf("a queued attempt is told missing: %v %v", again, err)
	}
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == trials })
	permits, err := n.Client().HGet(t.Context(), "{ridgepoint}:limits", "gpu").Result()
	if err != nil || permits != "1" {
		t.Errorf("limit after the loss: %q %v; want 1", permits, err)
	}
}

func (n *Node) metricsEpochs() int {
	families, err := n.metrics.Registry.Gather()
	if err != nil {
		return -1
	}
	for _, f := range families {
		if f.GetName() == "ridgepoint_redis_data_lost_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return -1
}

// TestSpoolDelivers shows that an outcome which Redis took and then lost reaches the scheduler all the same.
func TestSpoolDelivers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	n := startNode(t, testConfig(t, srv.URL), Options{}) // no scheduler yet: outcomes stay in Redis
	h := newScripted()
	wcfg := workerConfig(t, h, 2, "gpu0")
	background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
	d := n.Dispatcher(campaignOf("c1"))
	dispatch(t, d, 5)
	waitFor(t, 30*time.Second, "all spooled", func() bool { return wcfg.Spool.Len() == 5 })
	srv.Kill()
	srv.Restart()
	book := newLedger()
	n2 := startNode(t, testConfig(t, srv.URL), Options{Host: "sched"})
	background(t, func(ctx ctxt) error { return n2.Scheduler(ctx, "s1", book.deliver) })
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 5 })
	waitFor(t, 30*time.Second, "acknowledged", func() bool { return wcfg.Spool.Len() == 0 })
	if h.measured.Load() != 5 {
		t.Errorf("%d measurements of 5", h.measured.Load())
	}
}

// TestBlobPublishedAgain shows that a blob which vanished is published again by who has it, and that the task does not fail.
func TestBlobPublishedAgain(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		n, book, d := fleetOf(t, cfg, Options{}, nil)
		dispatch(t, d, 3)
		keys, err := n.Client().Keys(t.Context(), "{ridgepoint}:blob:*").Result()
		if err != nil || len(keys) != 2 {
			t.Fatalf("blobs %v %v; want a task and a structure", keys, err)
		}
		if err := n.Client().Del(t.Context(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
		wcfg := workerConfig(t, newScripted(), 1, "gpu0")
		background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 3 })
	})
}

// TestStoppedWorkGoesBack shows that a worker that ends gives back what it has in hand, without burning its tries.
func TestStoppedWorkGoesBack(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		n, book, d := fleetOf(t, cfg, Options{}, nil)
		slow := newScripted()
		slow.measureTime = time.Minute
		first := workerConfig(t, slow, 1, "gpu0")
		first.Grace = 100 * time.Millisecond
		begun := make(chan struct{}, 1)
		slow.onStart = func(int64) { begun <- struct{}{} }
		stop := background(t, func(ctx ctxt) error { return n.Worker(ctx, first) })
		dispatch(t, d, 1)
		<-begun
		stopped := time.Now()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(stopped); took > 5*time.Second {
			t.Errorf("a worker with work in hand took %v to end", took)
		}
		second := workerConfig(t, newScripted(), 1, "gpu1")
		background(t, func(ctx ctxt) error { return n.Worker(ctx, second) })
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })
		if device := book.final[0].Device; !slices.Contains([]string{"host1/gpu1"}, device) {
			t.Errorf("measured on %s; want host1/gpu1", device)
		}
	})
}
