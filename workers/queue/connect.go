package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"ridgepoint/workers"
)

// Client is a connection to Redis.
type Client = redis.UniversalClient

// Connect opens a connection for looking at a fleet without joining it. The keyring is not needed for that.
func Connect(ctx context.Context, cfg Config) (Client, error) {
	if cfg.Keyring == nil {
		cfg.Keyring = workers.RandomKeyring() // nothing is sealed or opened
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o, err := cfg.options()
	if err != nil {
		return nil, err
	}
	routeRedisLog(zerolog.Nop()) // failures come back as errors
	client := newClient(o)
	if err := ping(ctx, client); err != nil {
		return nil, errors.Join(fmt.Errorf("redis %s: %w; check that it runs, the address, the user and the password", scrub(cfg.Redis), err), client.Close())
	}
	return client, nil
}
