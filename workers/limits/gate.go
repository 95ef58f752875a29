package limits

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// beginScript answers {state, fence, rate}: done (the task has a done mark), free (the class has no limit), held, or wait; rate
// is the class's, or empty. KEYS: permits, holders, fence, waiters, alive, wake, done, rates. ARGV: class, id, lease ms, waiter ms.
// A grant that was pushed to the wake list while nobody listened is taken first.
var beginScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if ARGV[5] == '1' and redis.call('EXISTS', KEYS[7]) == 1 then
  redis.call('ZREM', KEYS[4], ARGV[2]); redis.call('ZREM', KEYS[5], ARGV[2])
  return {'done', '0', ''}
end
local rate = redis.call('HGET', KEYS[8], ARGV[1]) or ''
local permits = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local granted = redis.call('LPOP', KEYS[6])
if granted then
  local at = redis.call('ZSCORE', KEYS[2], ARGV[2] .. '#' .. granted)
  if at and tonumber(at) > now then
    redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[2] .. '#' .. granted)
    return {'held', granted, rate}
  end
end
if permits == 0 then
  redis.call('ZREM', KEYS[4], ARGV[2]); redis.call('ZREM', KEYS[5], ARGV[2])
  return {'free', '0', rate}
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now)) do
  redis.call('ZREM', KEYS[4], dead); redis.call('ZREM', KEYS[5], dead)
end
if not redis.call('ZSCORE', KEYS[4], ARGV[2]) then
  redis.call('ZADD', KEYS[4], redis.call('INCR', KEYS[4] .. ':seq'), ARGV[2])
end
redis.call('ZADD', KEYS[5], now + ARGV[4], ARGV[2])
local free = permits - redis.call('ZCARD', KEYS[2])
if redis.call('ZRANK', KEYS[4], ARGV[2]) < free then
  redis.call('ZREM', KEYS[4], ARGV[2]); redis.call('ZREM', KEYS[5], ARGV[2])
  local fence = redis.call('INCR', KEYS[3])
  redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[2] .. '#' .. string.format('%.0f', fence))
  return {'held', string.format('%.0f', fence), rate}
end
return {'wait', '0', rate}`)

// finishScript gives a lease back, marks the task done, and hands free permits to whoever waits longest, through the wake
// list. It answers 1 when the lease was still held (or there was none), 0 when it was lost; then nothing is marked.
// KEYS: permits, holders, fence, waiters, alive, done. ARGV: class, member, lease ms, done ms (0: no mark), wake prefix.
var finishScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local kept = 1
if ARGV[2] ~= '' then
  local at = redis.call('ZSCORE', KEYS[2], ARGV[2])
  if not at or tonumber(at) <= now then kept = 0 end
  redis.call('ZREM', KEYS[2], ARGV[2])
end
if kept == 1 and ARGV[4] ~= '0' then redis.call('SET', KEYS[6], '1', 'PX', ARGV[4]) end
if ARGV[2] == '' then return kept end
local permits = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local free = permits - redis.call('ZCARD', KEYS[2])
while free > 0 do
  local next = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if not next then break end
  redis.call('ZREM', KEYS[4], next)
  local alive = redis.call('ZSCORE', KEYS[5], next)
  redis.call('ZREM', KEYS[5], next)
  if alive and tonumber(alive) > now then
    local fence = string.format('%.0f', redis.call('INCR', KEYS[3]))
    redis.call('ZADD', KEYS[2], now + ARGV[3], next .. '#' .. fence)
    redis.call('LPUSH', ARGV[5] .. next, fence)
    redis.call('PEXPIRE', ARGV[5] .. next, 10000)
    free = free - 1
  end
end
return kept`)

// renewScript extends the leases that are still held and answers the members that are not. KEYS: holders. ARGV: lease ms, members.
var renewScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local lost = {}
for i = 2, #ARGV do
  local at = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if at and tonumber(at) > now then
    redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i])
  else
    lost[#lost+1] = ARGV[i]
  end
end
return lost`)

// Gate is one process's way to permits. Its Run renews the leases that the process holds. Methods may be called concurrently.
type Gate struct {
	client redis.UniversalClient
	owner  string // unique to the process
	serial atomic.Int64

	mu   sync.Mutex
	held map[string]*Lease // by member
}

// NewGate returns a gate for a process; owner is unique to it (host, pid and a nonce).
func NewGate(client redis.UniversalClient, owner string) *Gate {
	return &Gate{client: client, owner: owner, held: map[string]*Lease{}}
}

// Lease is a held permit, or the free pass of a class without a limit.
type Lease struct {
	gate   *Gate
	class  string
	taskID string
	member string // "" for a free pass
	Fence  int64  // 0 for a free pass

	cancel   context.CancelCauseFunc
	finished atomic.Bool

	mu      sync.Mutex
	renewed time.Time // monotonic: when the last renewal that succeeded was sent
	lost    bool
}

func classKeys(class string) []string {
	p := prefix + class
	return []string{permitsKey, p + ":holders", p + ":fence", p + ":waiters", p + ":alive"}
}

func wakePrefix(class string) string { return prefix + class + ":wake:" }

// Begin waits for a permit of class for a task, and then for a token where the class has a rate, and returns the lease, with a
// context that ends when the lease is lost. It returns ErrDone when the task has a done mark; an empty taskID has none. Finish
// must be called on every lease.
func (g *Gate) Begin(ctx context.Context, class, taskID string) (context.Context, *Lease, error) {
	work, lease, rate, err := g.permit(ctx, class, taskID)
	if err != nil || rate == "" {
		return work, lease, err
	}
	if err := g.token(work, class, rate); err != nil {
		return nil, nil, errors.Join(err, lease.Finish(ctx, 0))
	}
	return work, lease, nil
}

// token takes one token of a class's bucket. The permit is held meanwhile: nobody else of the class could begin either.
func (g *Gate) token(ctx context.Context, class, rate string) error {
	r, err := parseRate(rate)
	if err != nil {
		return fmt.Errorf("class %s: %w", class, err)
	}
	b, err := NewBucket(g.client, class, r)
	if err != nil {
		return err
	}
	return b.Take(ctx, 1)
}

// permit waits for a permit; rate is the class's, or empty.
func (g *Gate) permit(ctx context.Context, class, taskID string) (work context.Context, lease *Lease, rate string, err error) {
	id := g.owner + "/" + strconv.FormatInt(g.serial.Add(1), 10)
	keys := append(classKeys(class), wakePrefix(class)+id, donePrefix+taskID, ratesKey)
	checkDone := "1"
	if taskID == "" {
		checkDone = "0"
	}
	for {
		sent := time.Now()
		answer, err := beginScript.Run(ctx, g.client, keys, class, id, leaseTTL.Milliseconds(), waiterTTL.Milliseconds(), checkDone).StringSlice()
		if err != nil {
			return nil, nil, "", fmt.Errorf("permit %s: %w", class, err)
		}
		rate = answer[2]
		switch answer[0] {
		case "done":
			return nil, nil, "", fmt.Errorf("%s: %w", taskID, ErrDone)
		case "free":
			return ctx, &Lease{gate: g, class: class, taskID: taskID}, rate, nil
		case "held":
			work, lease, err = g.hold(ctx, class, taskID, id, answer[1], sent)
			return work, lease, rate, err
		case "wait":
		default:
			return nil, nil, "", fmt.Errorf("permit %s: unknown answer %q", class, answer[0])
		}
		sent = time.Now()
		woken, err := g.client.BLPop(ctx, wakeTimeout, wakePrefix(class)+id).Result()
		switch {
		case errors.Is(err, redis.Nil): // nobody gave one back: ask again, which also says that we are still here
		case err != nil:
			return nil, nil, "", fmt.Errorf("wait for permit %s: %w", class, err)
		default:
			work, lease, err = g.hold(ctx, class, taskID, id, woken[1], sent)
			return work, lease, rate, err
		}
	}
}

// hold registers a granted lease. Sent is a time before the grant, so that the lease ends here no later than in Redis.
func (g *Gate) hold(ctx context.Context, class, taskID, id, fence string, sent time.Time) (context.Context, *Lease, error) {
	n, err := strconv.ParseInt(fence, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("permit %s: fence %q: %w", class, fence, err)
	}
	workCtx, cancel := context.WithCancelCause(ctx)
	l := &Lease{gate: g, class: class, taskID: taskID, member: id + "#" + fence, Fence: n, cancel: cancel, renewed: sent}
	g.mu.Lock()
	g.held[l.member] = l
	g.mu.Unlock()
	return workCtx, l, nil
}

// Valid reports whether the lease is certainly still held, by the process's own monotonic clock: it was renewed less than
// its time to live ago. No message is sent.
func (l *Lease) Valid() bool {
	if l.member == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost && time.Since(l.renewed) < leaseTTL
}

// Finish gives the permit back. With a positive doneFor it marks the task as done for so long, in the same message. It returns
// ErrLost when the lease had run out: the result is void and nothing is marked. Only the first call does anything. It outlives ctx's cancel.
func (l *Lease) Finish(ctx context.Context, doneFor time.Duration) error {
	if l.finished.Swap(true) {
		return nil
	}
	l.gate.drop(l)
	if l.member == "" && (l.taskID == "" || doneFor <= 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if l.taskID == "" {
		doneFor = 0
	}
	kept, err := finishScript.Run(ctx, l.gate.client, append(classKeys(l.class), donePrefix+l.taskID), l.class, l.member,
		leaseTTL.Milliseconds(), max(doneFor, 0).Milliseconds(), wakePrefix(l.class)).Int()
	switch {
	case err != nil:
		return fmt.Errorf("give back permit %s: %w", l.class, err)
	case kept == 0:
		return fmt.Errorf("permit %s with fence %d: %w", l.class, l.Fence, ErrLost)
	default:
		return nil
	}
}

func (g *Gate) drop(l *Lease) {
	g.mu.Lock()
	delete(g.held, l.member)
	g.mu.Unlock()
	if l.cancel != nil {
		l.cancel(nil)
	}
}

// Held returns how many permits the process holds.
func (g *Gate) Held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held)
}

// Run renews the process's leases three times within their time to live, until ctx ends. A lease that cannot be renewed in
// time is lost: its context is cancelled with ErrLost.
func (g *Gate) Run(ctx context.Context) error {
	tick := time.NewTicker(leaseTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.renew(ctx)
		}
	}
}

func (g *Gate) renew(ctx context.Context) {
	byClass := map[string][]*Lease{}
	g.mu.Lock()
	for _, l := range g.held {
		byClass[l.class] = append(byClass[l.class], l)
	}
	g.mu.Unlock()
	for class, leases := range byClass {
		args := []any{leaseTTL.Milliseconds()}
		for _, l := range leases {
			args = append(args, l.member)
		}
		sent := time.Now()
		rctx, cancel := context.WithTimeout(ctx, leaseTTL/3)
		lost, err := renewScript.Run(rctx, g.client, []string{prefix + class + ":holders"}, args...).StringSlice()
		cancel()
		gone := map[string]bool{}
		for _, member := range lost {
			gone[member] = true
		}
		for _, l := range leases {
			l.renewal(sent, err == nil, gone[l.member])
		}
	}
}

// renewal notes what a renewal brought, and gives up a lease that has run out.
func (l *Lease) renewal(sent time.Time, answered, gone bool) {
	l.mu.Lock()
	switch {
	case answered && !gone:
		l.renewed = sent
	case gone || time.Since(l.renewed) >= leaseTTL:
		l.lost = true
	}
	lost := l.lost
	l.mu.Unlock()
	if lost {
		l.cancel(ErrLost)
	}
}

// MarkDone marks a task as done without a lease: for outcomes that left by the spool.
func MarkDone(ctx context.Context, client redis.UniversalClient, taskID string, doneFor time.Duration) error {
	return client.Set(ctx, donePrefix+taskID, "1", doneFor).Err()
}
