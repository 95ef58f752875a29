package queue

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"ridgepoint/workers/observe"
)

// listLeaseExpired is asynq v0.26.0's script of that name (internal/rdb/rdb.go), byte for byte: its SHA-1 names it on the
// wire. A test holds the two together.
const listLeaseExpired = `
local res = {}
local ids = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[1])
for _, id in ipairs(ids) do
	local key = ARGV[2] .. id
	local v = redis.call("HGET", key, "msg")
	if v then
		table.insert(res, v)
	end
end
return res
`

var listLeaseExpiredSHA = func() string {
	sum := sha1.Sum([]byte(listLeaseExpired))
	return hex.EncodeToString(sum[:])
}()

// hook counts messages and answers asynq's listing of expired leases with nothing: see the package comment.
type hook struct {
	metrics *observe.Metrics
	asynq   atomic.Int64
	own     atomic.Int64
}

// DialHook leaves dialing alone.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts one message, unless it is the one that is answered here.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isLeaseListing(cmd) {
			if c, ok := cmd.(*redis.Cmd); ok {
				c.SetVal([]any{})
				return nil
			}
		}
		h.count(cmd)
		err := next(ctx, cmd)
		if seen, ok := ctx.Value(witnessKey{}).(*error); ok && err != nil && isAway(err) {
			*seen = err
		}
		return err
	}
}

type witnessKey struct{}

// witness returns a context under which the last error that says that Redis is away is kept, for callers that get only its text.
// One goroutine may use it.
func witness(ctx context.Context) (context.Context, *error) {
	seen := new(error)
	return context.WithValue(ctx, witnessKey{}, seen), seen
}

// ProcessPipelineHook counts every command of a pipeline as one message.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.count(cmd)
		}
		return next(ctx, cmds)
	}
}

func (h *hook) count(cmd redis.Cmder) {
	if isOwn(cmd) {
		h.own.Add(1)
		h.metrics.RedisMessages.WithLabelValues("own").Inc()
	} else {
		h.asynq.Add(1)
		h.metrics.RedisMessages.WithLabelValues("asynq").Inc()
	}
}

// isOwn tells Ridgepoint's own messages from asynq's: their first key has our hash tag.
func isOwn(cmd redis.Cmder) bool {
	for _, arg := range cmd.Args() {
		if s, ok := arg.(string); ok && strings.HasPrefix(s, "{ridgepoint}:") {
			return true
		}
	}
	return false
}

func isLeaseListing(cmd redis.Cmder) bool {
	args := cmd.Args()
	if len(args) < 2 {
		return false
	}
	name, _ := args[0].(string)
	body, _ := args[1].(string)
	return strings.EqualFold(name, "evalsha") && body == listLeaseExpiredSHA || strings.EqualFold(name, "eval") && body == listLeaseExpired
}

// maintenanceOff keeps go-redis from asking for upgrade notices that only a hosted Redis sends.
func maintenanceOff() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
