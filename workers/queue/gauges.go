package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"ridgepoint/workers/fleet"
	"ridgepoint/workers/limits"
)

func (n *Node) inspector() *asynq.Inspector { return asynq.NewInspectorFromRedisClient(n.client) }

// Depth is how many tasks a queue holds, by state.
type Depth struct {
	Queue    string `json:"queue"`
	Pending  int64  `json:"pending"`
	Active   int64  `json:"active"`
	Retry    int64  `json:"retry"`
	Archived int64  `json:"parked"`
}

// Depths returns every queue's depth, sorted by name, in two round trips.
func Depths(ctx context.Context, client redis.UniversalClient) ([]Depth, error) {
	queues, err := client.SMembers(ctx, queuesKey).Result()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	slices.Sort(queues)
	counts := make([][4]*redis.IntCmd, len(queues))
	_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			counts[i] = [4]*redis.IntCmd{p.LLen(ctx, pendingKey(q)), p.LLen(ctx, activeKey(q)),
				p.ZCard(ctx, "asynq:{"+q+"}:retry"), p.ZCard(ctx, archivedKey(q))}
		}
		return nil
	})
	if err != nil && len(queues) > 0 {
		return nil, fmt.Errorf("read queue depths: %w", err)
	}
	out := make([]Depth, len(queues))
	for i, q := range queues {
		c := counts[i]
		out[i] = Depth{Queue: q, Pending: c[0].Val(), Active: c[1].Val(), Retry: c[2].Val(), Archived: c[3].Val()}
	}
	return out, nil
}

// gauges reads what is not counted as it happens: queues, limits, members.
func (n *Node) gauges(ctx context.Context) error {
	depths, err := Depths(ctx, n.client)
	if err != nil {
		return err
	}
	for _, d := range depths {
		n.metrics.QueueDepth.WithLabelValues(d.Queue, "pending").Set(float64(d.Pending))
		n.metrics.QueueDepth.WithLabelValues(d.Queue, "active").Set(float64(d.Active))
		n.metrics.QueueDepth.WithLabelValues(d.Queue, "retry").Set(float64(d.Retry))
		n.metrics.QueueDepth.WithLabelValues(d.Queue, "parked").Set(float64(d.Archived))
	}
	usages, err := limits.Usages(ctx, n.client)
	if err != nil {
		return err
	}
	for _, u := range usages {
		n.metrics.LimitPermits.WithLabelValues(u.Class).Set(float64(u.Permits))
		n.metrics.LimitHolders.WithLabelValues(u.Class).Set(float64(u.Holders))
		n.metrics.LimitRate.WithLabelValues(u.Class).Set(u.Rate)
		n.metrics.LimitTokens.WithLabelValues(u.Class).Set(u.Tokens)
	}
	members, _, err := n.registry.List(ctx, 0)
	if err != nil {
		return err
	}
	count := map[fleet.State]int{fleet.StateWorking: 0, fleet.StateDraining: 0, fleet.StateDrained: 0, fleet.StateGone: 0}
	for _, m := range members {
		count[m.State]++
	}
	for state, c := range count {
		n.metrics.Members.WithLabelValues(string(state)).Set(float64(c))
	}
	return nil
}
