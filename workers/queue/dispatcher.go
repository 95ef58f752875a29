package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/fleet"
)

// expiryGrace is how long after its job's deadline a payload may still start: a late start is better than a lost one as long
// as nobody has planned another attempt, and with a spooled outcome the store decides.
const expiryGrace = 10 * time.Minute

// Campaign says for which campaign a Dispatcher works. All its jobs have the same target, arch and features.
type Campaign struct {
	ID       string
	Target   harness.Target
	Arch     string
	Features []string
	Weight   float64 // 0: 1
	Priority int
}

// Dispatcher carries the jobs of one campaign. It implements scheduler.Dispatcher and scheduler.Tracker.
type Dispatcher struct {
	node     *Node
	campaign Campaign
	compile  string // base queues
	device   string
}

var (
	_ scheduler.Dispatcher = (*Dispatcher)(nil)
	_ scheduler.Tracker    = (*Dispatcher)(nil)
)

// Dispatcher returns the campaign's dispatcher and lists the campaign in the fleet, so that others leave it its share.
func (n *Node) Dispatcher(c Campaign) *Dispatcher {
	if c.Weight <= 0 {
		c.Weight = 1
	}
	d := &Dispatcher{node: n, campaign: c, compile: workers.CompileQueue(c.Target), device: workers.DeviceQueue(c.Target, c.Arch, c.Features)}
	n.mu.Lock()
	n.campaigns[c.ID] = fleet.Campaign{ID: c.ID, Queue: d.device, Weight: c.Weight, Priority: c.Priority}
	n.mu.Unlock()
	return d
}

// Close takes the campaign off the fleet's list.
func (d *Dispatcher) Close() {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	delete(d.node.campaigns, d.campaign.ID)
}

// Dispatch publishes the job's blobs and enqueues it to its compile queue. A job that is there already counts as accepted.
// While Redis is away it waits: the plan is in the store, and the beat says once what a refusal of every job would say often.
func (d *Dispatcher) Dispatch(ctx context.Context, j *scheduler.Job) error {
	for {
		err := d.dispatch(ctx, j)
		if err == nil || !isAway(err) || ctx.Err() != nil {
			return err
		}
		if err := sleep(ctx, courierEvery); err != nil {
			return err
		}
	}
}

func (d *Dispatcher) dispatch(ctx context.Context, j *scheduler.Job) error {
	n := d.node
	left := time.Until(j.Deadline)
	if j.Deadline.IsZero() {
		left = time.Hour
	}
	deadline := n.Now().Add(left)
	e, list, err := workers.Pack(j, deadline)
	if err != nil {
		return err
	}
	if err := n.publish(ctx, list); err != nil {
		return fmt.Errorf("dispatch %s/%d: %w", j.Key.Campaign, j.Key.Trial, err)
	}
	e.Weight, e.Priority = d.campaign.Weight, d.campaign.Priority
	return n.enqueue(ctx, workers.Header{Kind: workers.KindCompile, Queue: workers.PriorityQueue(d.compile, e.Priority),
		TaskID: workers.TaskID(j.Key, workers.KindCompile), Scheduler: j.Scheduler, ExpiresMS: deadline.Add(expiryGrace).UnixMilli()}, e)
}

// Capacity returns how many trials this campaign is due to have in line for the live devices that serve its queue, at least 1.
func (d *Dispatcher) Capacity(ctx context.Context) (int, error) {
	members, err := d.node.fleetNow(ctx)
	if err != nil {
		return 0, err
	}
	return fleet.Capacity(members, d.device, d.campaign.ID, d.campaign.Weight, d.campaign.Priority), nil
}

// Missing returns the attempts of which Redis holds no live task: neither a compile, a measurement nor an outcome. It looks
// at all of an attempt's steps in one transaction.
func (d *Dispatcher) Missing(ctx context.Context, attempts []scheduler.TrialKey) ([]scheduler.TrialKey, error) {
	const perRound = 1000
	var missing []scheduler.TrialKey
	for len(attempts) > 0 {
		part := attempts[:min(perRound, len(attempts))]
		attempts = attempts[len(part):]
		lost, err := d.missingOf(ctx, part)
		if err != nil {
			return nil, err
		}
		missing = append(missing, lost...)
	}
	return missing, nil
}

func (d *Dispatcher) missingOf(ctx context.Context, part []scheduler.TrialKey) ([]scheduler.TrialKey, error) {
	states := make([][3]*redis.StringCmd, len(part))
	_, err := d.node.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range part {
			for s, step := range d.steps(key) {
				states[i][s] = p.HGet(ctx, taskKey(step.queue, step.id), "state")
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("look for %d planned attempts: %w", len(part), err)
	}
	var missing []scheduler.TrialKey
	for i, key := range part {
		found := false
		for _, cmd := range states[i] {
			found = found || cmd.Err() == nil && cmd.Val() != "archived"
		}
		if !found {
			missing = append(missing, key)
		}
	}
	return missing, nil
}

type step struct{ queue, id string }

func (d *Dispatcher) steps(key scheduler.TrialKey) [3]step {
	n := d.node
	return [3]step{
		{workers.PriorityQueue(d.compile, d.campaign.Priority), workers.TaskID(key, workers.KindCompile)},
		{workers.PriorityQueue(d.device, d.campaign.Priority), workers.TaskID(key, workers.KindGPU)},
		{workers.ResultsQueue(n.schedulerID()), workers.TaskID(key, workers.KindOutcome)},
	}
}

// taskKey is asynq v0.26's key of a task's hash (internal/base/base.go); a test holds it to what asynq writes.
func taskKey(queue, id string) string { return "asynq:{" + queue + "}:t:" + id }

func (n *Node) schedulerID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.scheduler
}
