package limits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// takeScript takes n tokens, on credit where they are not there yet, and answers how many milliseconds until they are: who
// comes later waits behind, and one message does for any number who wait. KEYS: bucket. ARGV: rate a second, burst, n.
// A negative n gives back what was taken for nothing.
var takeScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local rate, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or ARGV[2])
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or now)
tokens = math.min(burst, math.min(burst, tokens + math.max(0, now - at) * rate / 1000) - n)
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.3f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens) * 1000 / rate) + 60000)
return math.ceil(math.max(0, -tokens) * 1000 / rate)`)

// Rate is how often a class may begin: PerSecond on average, and up to Burst at once after a pause. The zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// Validate reports a rate that cannot be kept.
func (r Rate) Validate() error {
	if r == (Rate{}) {
		return nil
	}
	if !(r.PerSecond > 0) || !(r.Burst >= 1) || math.IsInf(r.PerSecond, 0) || math.IsInf(r.Burst, 0) {
		return fmt.Errorf("want a rate above 0 a second and a burst of at least 1, got %g and %g", r.PerSecond, r.Burst)
	}
	return nil
}

// String writes the rate as Redis holds it.
func (r Rate) String() string {
	return strconv.FormatFloat(r.PerSecond, 'g', -1, 64) + " " + strconv.FormatFloat(r.Burst, 'g', -1, 64)
}

// parseRate reads what String wrote.
func parseRate(text string) (Rate, error) {
	first, second, ok := strings.Cut(text, " ")
	if !ok {
		return Rate{}, fmt.Errorf("rate %q: want two numbers", text)
	}
	var r Rate
	var errs [2]error
	r.PerSecond, errs[0] = strconv.ParseFloat(first, 64)
	r.Burst, errs[1] = strconv.ParseFloat(second, 64)
	if err := errors.Join(errs[0], errs[1], r.Validate()); err != nil {
		return Rate{}, fmt.Errorf("rate %q: %w", text, err)
	}
	return r, nil
}

// SetRates makes rates fleet-wide. Classes that are not named keep what they have; the zero Rate takes one away.
func SetRates(ctx context.Context, client redis.UniversalClient, rates map[string]Rate) error {
	for class, r := range rates {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("rate of %s: %w", class, err)
		}
		var err error
		if r == (Rate{}) {
			err = client.HDel(ctx, ratesKey, class).Err()
		} else {
			err = client.HSet(ctx, ratesKey, class, r.String()).Err()
		}
		if err != nil {
			return fmt.Errorf("set the rate of %s: %w", class, err)
		}
	}
	return nil
}

// Bucket is a token bucket that a fleet shares.
type Bucket struct {
	client redis.UniversalClient
	class  string
	rate   Rate
}

// NewBucket returns the bucket of a class. All who use it must name the same rate.
func NewBucket(client redis.UniversalClient, class string, r Rate) (*Bucket, error) {
	if r == (Rate{}) {
		return nil, fmt.Errorf("bucket %s: has no rate", class)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", class, err)
	}
	return &Bucket{client: client, class: class, rate: r}, nil
}

// Take takes n tokens, in the order of the calls across the fleet, and waits until they are there. Tokens of a wait that ctx
// ends go back.
func (b *Bucket) Take(ctx context.Context, n float64) error {
	if !(n >= 0) || n > b.rate.Burst {
		return fmt.Errorf("bucket %s: want between 0 and %g tokens at once, got %g", b.class, b.rate.Burst, n)
	}
	wait, err := b.take(ctx, n)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", b.class, err)
	}
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err = b.take(back, -n)
	return fmt.Errorf("bucket %s: %w", b.class, errors.Join(context.Cause(ctx), err))
}

func (b *Bucket) take(ctx context.Context, n float64) (time.Duration, error) {
	ms, err := takeScript.Run(ctx, b.client, []string{bucketKey(b.class)}, b.rate.PerSecond, b.rate.Burst, n).Int64()
	return time.Duration(ms) * time.Millisecond, err
}

func bucketKey(class string) string { return prefix + class + ":bucket" }
