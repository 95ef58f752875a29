// Package limits bounds what a fleet does at once and how often: permits by lease for classes of work (at most so many
// compiles, so many measurements), and token buckets, from which every permit's work takes one before it begins. Permits live in Redis as a sorted set of holders by expiry on Redis's
// own clock, so that hosts may disagree about the time; every grant has a fencing number, and who held a lease past its end
// learns so and must throw its result away. Limits are awaited where the work is done: a task that waits keeps its slot and
// burns no retry. This package must not know what the work is.
package limits

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrLost says that a lease ran out before its work was finished: somebody else may hold the permit, and the result is void.
var ErrLost = errors.New("lease was lost")

// ErrDone says that the task was finished before, by whoever: it is not to be done again.
var ErrDone = errors.New("task was finished before")

const (
	permitsKey = "{ridgepoint}:limits"
	ratesKey   = "{ridgepoint}:rates"
	prefix     = "{ridgepoint}:limit:"
	donePrefix = "{ridgepoint}:done:"
)

// leaseTTL is how long a permit outlives the last sign of its holder. Three renewals fit into it.
const leaseTTL = 4500 * time.Millisecond

// waiterTTL is how long somebody who waits is believed to be there; waiting is renewed every wakeTimeout.
const (
	waiterTTL   = 4 * time.Second
	wakeTimeout = time.Second
)

// Set makes permits fleet-wide: class to how many may hold one at once. Classes that are not named keep what they have; zero
// takes a limit away.
func Set(ctx context.Context, client redis.UniversalClient, permits map[string]int) error {
	for class, n := range permits {
		if n < 0 {
			return fmt.Errorf("limit %s: want 0 (no limit) or more permits, got %d", class, n)
		}
		var err error
		if n == 0 {
			err = client.HDel(ctx, permitsKey, class).Err()
		} else {
			err = client.HSet(ctx, permitsKey, class, n).Err()
		}
		if err != nil {
			return fmt.Errorf("set limit %s: %w", class, err)
		}
	}
	return nil
}

// Usage is how a class stands.
type Usage struct {
	Class   string  `json:"class"`
	Permits int     `json:"permits"` // 0: not limited
	Holders int     `json:"holders"`
	Waiting int     `json:"waiting"`          // for a permit
	Fence   int64   `json:"fence"`            // grants so far
	Rate    float64 `json:"rate,omitempty"`   // that may begin a second; 0: not limited
	Burst   float64 `json:"burst,omitempty"`  // at once, after a pause
	Tokens  float64 `json:"tokens,omitempty"` // that are there now; below 0: so many wait for theirs
}

var usageScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local out, seen, classes = {}, {}, {}
for _, key in ipairs(KEYS) do
  for _, class in ipairs(redis.call('HKEYS', key)) do
    if not seen[class] then seen[class] = true; classes[#classes+1] = class end
  end
end
table.sort(classes)
for _, class in ipairs(classes) do
  local p = ARGV[1] .. class
  out[#out+1] = class
  out[#out+1] = redis.call('HGET', KEYS[1], class) or '0'
  out[#out+1] = tostring(redis.call('ZCOUNT', p .. ':holders', '(' .. now, '+inf'))
  out[#out+1] = tostring(redis.call('ZCOUNT', p .. ':alive', '(' .. now, '+inf'))
  out[#out+1] = redis.call('GET', p .. ':fence') or '0'
  out[#out+1] = redis.call('HGET', KEYS[2], class) or ''
  out[#out+1] = redis.call('HGET', p .. ':bucket', 'tokens') or ''
  local at = redis.call('HGET', p .. ':bucket', 'at')
  out[#out+1] = string.format('%.0f', at and math.max(0, now - tonumber(at)) or 0)
end
return out`)

// usageParts is how many parts a class has in usageScript's answer.
const usageParts = 8

// Usages returns every class that is limited in either way, sorted, in one message.
func Usages(ctx context.Context, client redis.UniversalClient) ([]Usage, error) {
	flat, err := usageScript.Run(ctx, client, []string{permitsKey, ratesKey}, prefix).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	var out []Usage
	for ; len(flat) >= usageParts; flat = flat[usageParts:] {
		u := Usage{Class: flat[0]}
		var errs [5]error
		u.Permits, errs[0] = strconv.Atoi(flat[1])
		u.Holders, errs[1] = strconv.Atoi(flat[2])
		u.Waiting, errs[2] = strconv.Atoi(flat[3])
		u.Fence, errs[3] = strconv.ParseInt(flat[4], 10, 64)
		errs[4] = u.rate(flat[5], flat[6], flat[7])
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("read limit %s: %w", u.Class, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// rate fills in how the bucket stands: tokens as they were written ago milliseconds before; a bucket that was never used is full.
func (u *Usage) rate(text, tokens, ago string) error {
	if text == "" {
		return nil
	}
	r, err := parseRate(text)
	if err != nil {
		return err
	}
	u.Rate, u.Burst, u.Tokens = r.PerSecond, r.Burst, r.Burst
	if tokens == "" {
		return nil
	}
	had, err := strconv.ParseFloat(tokens, 64)
	if err != nil {
		return err
	}
	ms, err := strconv.ParseFloat(ago, 64)
	if err != nil {
		return err
	}
	u.Tokens = min(r.Burst, had+ms*r.PerSecond/1000)
	return nil
}
