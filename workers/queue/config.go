package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"ridgepoint/workers"
)

// Embedded is the address that stands for a Redis within the process.
const Embedded = "embedded"

// Config says how to reach Redis and how payloads are signed.
type Config struct {
	// Redis is "embedded", "host:port", "unix:///path", "redis://[user@]host:port/db" or "rediss://..." for TLS.
	Redis    string
	Username string // overrides the URL's
	Password string // overrides the URL's; from the environment or a file
	CAFile   []byte // PEM; empty: the system's roots
	CertPEM  []byte // client certificate, with KeyPEM
	KeyPEM   []byte
	// Keyring signs payloads. Nil: unsigned, which Validate accepts only for an embedded or a local Redis.
	Keyring *workers.Keyring
	// AllowUnsigned accepts a remote Redis without a keyring: everybody who reaches it can run code on the workers.
	AllowUnsigned bool
	// BlobTTL is how long blobs live after their last use; 0: an hour.
	BlobTTL time.Duration
	// BlobDir, when set, keeps blobs in a directory that the hosts share instead of in Redis.
	BlobDir string
}

// IsEmbedded reports whether Redis lives within the process.
func (c *Config) IsEmbedded() bool { return c.Redis == "" || c.Redis == Embedded }

// Validate reports what is wrong with the configuration and what to do about it.
func (c *Config) Validate() error {
	if c.IsEmbedded() {
		return nil
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	if c.Keyring == nil && !c.AllowUnsigned && !isLocal(o) {
		return fmt.Errorf("redis %s is not on this machine and no key file is set: whoever reaches it could run code on the workers; "+
			"write a key with `openssl rand -hex 32`, give the same file to schedulers and workers with --key-file, "+
			"or say --allow-unsigned", o.Addr)
	}
	return nil
}

func isLocal(o *redis.Options) bool {
	if o.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// options builds go-redis options; it opens nothing.
func (c *Config) options() (*redis.Options, error) {
	text := c.Redis
	if !strings.Contains(text, "://") {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return nil, fmt.Errorf("redis address %q: want embedded, host:port, redis://host:port/db, rediss://host:port/db or unix:///path", text)
		}
		text = "redis://" + text
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("redis address %q: %w", scrub(c.Redis), scrubError(err))
	}
	if c.Username != "" {
		o.Username = c.Username
	}
	if c.Password != "" {
		o.Password = c.Password
	}
	if err := c.secure(o); err != nil {
		return nil, err
	}
	tune(o)
	return o, nil
}

// secure adds the trust roots and the client's certificate to a TLS connection.
func (c *Config) secure(o *redis.Options) error {
	if o.TLSConfig == nil {
		if len(c.CAFile) > 0 || len(c.CertPEM) > 0 {
			return errors.New("a CA or client certificate is set, but the redis address does not use TLS: write rediss://host:port")
		}
		return nil
	}
	o.TLSConfig.MinVersion = tls.VersionTLS12
	if len(c.CAFile) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.CAFile) {
			return errors.New("redis CA file: no PEM certificate in it")
		}
		o.TLSConfig.RootCAs = pool
	}
	if len(c.CertPEM) > 0 || len(c.KeyPEM) > 0 {
		pair, err := tls.X509KeyPair(c.CertPEM, c.KeyPEM)
		if err != nil {
			return fmt.Errorf("redis client certificate: %w", err)
		}
		o.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// tune sets what both carriers share. Blocking waits for permits hold a connection each, so the pool is wide.
func tune(o *redis.Options) {
	o.PoolSize = 256
	o.MaxRetries = 2
	o.DialTimeout = 3 * time.Second
	o.ReadTimeout = 5 * time.Second
	o.WriteTimeout = 5 * time.Second
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.ClientName = "ridgepoint"
	o.Protocol = 2
	o.MaintNotificationsConfig = maintenanceOff()
}

func scrub(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(unreadable)"
	}
	return u.Redacted()
}

// scrubError drops the address from a URL error: it may hold a password.
func scrubError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// ping checks that Redis answers, accepts the credentials and is new enough.
func ping(ctx context.Context, client redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.Ping(ctx).Err()
}
