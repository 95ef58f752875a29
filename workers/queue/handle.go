package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"ridgepoint/workers"
)

// The ways in which a step ends without being done, none of them the payload's fault.
var (
	errStopping  = errors.New("this process is stopping")
	errElsewhere = errors.New("left for another device")
)

const (
	taskCheckInterval    = 50 * time.Millisecond  // idle pickup: 25 ms in the median at 0.6 % of a core
	delayedCheckInterval = 250 * time.Millisecond // retries come back within this
	elsewhereDelay       = 150 * time.Millisecond
)

// stepFunc does one step. Ctx is the process's, not asynq's; at tells where the payload was found.
type stepFunc func(ctx context.Context, payload []byte, at workers.Place, tries int) error

// inHand is the set of task ids that this process works on, which its beat claims against the reaper.
type inHand struct {
	mu  sync.Mutex
	ids map[string]int
}

func newInHand() *inHand { return &inHand{ids: map[string]int{}} }

func (s *inHand) add(id string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] += by; s.ids[id] <= 0 {
		delete(s.ids, id)
	}
}

func (s *inHand) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.ids))
	for id := range s.ids {
		out = append(out, id)
	}
	return out
}

// handler wraps a step for asynq: it finds the place, claims the task, catches panics, and turns refusals into parked tasks.
// Work is bound to base, the process's context: asynq cancels its own when Redis is away for 30 s.
func (n *Node) handler(base context.Context, kind workers.Kind, hand *inHand, do stepFunc) asynq.Handler {
	return asynq.HandlerFunc(func(actx context.Context, t *asynq.Task) (err error) {
		id, _ := asynq.GetTaskID(actx)
		queue, _ := asynq.GetQueueName(actx)
		tries, _ := asynq.GetRetryCount(actx)
		hand.add(id, 1)
		defer hand.add(id, -1)
		defer func() {
			if p := recover(); p != nil {
				n.log.Error().Str("task", id).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("handler panicked")
				err = &workers.Refusal{Reason: workers.ReasonPanic, Detail: fmt.Sprint(p)}
			}
			err = n.settle(id, queue, kind, err)
		}()
		ctx, cancel := context.WithCancelCause(base)
		defer cancel(nil)
		return do(ctx, t.Payload(), workers.Place{Kind: kind, Queue: queue, TaskID: id, Now: n.Now()}, tries)
	})
}

// settle counts and logs how a step failed, and says to asynq whether to park or to retry.
func (n *Node) settle(id, queue string, kind workers.Kind, err error) error {
	var refusal *workers.Refusal
	switch {
	case err == nil, errors.Is(err, errElsewhere), errors.Is(err, errStopping):
		return err
	case errors.As(err, &refusal):
		n.refused.Add(1)
		n.metrics.Refused.WithLabelValues(string(refusal.Reason)).Inc()
		n.log.Warn().Str("task", id).Str("queue", queue).Str("reason", string(refusal.Reason)).Str("detail", refusal.Detail).Msg("payload refused and parked")
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	case isAway(err):
		n.log.Debug().Str("task", id).Err(err).Msg("step waits for redis") // the beat says once that Redis is lost
		return err
	default:
		n.infra.Add(1)
		n.metrics.Infra.WithLabelValues(kind.String()).Inc()
		n.log.Warn().Str("task", id).Err(err).Msg("infrastructure fault; the step is tried again")
		return err
	}
}

// isAway reports whether an error says that Redis does not answer now: nothing else here uses the network.
func isAway(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) ||
		redis.HasErrorPrefix(err, "LOADING") || redis.HasErrorPrefix(err, "READONLY") || redis.HasErrorPrefix(err, "MASTERDOWN")
}

// server makes an asynq server for some queues. Strict takes higher ranks first; without it, ranks are weights.
func (n *Node) server(queues map[string]int, strict bool, slots int, grace time.Duration) *asynq.Server {
	return asynq.NewServerFromRedisClient(n.client, asynq.Config{
		Concurrency:              slots,
		Queues:                   queues,
		StrictPriority:           strict,
		TaskCheckInterval:        taskCheckInterval,
		DelayedTaskCheckInterval: delayedCheckInterval,
		RetryDelayFunc:           retryDelay,
		IsFailure:                isFailure,
		Logger:                   asynqLogger{n.log, n.metrics},
		LogLevel:                 asynq.InfoLevel,
		ShutdownTimeout:          grace,
		HealthCheckInterval:      time.Minute,
		JanitorInterval:          time.Minute,
	})
}

// retryDelay backs off from 250 ms to 10 s; what is only in the wrong place comes back at once.
func retryDelay(tries int, err error, _ *asynq.Task) time.Duration {
	if errors.Is(err, errElsewhere) || errors.Is(err, errStopping) {
		return elsewhereDelay
	}
	return min(250*time.Millisecond<<min(tries, 10), 10*time.Second)
}

// again reports a step that was done before.
func (n *Node) again(id string, kind workers.Kind) {
	n.repeated.Add(1)
	n.metrics.Again.WithLabelValues(kind.String()).Inc()
	n.log.Debug().Str("task", id).Msg("step was done before; dropped")
}

// waited notes how long a payload waited and returns it.
func (n *Node) waited(h workers.Header, log zerolog.Logger) time.Duration {
	wait := max(0, n.Now().Sub(time.UnixMilli(h.IssuedMS)))
	n.metrics.QueueWait.WithLabelValues(h.Kind.String()).Observe(wait.Seconds())
	log.Debug().Str("task", h.TaskID).Dur("waited", wait).Msg("taken")
	return wait
}

// isFailure tells asynq which errors count against a task's tries.
func isFailure(err error) bool {
	return !errors.Is(err, errElsewhere) && !errors.Is(err, errStopping) && !isAway(err)
}
