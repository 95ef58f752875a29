package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"ridgepoint/harness"
	"ridgepoint/workers"
	"ridgepoint/workers/redistest"
)

// takenByNobody puts a task in the state in which a worker's death leaves it.
func takenByNobody(t *testing.T, n *Node, queue, id string) {
	t.Helper()
	moved, err := n.client.LMove(t.Context(), pendingKey(queue), activeKey(queue), "RIGHT", "LEFT").Result()
	if err != nil || moved != id {
		t.Fatalf("took %q %v; want %s", moved, err, id)
	}
	if err := n.client.HSet(t.Context(), taskKey(queue, id), "state", "active").Err(); err != nil {
		t.Fatal(err)
	}
	if err := n.client.ZAdd(t.Context(), leaseKey(queue), redis.Z{Score: 12345, Member: id}).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestReaper looks at one orphan: it comes back after its time and no earlier, not while its lease moves or a member claims
// it, and it is parked, with an outcome for its scheduler, when the third worker has died on it.
func TestReaper(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		ctx := t.Context()
		n := startNode(t, cfg, Options{})
		d := n.Dispatcher(campaignOf("c1"))
		dispatch(t, d, 1)
		queue, id := "compile:cuda", "c1:0:1:compile"
		takenByNobody(t, n, queue, id)
		r := newReaper(n)
		state := func() string {
			s, err := n.client.HGet(ctx, taskKey(queue, id), "state").Result()
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		look := func(ago time.Duration) {
			t.Helper()
			for o := range r.seen {
				r.seen[o] = time.Now().Add(-ago)
			}
			if err := r.look(ctx); err != nil {
				t.Fatal(err)
			}
		}
		look(0)
		look(orphanAfter - time.Second)
		if state() != "active" {
			t.Fatal("brought back too early")
		}
		if err := n.client.ZAdd(ctx, leaseKey(queue), redis.Z{Score: 12350, Member: id}).Err(); err != nil {
			t.Fatal(err)
		}
		look(orphanAfter + time.Second)
		if state() != "active" {
			t.Fatal("brought back although its lease had moved")
		}
		hand := newInHand()
		hand.add(id, 1)
		other := startNode(t, Config{Redis: cfg.Redis, Keyring: cfg.Keyring}, Options{Host: "other"})
		if cfg.Redis != Embedded { // an embedded carrier is alone in its process
			other.mu.Lock()
			other.describe = append(other.describe, func(m *fleetMember) { m.Tasks = hand.list() })
			other.mu.Unlock()
			if err := other.beat(ctx); err != nil {
				t.Fatal(err)
			}
			look(orphanAfter + time.Second)
			if state() != "active" {
				t.Fatal("brought back although a live member claims it")
			}
			hand.add(id, -1)
			if err := other.beat(ctx); err != nil {
				t.Fatal(err)
			}
			look(0)
		}
		for round := 1; round < killerLimit; round++ {
			look(orphanAfter + time.Second)
			if state() != "pending" {
				t.Fatalf("round %d: state %s; want it pending again", round, state())
			}
			takenByNobody(t, n, queue, id)
			look(0)
		}
		book := newLedger()
		look(orphanAfter + time.Second)
		if state() != "archived" {
			t.Fatalf("after %d dead workers: state %s; want it parked", killerLimit, state())
		}
		background(t, func(ctx context.Context) error { return n.Scheduler(ctx, "s1", book.deliver) })
		book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })
		o := book.final[0]
		if o.Report.Fault != harness.FaultCrash || !strings.Contains(o.Report.Reason, "3 worker processes died") || o.Report.CandidateID == "" {
			t.Errorf("outcome %v %q; want a crash that says how it came", o.Report.Fault, o.Report.Reason)
		}
	})
}

// TestSkewedClockHarmless writes a lease as a host would whose clock is ten minutes slow, while the task is measured, and
// starts another worker, whose asynq looks for expired leases at once: the task must not run twice.
func TestSkewedClockHarmless(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	h := newScripted()
	h.measureTime = 3 * time.Second
	begun := make(chan struct{}, 4)
	h.onStart = func(int64) { begun <- struct{}{} }
	n, book, d := fleetOf(t, testConfig(t, srv.URL), Options{}, h, "gpu0")
	dispatch(t, d, 1)
	<-begun
	id := "c1:0:1:gpu"
	slow := float64(time.Now().Add(-10 * time.Minute).Unix())
	if err := n.client.ZAdd(t.Context(), leaseKey("gpu:sm_90"), redis.Z{Score: slow, Member: id}).Err(); err != nil {
		t.Fatal(err)
	}
	n2 := startNode(t, testConfig(t, srv.URL), Options{Host: "host2"})
	wcfg := workerConfig(t, h, 1, "gpu0")
	background(t, func(ctx context.Context) error { return n2.Worker(ctx, wcfg) })
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })
	retried, err := n.client.ZCard(t.Context(), "asynq:{gpu:sm_90}:retry").Result()
	if err != nil || retried != 0 || len(begun) != 0 {
		t.Errorf("%d retries, %d further starts (%v); want none", retried, len(begun), err)
	}
}

// TestClockOffset shows that expiry is judged on Redis's clock.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	n := startNode(t, Config{Redis: Embedded}, Options{})
	n.embedded.SetTime(time.Now().Add(-3 * time.Hour))
	if err := n.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if off := time.Until(n.Now()) + 3*time.Hour; off.Abs() > 5*time.Second {
		t.Errorf("the node's idea of Redis's clock is %v off", off)
	}
}

// TestAsynqSeam holds what is assumed of asynq's insides to what asynq does: key names, and the script that is answered here.
func TestAsynqSeam(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	c := srv.Client()
	client := asynq.NewClientFromRedisClient(c)
	if _, err := client.Enqueue(asynq.NewTask("x", nil), asynq.Queue("q:1"), asynq.TaskID("id")); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, key := range []string{taskKey("q:1", "id"), pendingKey("q:1"), queuesKey} {
		if c.Exists(ctx, key).Val() != 1 {
			t.Errorf("asynq has no key %s", key)
		}
	}
	if got := c.HGet(ctx, taskKey("q:1", "id"), "state").Val(); got != "pending" {
		t.Errorf("state %q; want pending", got)
	}
	inside := make(chan struct{})
	leave := make(chan struct{})
	s := asynq.NewServerFromRedisClient(c, asynq.Config{Queues: map[string]int{"q:1": 1}, Concurrency: 1, LogLevel: asynq.FatalLevel})
	if err := s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { close(inside); <-leave; return asynq.SkipRetry })); err != nil {
		t.Fatal(err)
	}
	<-inside
	for _, key := range []string{activeKey("q:1"), leaseKey("q:1")} {
		if c.Exists(ctx, key).Val() != 1 {
			t.Errorf("asynq has no key %s", key)
		}
	}
	waitFor(t, 30*time.Second, "sent by asynq: the script whose SHA-1 is answered here, "+listLeaseExpiredSHA, func() bool { // by a goroutine of its own
		known, err := c.ScriptExists(ctx, listLeaseExpiredSHA).Result()
		return err == nil && known[0]
	})
	close(leave)
	s.Shutdown()
	if c.ZCard(ctx, archivedKey("q:1")).Val() != 1 {
		t.Error("asynq's key of parked tasks is another")
	}
}

// TestPanicIsParked shows that a payload on which a handler panics is parked with its reason.
func TestPanicIsParked(t *testing.T) {
	t.Parallel()
	h := newScripted()
	h.onStart = func(x int64) {
		if x == 3 {
			panic("as scripted")
		}
	}
	n, book, d := fleetOf(t, Config{Redis: Embedded}, Options{Limits: map[string]int{"gpu": 1}}, h, "gpu0")
	dispatch(t, d, 6)
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 5 })
	waitFor(t, 30*time.Second, "refused", func() bool { return n.refused.Load() == 1 })
	waitFor(t, 30*time.Second, "told missing", func() bool {
		missing, err := d.Missing(t.Context(), mustKeys(3))
		return err == nil && len(missing) == 1
	})
	info, err := n.inspector().GetTaskInfo("gpu:sm_90", workers.TaskID(mustKeys(3)[0], workers.KindGPU))
	if err != nil || !strings.Contains(info.LastErr, "as scripted") {
		t.Errorf("parked with %q %v; want its reason", info.LastErr, err)
	}
	if n.gate.Held() != 0 {
		t.Error("a panic left its permit held")
	}
}
