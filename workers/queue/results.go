package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/fleet"
)

// resultSlots is how many outcomes are handed to the store at once; the store commits them together.
const resultSlots = 64

// ackEvery is how often acknowledgements are sent to spools: many in one message.
const ackEvery = 200 * time.Millisecond

// Scheduler serves a scheduler's side until ctx ends: it takes outcomes from the scheduler's queue, hands them to deliver,
// acknowledges them to the workers' spools, and brings back the tasks of dead workers. Only one process at a time may serve
// an id; the lock on the store that the id comes from sees to that.
func (n *Node) Scheduler(ctx context.Context, id string, deliver scheduler.Deliver) error {
	r := &results{node: n, deliver: deliver, acks: map[string][]string{}}
	hand := newInHand()
	n.mu.Lock()
	n.scheduler = id
	n.describe = append(n.describe, func(m *fleet.Member) { r.describe(m, hand) })
	n.mu.Unlock()
	queue := workers.ResultsQueue(id)
	if err := n.reclaim(ctx, queue); err != nil {
		if ctx.Err() != nil {
			return nil // ended before it began
		}
		return err
	}
	srv := n.server(map[string]int{queue: 1}, true, resultSlots, 5*time.Second)
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	if err := srv.Start(n.handler(base, workers.KindOutcome, hand, r.take)); err != nil {
		return fmt.Errorf("serve %s: %w", queue, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return every(gctx, ackEvery, func() { r.flush(gctx) }) })
	g.Go(func() error { return newReaper(n).run(gctx) })
	g.Go(func() error { return n.watchQueues(gctx) })
	err := g.Wait()
	stopServer(srv, func() { stop(errStopping) }, 3*time.Second)
	r.flush(base)
	return err
}

type results struct {
	node    *Node
	deliver scheduler.Deliver

	mu   sync.Mutex
	acks map[string][]string // by spool
}

func (r *results) describe(m *fleet.Member, hand *inHand) {
	m.Kinds = append(m.Kinds, "scheduler")
	m.Tasks = append(m.Tasks, hand.list()...)
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	for _, c := range r.node.campaigns {
		m.Campaigns = append(m.Campaigns, c)
	}
}

// take hands one outcome to the store, then remembers to acknowledge it.
func (r *results) take(ctx context.Context, payload []byte, at workers.Place, _ int) error {
	var body workers.Result
	h, err := workers.Open(r.node.cfg.Keyring, payload, at, &body)
	if err != nil {
		return err
	}
	if want := workers.TaskID(body.Outcome.Key, workers.KindOutcome); want != at.TaskID {
		return &workers.Refusal{Reason: workers.ReasonMisplaced, Detail: fmt.Sprintf("outcome of %s under the id %s", want, at.TaskID)}
	}
	r.node.waited(h, r.node.log)
	started := time.Now()
	if err := r.deliver(ctx, &body.Outcome); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return errStopping
		}
		return fmt.Errorf("store outcome %s: %w", at.TaskID, err)
	}
	r.node.metrics.Stage.WithLabelValues("commit").Observe(time.Since(started).Seconds())
	r.node.metrics.Outcomes.WithLabelValues(body.Outcome.Report.Fault.String()).Inc()
	if body.Spool != "" {
		r.mu.Lock()
		r.acks[body.Spool] = append(r.acks[body.Spool], at.TaskID)
		r.mu.Unlock()
	}
	return nil
}

// flush sends the acknowledgements. Those that cannot be sent are kept; a worker that never gets one delivers again, and the
// store knows the outcome.
func (r *results) flush(ctx context.Context) {
	r.mu.Lock()
	acks := r.acks
	r.acks = map[string][]string{}
	r.mu.Unlock()
	if len(acks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatLimit)
	defer cancel()
	if err := r.node.registry.Acknowledge(ctx, acks); err != nil {
		r.mu.Lock()
		for spool, ids := range acks {
			r.acks[spool] = append(r.acks[spool], ids...)
		}
		r.mu.Unlock()
	}
}

// reclaimScript puts every active task of a queue back to the front of it. KEYS: active, pending, lease. ARGV: task key prefix, now.
var reclaimScript = redis.NewScript(`
local ids = redis.call('LRANGE', KEYS[1], 0, -1)
for _, id in ipairs(ids) do
  redis.call('LREM', KEYS[1], 1, id)
  redis.call('ZREM', KEYS[3], id)
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('HSET', ARGV[1] .. id, 'state', 'pending', 'pending_since', ARGV[2])
    redis.call('RPUSH', KEYS[2], id)
  end
end
return #ids`)

// reclaim takes back what an earlier process of this scheduler had in hand when it died: nobody else serves its queue.
func (n *Node) reclaim(ctx context.Context, queue string) error {
	count, err := reclaimScript.Run(ctx, n.client, []string{activeKey(queue), pendingKey(queue), leaseKey(queue)},
		taskKey(queue, ""), n.Now().UnixNano()).Int()
	if err != nil {
		return fmt.Errorf("take back outcomes of %s: %w", queue, err)
	}
	if count > 0 {
		n.log.Info().Int("outcomes", count).Msg("took back outcomes that an earlier process had in hand")
	}
	return nil
}
