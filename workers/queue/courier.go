package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/fleet"
	"ridgepoint/workers/spool"
)

const (
	courierEvery = 250 * time.Millisecond
	// redeliverAfter is how long an outcome may stay unacknowledged before it is sent again; the pause doubles up to the maximum.
	redeliverAfter = 15 * time.Second
	redeliverMax   = 5 * time.Minute
	// spoolAge is how long a worker keeps an outcome that no scheduler acknowledges.
	spoolAge = 72 * time.Hour
)

// courier takes outcomes to their schedulers, from the disk: spooled first, sent, sent again until acknowledged.
type courier struct {
	node  *Node
	spool *spool.Spool

	mu   sync.Mutex
	next map[string]dueTime // by task id; an entry of the spool without one is due now
}

type dueTime struct {
	at    time.Time
	pause time.Duration
}

// newCourier returns the courier of a spool. What the spool holds from an earlier process is done: its steps are not to be
// done again here.
func newCourier(n *Node, s *spool.Spool) *courier {
	c := &courier{node: n, spool: s, next: map[string]dueTime{}}
	for _, e := range s.Entries() {
		if key, _, err := workers.ParseTaskID(e.Key); err == nil {
			c.markDone(key)
		}
	}
	return c
}

// markDone keeps this process from doing an attempt's steps again for as long as its outcome may wait on the disk.
func (c *courier) markDone(key scheduler.TrialKey) {
	now := c.node.Now()
	for _, kind := range []workers.Kind{workers.KindCompile, workers.KindGPU} {
		c.node.guard.Mark(workers.TaskID(key, kind), now, now.Add(spoolAge))
	}
}

// deliver spools a result and sends it. It returns once Redis has it; while Redis is away it waits, since the queue's task
// must not be acknowledged before. From the moment when the disk has it, a second run of the step finds it done.
func (c *courier) deliver(ctx context.Context, schedulerID string, r *workers.Result) error {
	r.Spool = c.spool.ID()
	key := r.Outcome.Key
	id := workers.TaskID(key, workers.KindOutcome)
	data, err := json.Marshal(r)
	if err != nil {
		return &workers.Refusal{Reason: workers.ReasonMalformed, Detail: fmt.Sprintf("the report of %s cannot be written: %v", id, err)}
	}
	started := time.Now()
	c.delay(id, redeliverAfter) // not the loop's business while it is ours
	if err := c.spool.Put(spool.Entry{Key: id, Scheduler: schedulerID, Data: data, PutMS: started.UnixMilli()}); err != nil {
		return err
	}
	c.markDone(key)
	for {
		c.delay(id, redeliverAfter)
		err := c.node.enqueue(ctx, resultHeader(schedulerID, key), r)
		if err == nil {
			c.node.metrics.Stage.WithLabelValues("deliver").Observe(time.Since(started).Seconds())
			return nil
		}
		var refusal *workers.Refusal
		if errors.As(err, &refusal) {
			return errors.Join(err, c.spool.Ack(id)) // too large for the wire: it never will be smaller
		}
		if sleep(ctx, courierEvery) != nil {
			return errStopping
		}
	}
}

func (c *courier) delay(id string, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next[id] = dueTime{at: time.Now().Add(pause), pause: pause}
}

// run sends what is due until ctx ends.
func (c *courier) run(ctx context.Context) error {
	return every(ctx, courierEvery, func() {
		if c.node.Up() {
			c.sendDue(ctx)
		}
	})
}

// sendDue sends every outcome that is due and drops those that are too old for anybody to want them.
func (c *courier) sendDue(ctx context.Context) {
	if c.spool.Len() == 0 {
		return
	}
	now := time.Now()
	old, err := c.spool.Expire(now, spoolAge)
	if err != nil {
		c.node.log.Error().Err(err).Msg("spool not swept")
	}
	for _, id := range old {
		c.node.log.Warn().Str("task", id).Dur("age", spoolAge).Msg("outcome dropped: no scheduler acknowledged it")
	}
	for _, e := range c.spool.Entries() {
		c.mu.Lock()
		due, known := c.next[e.Key]
		c.mu.Unlock()
		if known && now.Before(due.at) {
			continue
		}
		if err := c.send(ctx, e); err != nil {
			return // Redis is away again: the next round tries
		}
		c.delay(e.Key, min(max(2*due.pause, redeliverAfter), redeliverMax))
	}
}

func (c *courier) send(ctx context.Context, e spool.Entry) error {
	var r workers.Result
	if err := json.Unmarshal(e.Data, &r); err != nil {
		c.node.log.Error().Str("task", e.Key).Err(err).Msg("spooled outcome is unreadable and dropped; the scheduler plans the trial again")
		return c.spool.Ack(e.Key)
	}
	return c.node.enqueue(ctx, resultHeader(e.Scheduler, r.Outcome.Key), &r)
}

// onAnswer drops what schedulers have acknowledged.
func (c *courier) onAnswer(_ context.Context, a *fleet.Answer) {
	if len(a.Acked) == 0 {
		return
	}
	if err := c.spool.Ack(a.Acked...); err != nil {
		c.node.log.Error().Err(err).Msg("acknowledged outcomes not dropped from the spool")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range a.Acked {
		delete(c.next, id)
	}
}

// hurry makes everything due: Redis lost its data, and with it what was sent and not yet stored.
func (c *courier) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.next)
}

// lastCall sends what is due before the worker ends; the rest waits on the disk.
func (c *courier) lastCall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if c.node.Up() {
		c.sendDue(ctx)
	}
}
