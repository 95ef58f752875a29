package toolchain

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"ridgepoint/harness"
)

func TestCacheKeepsWhatWasPut(t *testing.T) {
	t.Parallel()
	c, err := OpenCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.Get("absent"); ok || err != nil {
		t.Errorf("get of an absent build: %v, %v", ok, err)
	}
	b := &harness.Build{Key: "k1", Toolchain: "gcc 12"}
	if err := c.Put(b, []byte("artifact")); err != nil {
		t.Fatal(err)
	}
	got, ok, err := c.Get("k1")
	if err != nil || !ok || !got.Cached || got.Artifact != b.Artifact || got.SizeBytes != 8 || got.Toolchain != "gcc 12" {
		t.Fatalf("got %+v, %v, %v", got, ok, err)
	}
	data, err := c.Artifact(got)
	if err != nil || !bytes.Equal(data, []byte("artifact")) {
		t.Errorf("artifact %q, %v", data, err)
	}
	other, err := OpenCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Import(got, []byte("another")); err == nil {
		t.Error("an artifact with another SHA-256 was imported")
	}
	if err := other.Import(got, data); err != nil {
		t.Error(err)
	}
	if _, ok, err := other.Get("k1"); !ok || err != nil {
		t.Errorf("the imported build is not there: %v, %v", ok, err)
	}
}

func TestDamagedArtifactIsNotServed(t *testing.T) {
	t.Parallel()
	c, err := OpenCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, c2 := range []struct {
		name   string
		damage func(b *harness.Build) error
	}{
		{"changed", func(b *harness.Build) error { return os.WriteFile(c.Path(b), []byte("artifacT"), 0o644) }},
		{"cut", func(b *harness.Build) error { return os.Truncate(c.Path(b), 3) }},
		{"gone", func(b *harness.Build) error { return os.Remove(c.Path(b)) }},
		{"torn description", func(b *harness.Build) error { return os.Truncate(c.buildFile(b.Key), 10) }},
	} {
		b := &harness.Build{Key: "k-" + fmt.Sprint(len(c2.name))}
		if err := c.Put(b, []byte("artifact")); err != nil {
			t.Fatal(err)
		}
		if err := c2.damage(b); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := c.Get(b.Key); ok || err != nil {
			t.Errorf("%s: got %+v, %v, %v; want nothing", c2.name, got, ok, err)
		}
	}
}

func TestCacheDropsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c, err := OpenCache(t.TempDir(), 2500)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b := &harness.Build{Key: fmt.Sprint("k", i)}
		if err := c.Put(b, bytes.Repeat([]byte{byte(i)}, 1000)); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-10) * time.Minute)
		if i < 2 {
			if err := os.Chtimes(c.Path(b), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, want := range []bool{false, true, true} {
		if _, ok, err := c.Get(fmt.Sprint("k", i)); ok != want || err != nil {
			t.Errorf("build %d is there: %v, %v; want %v", i, ok, err, want)
		}
	}
}
