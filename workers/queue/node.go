package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/workers"
	"ridgepoint/workers/blobs"
	"ridgepoint/workers/fleet"
	"ridgepoint/workers/limits"
	"ridgepoint/workers/observe"
)

const (
	beatEvery    = time.Second
	beatLimit    = 3 * time.Second
	touchEvery   = 5 * time.Minute
	defaultTTL   = time.Hour
	keptBlobs    = 1024 // raw blobs that a process can publish again
	decodedBlobs = 512  // decoded tasks and structures
)

// Options are what a Node needs beside its Config.
type Options struct {
	Log     zerolog.Logger
	Metrics *observe.Metrics // nil: its own, shown nowhere
	Host    string           // name in the fleet; empty: the system's
	Version string
	// ShippedFunc says whether a source of this SHA-256 is embedded in the binary; nil: none is. Only such a one is Shipped here,
	// whatever the payload says.
	ShippedFunc func(digest string) bool
	// Limits are permits, and Rates the token buckets', that this process sets fleet-wide at its start, and again when Redis lost
	// its data, by class. Nil: none are set.
	Limits map[string]int
	Rates  map[string]limits.Rate
}

// Node is a process's place in the fleet: its connection, its beat, its permits, its blobs. Dispatchers, results and workers
// are made from it. Its methods may be called concurrently.
type Node struct {
	cfg      Config
	opt      Options
	log      zerolog.Logger
	metrics  *observe.Metrics
	client   *redis.Client
	embedded *miniredis.Miniredis
	hook     *hook
	registry *fleet.Registry
	gate     *limits.Gate
	store    blobs.Store
	decoded  decodedCache
	kept     *blobs.Cache[[]byte]
	guard    *workers.Guard
	id       string
	host     string
	started  time.Time

	tasks    atomic.Pointer[asynq.Client]
	offset   atomic.Int64 // nanoseconds, Redis's clock minus ours
	isUp     atomic.Bool
	refused  atomic.Int64
	infra    atomic.Int64
	repeated atomic.Int64
	draining atomic.Bool

	mu        sync.Mutex
	scheduler string // id that Scheduler serves
	campaigns map[string]fleet.Campaign
	epoch     string
	limitedIn string          // the epoch in which limits were set
	published map[string]bool // digests put or seen in this epoch
	describe  []func(*fleet.Member)
	onAnswer  []func(context.Context, *fleet.Answer)
	onNewData []func()
	sources   []func(digest string) ([]byte, bool)
	spoolID   string
	members   []fleet.Member
	membersAt time.Time
}

// Open connects to Redis, or starts an embedded one, and beats once. Run keeps the node alive; Close ends it.
func Open(ctx context.Context, cfg Config, opt Options) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if opt.Metrics == nil {
		opt.Metrics = observe.NewMetrics()
	}
	if opt.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name of this host: %w", err)
		}
		opt.Host = host
	}
	routeRedisLog(opt.Log)
	n := &Node{cfg: cfg, opt: opt, log: opt.Log, metrics: opt.Metrics, hook: &hook{metrics: opt.Metrics}, guard: workers.NewGuard(),
		host: opt.Host, started: time.Now(), published: map[string]bool{}, campaigns: map[string]fleet.Campaign{}, kept: blobs.NewCache[[]byte](keptBlobs), decoded: newDecodedCache()}
	n.id = fmt.Sprintf("%s/%d/%s", n.host, os.Getpid(), nonce())
	if err := n.connect(); err != nil {
		return nil, err
	}
	if err := n.begin(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func nonce() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// connect makes the client and the blob store; nothing is sent yet.
func (n *Node) connect() error {
	var o *redis.Options
	if n.cfg.IsEmbedded() {
		n.embedded = miniredis.NewMiniRedis()
		if n.cfg.Keyring == nil {
			n.cfg.Keyring = workers.RandomKeyring()
		}
		o = &redis.Options{Addr: Embedded, Dialer: func(context.Context, string, string) (net.Conn, error) {
			c, err := n.embedded.Dial()
			if err != nil {
				return nil, err
			}
			return newRoomy(c), nil
		}}
		tune(o)
	} else {
		var err error
		if o, err = n.cfg.options(); err != nil {
			return err
		}
	}
	n.client = newClient(o)
	n.client.AddHook(n.hook)
	n.registry = fleet.NewRegistry(n.client)
	n.gate = limits.NewGate(n.client, n.id)
	n.tasks.Store(asynq.NewClientFromRedisClient(n.client))
	ttl := n.cfg.BlobTTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	if n.cfg.BlobDir != "" {
		dir, err := blobs.NewDir(n.cfg.BlobDir, 24*ttl)
		n.store = dir
		return err
	}
	n.store = blobs.NewRedis(n.client, ttl)
	return nil
}

// newClient copies the options, which a client changes.
func newClient(o *redis.Options) *redis.Client {
	own := *o
	return redis.NewClient(&own)
}

// begin checks the connection and beats for the first time, so that clock and epoch are known.
func (n *Node) begin(ctx context.Context) error {
	if err := ping(ctx, n.client); err != nil {
		return fmt.Errorf("redis %s: %w; check that it runs, the address, the user and the password", scrub(n.cfg.Redis), err)
	}
	n.isUp.Store(true)
	n.metrics.RedisUp.Set(1)
	return n.beat(ctx)
}

// Metrics returns the node's metrics.
func (n *Node) Metrics() *observe.Metrics { return n.metrics }

// Registry returns the fleet's book.
func (n *Node) Registry() *fleet.Registry { return n.registry }

// Client returns the connection, for limits and tests.
func (n *Node) Client() redis.UniversalClient { return n.client }

// ID returns host/pid/nonce.
func (n *Node) ID() string { return n.id }

// Up reports whether Redis answered the last beat.
func (n *Node) Up() bool { return n.isUp.Load() }

// Now returns the time on Redis's clock, as of the last beat.
func (n *Node) Now() time.Time { return time.Now().Add(time.Duration(n.offset.Load())) }

// Messages returns how many messages went to Redis so far: asynq's, and Ridgepoint's own.
func (n *Node) Messages() (asynqs, own int64) { return n.hook.asynq.Load(), n.hook.own.Load() }

// Run beats, renews leases and keeps blobs alive until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.gate.Run(ctx) })
	g.Go(func() error { return every(ctx, beatEvery, func() { _ = n.beat(ctx) }) }) // beat logs changes of state itself
	g.Go(func() error { return every(ctx, touchEvery, func() { n.touch(ctx) }) })
	if n.embedded != nil { // miniredis' clock for times to live stands still by itself
		g.Go(func() error { return every(ctx, time.Second, func() { n.embedded.FastForward(time.Second) }) })
	}
	return g.Wait()
}

// every calls f at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f()
		}
	}
}

// Close leaves the fleet and closes the connection. Call it when Run, results and workers have returned.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if n.Up() {
		_ = n.registry.Leave(ctx, n.id) // a courtesy: without it the member shows as gone
	}
	err := n.client.Close()
	if n.embedded != nil {
		n.embedded.Close()
	}
	return err
}
