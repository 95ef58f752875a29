package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ridgepoint/workers"
	"ridgepoint/workers/queue"
)

// redisFlags say how to reach the fleet's Redis and how payloads are signed. Every flag has an environment variable;
// secrets come from files or the environment only.
type redisFlags struct {
	Redis             string `help:"Redis: embedded, HOST:PORT, redis://, rediss:// (TLS) or unix:///PATH (default: RIDGEPOINT_REDIS, else embedded)." placeholder:"ADDR" group:"Redis"`
	RedisUser         string `help:"Redis ACL user (RIDGEPOINT_REDIS_USER)." placeholder:"NAME" group:"Redis"`
	RedisPasswordFile string `help:"File with the Redis password (RIDGEPOINT_REDIS_PASSWORD holds it, RIDGEPOINT_REDIS_PASSWORD_FILE names the file)." placeholder:"FILE" group:"Redis"`
	RedisCA           string `name:"redis-ca" help:"PEM file of the CA that signed Redis's certificate (RIDGEPOINT_REDIS_CA)." placeholder:"FILE" group:"Redis"`
	RedisCert         string `help:"PEM file of this client's certificate (RIDGEPOINT_REDIS_CERT)." placeholder:"FILE" group:"Redis"`
	RedisKey          string `help:"PEM file of this client's key (RIDGEPOINT_REDIS_KEY)." placeholder:"FILE" group:"Redis"`
	KeyFile           string `help:"File with the key that signs payloads, the same on schedulers and workers: openssl rand -hex 32 (RIDGEPOINT_KEY_FILE)." placeholder:"FILE" group:"Redis"`
	AllowUnsigned     bool   `help:"Use a Redis on another machine without a key: whoever reaches it can then run code on the workers." group:"Redis"`
	Blobs             string `help:"Folder shared by all hosts for sources and artifacts, instead of Redis (RIDGEPOINT_BLOBS)." placeholder:"DIR" group:"Redis"`
}

// config resolves flags, environment and files.
func (f redisFlags) config(env environment) (queue.Config, error) {
	or := func(flag, name string) string {
		if flag != "" {
			return flag
		}
		return env.getenv(name)
	}
	c := queue.Config{Redis: or(f.Redis, "RIDGEPOINT_REDIS"), Username: or(f.RedisUser, "RIDGEPOINT_REDIS_USER"), Password: env.getenv("RIDGEPOINT_REDIS_PASSWORD"),
		AllowUnsigned: f.AllowUnsigned, BlobDir: or(f.Blobs, "RIDGEPOINT_BLOBS")}
	env.hide("RIDGEPOINT_REDIS_PASSWORD", "RIDGEPOINT_REDIS") // an address may hold a password, too
	if c.Redis == "" {
		c.Redis = queue.Embedded
	}
	err := errors.Join(
		readInto(or(f.RedisPasswordFile, "RIDGEPOINT_REDIS_PASSWORD_FILE"), true, func(b []byte) error { c.Password = strings.TrimSpace(string(b)); return nil }),
		readInto(or(f.RedisCA, "RIDGEPOINT_REDIS_CA"), false, func(b []byte) error { c.CAFile = b; return nil }),
		readInto(or(f.RedisCert, "RIDGEPOINT_REDIS_CERT"), false, func(b []byte) error { c.CertPEM = b; return nil }),
		readInto(or(f.RedisKey, "RIDGEPOINT_REDIS_KEY"), true, func(b []byte) error { c.KeyPEM = b; return nil }),
		readInto(or(f.KeyFile, "RIDGEPOINT_KEY_FILE"), true, func(b []byte) (err error) { c.Keyring, err = workers.ParseKeyFile(b); return err }),
	)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return queue.Config{}, &exitError{exitUsage, err}
	}
	return c, nil
}

// readInto reads a file, when one is named. A secret must not be readable by everybody on the host.
func readInto(path string, secret bool, use func([]byte) error) error {
	if path == "" {
		return nil
	}
	if secret {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModePerm&0o027) != 0 {
			return fmt.Errorf("%s can be read or written by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := use(b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
