package limits

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// takeScript takes n tokens or answers how many milliseconds until they are there. KEYS: bucket. ARGV: rate per second, burst, n.
var takeScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local rate, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or ARGV[2])
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or now)
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000)
local wait = 0
if tokens >= n then tokens = tokens - n else wait = math.ceil((n - tokens) * 1000 / rate) end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.3f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst * 1000 / rate) + 60000)
return wait`)

// Bucket is a token bucket that a fleet shares: rate tokens a second, at most burst saved up.
type Bucket struct {
	client redis.UniversalClient
	class  string
	rate   float64
	burst  float64
}

// NewBucket returns the bucket of a class. Rate is in tokens a second; burst is the most that can be taken at once.
func NewBucket(client redis.UniversalClient, class string, rate, burst float64) (*Bucket, error) {
	if !(rate > 0) || !(burst >= 1) {
		return nil, fmt.Errorf("bucket %s: want a rate above 0 and a burst of at least 1, got %g and %g", class, rate, burst)
	}
	return &Bucket{client: client, class: class, rate: rate, burst: burst}, nil
}

// Take waits until n tokens are there and takes them.
func (b *Bucket) Take(ctx context.Context, n float64) error {
	if !(n >= 0) || n > b.burst {
		return fmt.Errorf("bucket %s: want between 0 and %g tokens at once, got %g", b.class, b.burst, n)
	}
	for {
		wait, err := takeScript.Run(ctx, b.client, []string{prefix + b.class + ":bucket"}, b.rate, b.burst, n).Int64()
		if err != nil {
			return fmt.Errorf("bucket %s: %w", b.class, err)
		}
		if wait == 0 {
			return nil
		}
		timer := time.NewTimer(time.Duration(wait) * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("bucket %s: %w", b.class, ctx.Err())
		case <-timer.C:
		}
	}
}
