package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"ridgepoint/workers"
)

const (
	// maxRetry is never reached by what is retried here: steps count their own tries (infraTries), and asynq would archive
	// the task before asking whether the error is a failure at all.
	maxRetry = 1 << 20
	// taskTimeout is asynq's, relative since hosts' clocks differ. Steps have their own, far shorter limits.
	taskTimeout = 24 * time.Hour
)

// enqueue seals a payload and hands it to asynq. A task that is there already is what was wanted.
func (n *Node) enqueue(ctx context.Context, h workers.Header, body any) error {
	h.IssuedMS = n.Now().UnixMilli()
	payload, err := workers.Seal(n.cfg.Keyring, h, body)
	if err != nil {
		return err
	}
	ctx, lost := witness(ctx)
	_, err = n.tasks.Load().EnqueueContext(ctx, asynq.NewTask(h.Kind.String(), payload), asynq.Queue(h.Queue), asynq.TaskID(h.TaskID),
		asynq.MaxRetry(maxRetry), asynq.Timeout(taskTimeout))
	if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	if *lost != nil { // asynq keeps only the text of it
		err = *lost
	}
	return fmt.Errorf("enqueue %s to %s: %w", h.TaskID, h.Queue, err)
}

// Poison puts a payload that nobody can read into a queue, for soaks and drills: it must be parked and counted.
func Poison(ctx context.Context, client Client, queue, id string) error {
	_, err := asynq.NewClientFromRedisClient(client).EnqueueContext(ctx, asynq.NewTask("compile", []byte("poison")), asynq.Queue(queue), asynq.TaskID(id))
	return err
}
