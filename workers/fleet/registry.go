package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	membersKey   = "{ridgepoint}:fleet"
	memberPrefix = "{ridgepoint}:member:"
	drainsKey    = "{ridgepoint}:drains"
	wantedKey    = "{ridgepoint}:wanted"
	ackPrefix    = "{ridgepoint}:acks:"
	epochKey     = "{ridgepoint}:epoch"
)

// acksPerBeat bounds how many acknowledged outcomes one beat brings; ackTTL how long they wait for their worker.
const (
	acksPerBeat = 5000
	ackTTL      = 48 * time.Hour
)

// beatScript is everything a process needs once a second. KEYS: members, member, drains, wanted, acks, epoch.
// ARGV: id, member JSON, keep seconds, host, epoch to set if there is none, acks at most.
var beatScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3] * 1000)
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
local epoch = redis.call('GET', KEYS[6])
if not epoch then epoch = ARGV[5]; redis.call('SET', KEYS[6], epoch) end
local acks = {}
if tonumber(ARGV[6]) > 0 then
  acks = redis.call('LRANGE', KEYS[5], 0, ARGV[6] - 1)
  if #acks > 0 then redis.call('LTRIM', KEYS[5], ARGV[6], -1) end
end
return {string.format('%.0f', now), epoch, redis.call('HGET', KEYS[3], ARGV[4]) or '', redis.call('SRANDMEMBER', KEYS[4], 64), acks}`)

var listScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local out = {string.format('%.0f', now)}
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[2], '+inf', 'WITHSCORES')
for i = 1, #ids, 2 do
  local text = redis.call('GET', ARGV[1] .. ids[i])
  if text then out[#out+1] = ids[i+1]; out[#out+1] = text end
end
return out`)

// Registry is the fleet's book in Redis.
type Registry struct {
	client redis.UniversalClient
}

// NewRegistry returns the book that client reaches.
func NewRegistry(client redis.UniversalClient) *Registry { return &Registry{client: client} }

// Answer is what a beat brings back.
type Answer struct {
	Now    time.Time // Redis's clock
	Epoch  string    // changes when Redis lost its data
	Drain  bool      // the host is to drain
	Wanted []string  // digests of blobs that somebody misses
	Acked  []string  // task ids of outcomes that schedulers have made durable
}

// Beat writes the member and returns the answer. Spool is the id of the process's spool, or empty; epoch is what to call the
// data when it is new.
func (r *Registry) Beat(ctx context.Context, m *Member, spool, epoch string) (*Answer, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	acks := acksPerBeat
	if spool == "" {
		acks = 0
	}
	keys := []string{membersKey, memberPrefix + m.ID, drainsKey, wantedKey, ackPrefix + spool, epochKey}
	raw, err := beatScript.Run(ctx, r.client, keys, m.ID, text, int(keep.Seconds()), m.Host, epoch, acks).Slice()
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	return readAnswer(raw)
}

func readAnswer(raw []any) (*Answer, error) {
	if len(raw) != 5 {
		return nil, fmt.Errorf("beat: answer has %d parts; want 5", len(raw))
	}
	nowText, ok1 := raw[0].(string)
	epoch, ok2 := raw[1].(string)
	drain, ok3 := raw[2].(string)
	wanted, ok4 := stringsOf(raw[3])
	acked, ok5 := stringsOf(raw[4])
	nowMS, err := strconv.ParseInt(nowText, 10, 64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || err != nil {
		return nil, fmt.Errorf("beat: answer %.80v has the wrong types", raw)
	}
	return &Answer{Now: time.UnixMilli(nowMS), Epoch: epoch, Drain: drain != "", Wanted: wanted, Acked: acked}, nil
}

func stringsOf(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	var out []string
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// List returns the members seen within the last `within` (0: all that are remembered), sorted by host, and Redis's time.
func (r *Registry) List(ctx context.Context, within time.Duration) ([]Member, time.Time, error) {
	if within <= 0 {
		within = keep
	}
	flat, err := listScript.Run(ctx, r.client, []string{membersKey}, memberPrefix, within.Milliseconds()).StringSlice()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list fleet: %w", err)
	}
	nowMS, err := strconv.ParseInt(flat[0], 10, 64)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list fleet: %w", err)
	}
	var out []Member
	for i := 1; i+1 < len(flat); i += 2 {
		seen, err := strconv.ParseFloat(flat[i], 64)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("list fleet: %w", err)
		}
		m, err := decode(flat[i+1], int64(seen), nowMS)
		if err != nil {
			return nil, time.Time{}, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, byHost)
	return out, time.UnixMilli(nowMS), nil
}

// Leave takes a member that ends cleanly out of the book.
func (r *Registry) Leave(ctx context.Context, id string) error {
	_, err := r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, membersKey, id)
		p.Del(ctx, memberPrefix+id)
		return nil
	})
	return err
}

// Drain asks every worker on a host to finish what it has and take no more; on=false takes that back.
func (r *Registry) Drain(ctx context.Context, host string, on bool) error {
	var err error
	if on {
		err = r.client.HSet(ctx, drainsKey, host, "1").Err()
	} else {
		err = r.client.HDel(ctx, drainsKey, host).Err()
	}
	if err != nil {
		return fmt.Errorf("drain %s: %w", host, err)
	}
	return nil
}

// Want asks whoever has a blob to publish it.
func (r *Registry) Want(ctx context.Context, digest string) error {
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, wantedKey, digest)
		p.Expire(ctx, wantedKey, 10*time.Minute)
		return nil
	})
	return err
}

// Published takes blobs off the list of wanted ones.
func (r *Registry) Published(ctx context.Context, digests ...string) error {
	args := make([]any, len(digests))
	for i, d := range digests {
		args[i] = d
	}
	return r.client.SRem(ctx, wantedKey, args...).Err()
}

// Acknowledge tells workers' spools which outcomes are durable, in one round trip: spool id to task ids.
func (r *Registry) Acknowledge(ctx context.Context, acks map[string][]string) error {
	if len(acks) == 0 {
		return nil
	}
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for spool, ids := range acks {
			args := make([]any, len(ids))
			for i, id := range ids {
				args[i] = id
			}
			p.RPush(ctx, ackPrefix+spool, args...)
			p.Expire(ctx, ackPrefix+spool, ackTTL)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("acknowledge outcomes: %w", err)
	}
	return nil
}
