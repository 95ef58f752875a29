package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
	"ridgepoint/workers/blobs"
)

// blobWait is how long a worker waits for a missing blob to be published again before it gives the task back.
const blobWait = 5 * time.Second

type decodedCache struct {
	tasks      *blobs.Cache[*harness.Task]
	structures *blobs.Cache[*harness.Structure]
}

func newDecodedCache() decodedCache {
	return decodedCache{blobs.NewCache[*harness.Task](decodedBlobs), blobs.NewCache[*harness.Structure](decodedBlobs)}
}

// publish puts blobs that were not published in this epoch, and keeps them to publish again.
func (n *Node) publish(ctx context.Context, list []workers.Blob) error {
	for _, b := range list {
		n.mu.Lock()
		known := n.published[b.Digest]
		n.mu.Unlock()
		dropped := n.kept.Put(b.Digest, b.Data)
		n.forget(dropped)
		if known {
			continue
		}
		if err := n.store.Put(ctx, b.Digest, b.Data); err != nil {
			return err
		}
		n.mu.Lock()
		n.published[b.Digest] = true
		n.mu.Unlock()
	}
	return nil
}

// forget takes digests that are no longer kept out of the published ones: they are put again when they are used again.
func (n *Node) forget(digests []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range digests {
		delete(n.published, d)
	}
}

// touch keeps the blobs in use alive and publishes again what is gone.
func (n *Node) touch(ctx context.Context) {
	missing, err := n.store.Touch(ctx, n.kept.Digests())
	if err != nil {
		n.log.Debug().Err(err).Msg("blobs not touched")
		return
	}
	n.republish(ctx, missing)
	if dir, ok := n.store.(*blobs.Dir); ok {
		if _, err := dir.Sweep(time.Now()); err != nil {
			n.log.Debug().Err(err).Msg("blob directory not swept")
		}
	}
}

// republish publishes wanted blobs that this process has.
func (n *Node) republish(ctx context.Context, digests []string) {
	for _, d := range digests {
		data, ok := n.kept.Get(d)
		n.mu.Lock()
		sources := n.sources
		n.mu.Unlock()
		for i := 0; !ok && i < len(sources); i++ {
			data, ok = sources[i](d)
		}
		if !ok {
			continue
		}
		err := n.store.Put(ctx, d, data)
		if err == nil {
			err = n.registry.Published(ctx, d)
		}
		if err != nil {
			n.log.Debug().Err(err).Str("blob", d).Msg("blob not published again")
			continue
		}
		n.log.Info().Str("blob", d).Msg("blob published again")
	}
}

// fetch gets a blob, asking the fleet to publish it again when it is missing, and waits a while for that.
func (n *Node) fetch(ctx context.Context, digest string) ([]byte, error) {
	data, err := n.store.Get(ctx, digest)
	if !errors.Is(err, blobs.ErrMissing) {
		return data, err
	}
	n.metrics.BlobsLost.Inc()
	if err := n.registry.Want(ctx, digest); err != nil {
		return nil, err
	}
	n.log.Warn().Str("blob", digest).Msg("blob is missing; asked for it again")
	deadline := time.NewTimer(blobWait)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-deadline.C:
			return nil, fmt.Errorf("nobody published blob %.12s within %v: %w", digest, blobWait, blobs.ErrMissing)
		case <-tick.C:
			if data, err = n.store.Get(ctx, digest); !errors.Is(err, blobs.ErrMissing) {
				return data, err
			}
		}
	}
}

// unpack rebuilds a job from its payload and the blobs that it names.
func (n *Node) unpack(ctx context.Context, e *workers.Evaluation) (*scheduler.Job, error) {
	return e.Unpack(
		func(d string) (*harness.Task, error) { return load(ctx, n, n.decoded.tasks, d) },
		func(d string) (*harness.Structure, error) { return n.structure(ctx, d) },
		n.opt.ShippedFunc)
}

// structure loads a structure whose source has the digest that it says it has.
func (n *Node) structure(ctx context.Context, digest string) (*harness.Structure, error) {
	s, err := load(ctx, n, n.decoded.structures, digest)
	if err != nil {
		return nil, err
	}
	if sum := workers.NewBlob([]byte(s.Source)).Digest; sum != s.Digest {
		return nil, &workers.Refusal{Reason: workers.ReasonMalformed, Detail: fmt.Sprintf("structure %.40q says that its source has digest %.12s; it has %.12s", s.Name, s.Digest, sum)}
	}
	return s, nil
}

func load[T any](ctx context.Context, n *Node, cache *blobs.Cache[*T], digest string) (*T, error) {
	if v, ok := cache.Get(digest); ok {
		return v, nil
	}
	data, err := n.fetch(ctx, digest)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, &workers.Refusal{Reason: workers.ReasonMalformed, Detail: fmt.Sprintf("blob %.12s: %v", digest, err)}
	}
	cache.Put(digest, v)
	return v, nil
}
