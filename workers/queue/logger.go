package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"ridgepoint/workers/observe"
)

// asynqLogger passes asynq's lines to zerolog at debug, whatever their level: while Redis is away asynq writes dozens a
// minute, and what a person must know (Redis lost, Redis back, data lost, tasks parked) is logged here once per change.
// The counter keeps their levels.
type asynqLogger struct {
	log     zerolog.Logger
	metrics *observe.Metrics
}

func (l asynqLogger) line(level string, args []any) {
	l.metrics.AsynqLog.WithLabelValues(level).Inc()
	l.log.Debug().Str("asynq_level", level).Str("line", fmt.Sprint(args...)).Msg("asynq")
}

// Debug drops the line: asynq writes one for every idle poll.
func (l asynqLogger) Debug(...any) {}

// Info passes a line on.
func (l asynqLogger) Info(args ...any) { l.line("info", args) }

// Warn passes a line on.
func (l asynqLogger) Warn(args ...any) { l.line("warn", args) }

// Error passes a line on.
func (l asynqLogger) Error(args ...any) { l.line("error", args) }

// Fatal passes a line on; asynq calls it only from Server.Run, which is not used here.
func (l asynqLogger) Fatal(args ...any) { l.line("fatal", args) }

// redisLogger passes go-redis' own lines (failed dials, mostly) to debug. go-redis has one logger per process.
type redisLogger struct{ log zerolog.Logger }

// Printf passes a line on.
func (l redisLogger) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug().Str("line", fmt.Sprintf(format, args...)).Msg("go-redis")
}

var redisLoggerOnce sync.Once

func routeRedisLog(log zerolog.Logger) {
	redisLoggerOnce.Do(func() { redis.SetLogger(redisLogger{log}) })
}
