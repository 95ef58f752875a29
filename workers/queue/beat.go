package queue

import (
	"context"
	"os"
	"time"

	"github.com/hibiken/asynq"

	"ridgepoint/workers/fleet"
	"ridgepoint/workers/limits"
)

// beat tells the fleet about this process and acts on the answer.
func (n *Node) beat(ctx context.Context) error {
	m := n.member()
	bctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	sent := time.Now()
	n.mu.Lock()
	spool := n.spoolID
	n.mu.Unlock()
	answer, err := n.registry.Beat(bctx, m, spool, nonce()+nonce())
	if err != nil {
		if ctx.Err() == nil && n.isUp.Swap(false) {
			n.metrics.RedisUp.Set(0)
			n.log.Warn().Err(err).Msg("redis lost; work in hand goes on and is delivered later")
		}
		return err
	}
	if !n.isUp.Swap(true) {
		n.log.Info().Msg("redis back")
	}
	n.metrics.RedisUp.Set(1)
	n.metrics.LeasesHeld.Set(float64(n.gate.Held()))
	took := time.Since(sent)
	n.offset.Store(int64(answer.Now.Sub(sent.Add(took / 2))))
	n.noteEpoch(ctx, answer.Epoch)
	n.noteDrain(answer.Drain)
	n.republish(ctx, answer.Wanted)
	n.mu.Lock()
	callbacks := n.onAnswer
	n.mu.Unlock()
	for _, f := range callbacks {
		f(ctx, answer)
	}
	return nil
}

// member describes this process.
func (n *Node) member() *fleet.Member {
	m := &fleet.Member{ID: n.id, Host: n.host, PID: os.Getpid(), Version: n.opt.Version, State: fleet.StateWorking,
		StartedMS: n.started.Add(time.Duration(n.offset.Load())).UnixMilli()}
	if n.draining.Load() {
		m.State = fleet.StateDraining
	}
	n.mu.Lock()
	describe := n.describe
	n.mu.Unlock()
	for _, f := range describe {
		f(m)
	}
	if m.State == fleet.StateDraining && len(m.Tasks) == 0 {
		m.State = fleet.StateDrained
	}
	return m
}

// noteEpoch notices that Redis lost its data: asynq's client is made anew (it registers each queue once in its life),
// blobs count as unpublished, limits are set again, and whoever wants to know is told.
func (n *Node) noteEpoch(ctx context.Context, epoch string) {
	n.mu.Lock()
	first, changed := n.epoch == "", n.epoch != epoch
	n.epoch = epoch
	if changed {
		n.published = map[string]bool{}
	}
	callbacks, limited := n.onNewData, n.limitedIn == epoch
	n.mu.Unlock()
	if !limited {
		n.setLimits(ctx, epoch)
	}
	if !changed {
		return
	}
	n.tasks.Store(asynq.NewClientFromRedisClient(n.client))
	if first {
		return
	}
	n.metrics.RedisEpochs.Inc()
	n.log.Warn().Str("epoch", epoch).Msg("redis lost its data; planned work is submitted again")
	for _, f := range callbacks {
		f()
	}
}

// setLimits sets the permits and rates in this epoch's data; the next beat tries again when it could not.
func (n *Node) setLimits(ctx context.Context, epoch string) {
	err := limits.Set(ctx, n.client, n.opt.Limits)
	if err == nil {
		err = limits.SetRates(ctx, n.client, n.opt.Rates)
	}
	if err != nil {
		n.log.Debug().Err(err).Msg("limits not set yet")
		return
	}
	n.mu.Lock()
	n.limitedIn = epoch
	n.mu.Unlock()
}

func (n *Node) noteDrain(drain bool) {
	if n.draining.Swap(drain) == drain {
		return
	}
	if drain {
		n.log.Info().Msg("draining: work in hand is finished, no more is taken")
	} else {
		n.log.Info().Msg("drain was taken back")
	}
}

// fleetNow returns the live members, at most a beat old.
func (n *Node) fleetNow(ctx context.Context) ([]fleet.Member, error) {
	n.mu.Lock()
	members, fresh := n.members, time.Since(n.membersAt) < beatEvery
	n.mu.Unlock()
	if fresh {
		return members, nil
	}
	members, _, err := n.registry.List(ctx, fleet.Live)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.members, n.membersAt = members, time.Now()
	n.mu.Unlock()
	return members, nil
}
