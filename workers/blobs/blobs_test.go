package blobs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"ridgepoint/workers"
	"ridgepoint/workers/blobs"
	"ridgepoint/workers/redistest"
)

type fixture struct {
	store   blobs.Store
	corrupt func(digest string) // puts other bytes under the digest
}

// stores is the one conformance suite of every store.
func stores(t *testing.T, f func(t *testing.T, x fixture)) {
	viaRedis := func(c redis.UniversalClient) fixture {
		return fixture{blobs.NewRedis(c, time.Hour), func(d string) {
			if err := c.Set(t.Context(), "{ridgepoint}:blob:"+d, "other", 0).Err(); err != nil {
				t.Error(err)
			}
		}}
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = c.Close() })
		f(t, viaRedis(c))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, viaRedis(redistest.Start(t, redistest.None).Client()))
	})
	t.Run("dir", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		d, err := blobs.NewDir(root, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		f(t, fixture{d, func(digest string) {
			if err := os.WriteFile(filepath.Join(root, digest[:2], digest), []byte("other"), 0o644); err != nil {
				t.Error(err)
			}
		}})
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, x fixture) {
		ctx, s := t.Context(), x.store
		a, b := workers.NewBlob([]byte("source a")), workers.NewBlob([]byte("source b"))
		if _, err := s.Get(ctx, a.Digest); !errors.Is(err, blobs.ErrMissing) {
			t.Errorf("an absent blob: got %v; want ErrMissing", err)
		}
		for range 2 { // twice is as once
			if err := s.Put(ctx, a.Digest, a.Data); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Get(ctx, a.Digest); err != nil || string(got) != "source a" {
			t.Errorf("got %q %v", got, err)
		}
		missing, err := s.Touch(ctx, []string{a.Digest, b.Digest})
		if err != nil || len(missing) != 1 || missing[0] != b.Digest {
			t.Errorf("touch: missing %v %v; want b", missing, err)
		}
		if err := s.Put(ctx, b.Digest, a.Data); err == nil {
			t.Error("bytes under another's digest were accepted")
		}
		x.corrupt(a.Digest)
		if _, err := s.Get(ctx, a.Digest); !errors.Is(err, blobs.ErrMissing) {
			t.Errorf("altered bytes: got %v; want ErrMissing", err)
		}
		for _, bad := range []string{"", "../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/"} {
			if _, err := s.Get(ctx, bad); err == nil || errors.Is(err, blobs.ErrMissing) {
				t.Errorf("digest %q: got %v; want it refused", bad, err)
			}
			if err := s.Put(ctx, bad, nil); err == nil {
				t.Errorf("digest %q was accepted", bad)
			}
		}
	})
}

func TestDirSweep(t *testing.T) {
	t.Parallel()
	d, err := blobs.NewDir(t.TempDir(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b := workers.NewBlob([]byte("x"))
	if err := d.Put(t.Context(), b.Digest, b.Data); err != nil {
		t.Fatal(err)
	}
	if n, err := d.Sweep(time.Now()); n != 0 || err != nil {
		t.Errorf("a fresh blob was swept: %d %v", n, err)
	}
	if n, err := d.Sweep(time.Now().Add(2 * time.Hour)); n != 1 || err != nil {
		t.Errorf("an old blob was not swept: %d %v", n, err)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := blobs.NewCache[int](2)
	c.Put("a", 1)
	c.Put("b", 2)
	if v, ok := c.Get("a"); !ok || v != 1 {
		t.Error("a is not there")
	}
	if dropped := c.Put("c", 3); len(dropped) != 1 || dropped[0] != "b" {
		t.Errorf("dropped %v; want b, the least recently used", dropped)
	}
	if _, ok := c.Get("b"); ok {
		t.Error("b is still there")
	}
}
