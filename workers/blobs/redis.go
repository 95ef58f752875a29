package blobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// keyPrefix has a hash tag, so that a cluster keeps all of Ridgepoint's own keys in one slot.
const keyPrefix = "{ridgepoint}:blob:"

// Redis is a Store in Redis.
type Redis struct {
	client redis.UniversalClient
	ttl    time.Duration
}

// NewRedis returns a store whose blobs live for ttl after they were last put or touched.
func NewRedis(client redis.UniversalClient, ttl time.Duration) *Redis {
	return &Redis{client: client, ttl: ttl}
}

// Put publishes a blob.
func (r *Redis) Put(ctx context.Context, digest string, data []byte) error {
	if err := errors.Join(validDigest(digest), Check(digest, data)); err != nil {
		return err
	}
	if err := r.client.Set(ctx, keyPrefix+digest, data, r.ttl).Err(); err != nil {
		return fmt.Errorf("put blob %.12s: %w", digest, err)
	}
	return nil
}

// Get reads a blob and checks it.
func (r *Redis) Get(ctx context.Context, digest string) ([]byte, error) {
	if err := validDigest(digest); err != nil {
		return nil, err
	}
	data, err := r.client.Get(ctx, keyPrefix+digest).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("get blob %.12s: %w", digest, ErrMissing)
	case err != nil:
		return nil, fmt.Errorf("get blob %.12s: %w", digest, err)
	default:
		return data, Check(digest, data)
	}
}

// Touch refreshes the time to live in one round trip.
func (r *Redis) Touch(ctx context.Context, digests []string) (missing []string, err error) {
	if len(digests) == 0 {
		return nil, nil
	}
	found := make([]*redis.BoolCmd, len(digests))
	_, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, d := range digests {
			found[i] = p.PExpire(ctx, keyPrefix+d, r.ttl)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("touch %d blobs: %w", len(digests), err)
	}
	for i, cmd := range found {
		if !cmd.Val() {
			missing = append(missing, digests[i])
		}
	}
	return missing, nil
}
