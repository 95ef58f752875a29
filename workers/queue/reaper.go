package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/fleet"
)

// The reaper brings back the tasks of dead workers. A task that asynq lists as active is orphaned when its lease did not move
// for orphanAfter (asynq's servers extend leases every 5 s) and no live member of the fleet claims it in its beat. Both signs
// are changes seen here, by this process's own clock; no host's idea of the time is compared with another's. A killed
// worker's task is back after 8 to 10 s.
const (
	reapEvery   = time.Second
	orphanAfter = 8 * time.Second
	// killerLimit is how many workers may die on a task before it is parked instead of given to the next one.
	killerLimit = 3
	reapedKey   = "{ridgepoint}:reaped"
)

// The keys of asynq v0.26 that the reaper touches (internal/base/base.go); a test holds them to what asynq writes.
func activeKey(queue string) string   { return "asynq:{" + queue + "}:active" }
func pendingKey(queue string) string  { return "asynq:{" + queue + "}:pending" }
func leaseKey(queue string) string    { return "asynq:{" + queue + "}:lease" }
func archivedKey(queue string) string { return "asynq:{" + queue + "}:archived" }

const queuesKey = "asynq:queues"

// reapScript puts an orphan back to the front of its queue, unless somebody touched it since it was looked at. It answers the
// times that the task was brought back, 0 when it was not, and -1 when it is to be parked. KEYS: active, pending, lease, task, reaped.
// ARGV: id, lease seen ("" for none), now, limit.
var reapScript = redis.NewScript(`
if (redis.call('ZSCORE', KEYS[3], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('EXISTS', KEYS[4]) == 0 then return 0 end
local times = redis.call('HINCRBY', KEYS[5], ARGV[1], 1)
redis.call('EXPIRE', KEYS[5], 86400)
if times >= tonumber(ARGV[4]) then
  redis.call('HDEL', KEYS[5], ARGV[1])
  redis.call('HSET', KEYS[4], 'state', 'archived')
  redis.call('ZADD', ARGV[5], ARGV[3] / 1000000000, ARGV[1])
  return -1
end
redis.call('HSET', KEYS[4], 'state', 'pending', 'pending_since', ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[1])
return times`)

type orphan struct {
	queue, id, lease string
}

type reaper struct {
	node *Node
	seen map[orphan]time.Time // since when its lease stands still
}

func newReaper(n *Node) *reaper { return &reaper{node: n, seen: map[orphan]time.Time{}} }

// run looks every second until ctx ends. While Redis is away everything looks orphaned, so a failed look starts all waits anew.
func (r *reaper) run(ctx context.Context) error {
	return every(ctx, reapEvery, func() {
		lctx, cancel := context.WithTimeout(ctx, beatLimit)
		defer cancel()
		if err := r.look(lctx); err != nil {
			clear(r.seen)
			r.node.log.Debug().Err(err).Msg("reaper could not look")
		}
	})
}

// look finds orphans and brings back those that have been ones for long enough.
func (r *reaper) look(ctx context.Context) error {
	queues, err := r.node.client.SMembers(ctx, queuesKey).Result()
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	active, err := r.active(ctx, queues)
	if err != nil {
		return err
	}
	claimed := map[string]bool{}
	if len(active) > 0 {
		members, _, err := r.node.registry.List(ctx, fleet.Live)
		if err != nil {
			return err
		}
		for _, m := range members {
			for _, id := range m.Tasks {
				claimed[id] = true
			}
		}
	}
	now := time.Now()
	still := map[orphan]time.Time{}
	for _, o := range active {
		since, ok := r.seen[o]
		if !ok {
			since = now
		}
		still[o] = since
		if now.Sub(since) < orphanAfter || claimed[o.id] {
			continue
		}
		if err := r.reap(ctx, o); err != nil {
			return err
		}
		delete(still, o)
	}
	r.seen = still
	return nil
}

// active lists the tasks that asynq holds for active, with their leases.
func (r *reaper) active(ctx context.Context, queues []string) ([]orphan, error) {
	ids := make([]*redis.StringSliceCmd, len(queues))
	leases := make([]*redis.ZSliceCmd, len(queues))
	_, err := r.node.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			ids[i] = p.LRange(ctx, activeKey(q), 0, -1)
			leases[i] = p.ZRangeWithScores(ctx, leaseKey(q), 0, -1)
		}
		return nil
	})
	if err != nil && len(queues) > 0 {
		return nil, fmt.Errorf("list active tasks: %w", err)
	}
	var out []orphan
	for i, q := range queues {
		lease := map[string]string{}
		for _, z := range leases[i].Val() {
			lease[fmt.Sprint(z.Member)] = fmt.Sprintf("%.0f", z.Score)
		}
		for _, id := range ids[i].Val() {
			out = append(out, orphan{q, id, lease[id]})
		}
	}
	return out, nil
}

func (r *reaper) reap(ctx context.Context, o orphan) error {
	n := r.node
	keys := []string{activeKey(o.queue), pendingKey(o.queue), leaseKey(o.queue), taskKey(o.queue, o.id), reapedKey}
	times, err := reapScript.Run(ctx, n.client, keys, o.id, o.lease, n.Now().UnixNano(), killerLimit, archivedKey(o.queue)).Int()
	switch {
	case err != nil:
		return fmt.Errorf("bring back %s: %w", o.id, err)
	case times > 0:
		n.metrics.Requeued.Inc()
		n.log.Warn().Str("task", o.id).Str("queue", o.queue).Int("times", times).Msg("its worker died; task brought back")
	case times < 0:
		n.metrics.Parked.Inc()
		n.metrics.Refused.WithLabelValues(string(workers.ReasonKiller)).Inc()
		n.log.Error().Str("task", o.id).Str("queue", o.queue).Int("workers", killerLimit).Msg("its workers died on it; task parked")
		return r.report(ctx, o)
	}
	return nil
}

// report tells the scheduler of a parked evaluation that it crashed its workers: a result, and the last word on it.
func (r *reaper) report(ctx context.Context, o orphan) error {
	key, kind, err := workers.ParseTaskID(o.id)
	if err != nil || kind == workers.KindOutcome {
		return nil // not an evaluation of ours: parked is all that can be done
	}
	info, err := r.node.inspector().GetTaskInfo(o.queue, o.id)
	if err != nil {
		return fmt.Errorf("read parked task %s: %w", o.id, err)
	}
	var e workers.Evaluation
	h, err := workers.Open(r.node.cfg.Keyring, info.Payload, workers.Place{Kind: kind, Queue: o.queue, TaskID: o.id, Now: r.node.Now()}, &e)
	if err != nil || e.Key != key {
		return nil // a stranger's: nobody planned it
	}
	now := r.node.Now()
	report := harness.Report{Version: harness.ReportVersion, TaskDigest: e.TaskDigest, Target: e.Candidate.Target, Arch: e.Candidate.Options.Arch,
		Fault: harness.FaultCrash, Stage: e.Plan.Stage, Seed: e.Plan.Seed, Started: now, Finished: now, Build: e.Build,
		Reason: fmt.Sprintf("%d worker processes died while they had this candidate at its %s step", killerLimit, kind)}
	if job, err := r.node.unpack(ctx, &e); err == nil {
		report.CandidateID, report.Task = job.Request.Candidate.ID(), job.Request.Task.Name
	}
	out := workers.Result{Outcome: scheduler.Outcome{Key: key, Final: true, Report: report, Worker: r.node.id}}
	return r.node.enqueue(ctx, resultHeader(h.Scheduler, key), out)
}

// watchQueues keeps the queue depth and limit gauges fresh.
func (n *Node) watchQueues(ctx context.Context) error {
	return every(ctx, 5*time.Second, func() {
		wctx, cancel := context.WithTimeout(ctx, beatLimit)
		defer cancel()
		if err := n.gauges(wctx); err != nil {
			n.log.Debug().Err(err).Msg("gauges not read")
		}
	})
}
