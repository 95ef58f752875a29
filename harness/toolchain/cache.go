// Package toolchain keeps what compilers made: a build cache on disk that every target shares. The subpackages compile: cc,
// nvrtc, nvcc, hip; cubin reads what came out. It must not decide what is compiled or run.
package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
)

// Cache is a folder of builds by key and of artifacts by content. It is safe for concurrent use by several processes: files
// appear whole, are never changed, and are checked against their SHA-256 when they are read.
type Cache struct {
	dir        string
	limitBytes int64
}

// The folder's parts. builds/KEY.json describes a build, objects/SHA256 is its artifact.
const (
	buildsFolder  = "builds"
	objectsFolder = "objects"
)

// OpenCache opens or makes the cache in dir. Beyond limitBytes of artifacts the least recently used are dropped.
func OpenCache(dir string, limitBytes int64) (*Cache, error) {
	for _, sub := range []string{buildsFolder, objectsFolder} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("make the build cache: %w", err)
		}
	}
	return &Cache{dir: dir, limitBytes: limitBytes}, nil
}

// Path returns where the artifact of b lies, whether or not it is there.
func (c *Cache) Path(b *harness.Build) string {
	return filepath.Join(c.dir, objectsFolder, b.Artifact)
}

// Get returns the build under key with Cached set, or false. A build whose artifact is missing or damaged is dropped, and false.
func (c *Cache) Get(key string) (*harness.Build, bool, error) {
	text, err := os.ReadFile(c.buildFile(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the build cache: %w", err)
	}
	var b harness.Build
	if json.Unmarshal(text, &b) != nil || b.Key != key {
		return nil, false, c.drop(key)
	}
	if _, err := c.Artifact(&b); errors.Is(err, fs.ErrNotExist) {
		return nil, false, c.drop(key)
	} else if err != nil {
		return nil, false, err
	}
	now := time.Now()
	_ = os.Chtimes(c.Path(&b), now, now) // only its turn to be dropped depends on it
	b.Cached = true
	return &b, true, nil
}

// Put stores a build and its artifact. It fills Artifact and SizeBytes from the bytes.
func (c *Cache) Put(b *harness.Build, artifact []byte) error {
	sum := sha256.Sum256(artifact)
	b.Artifact, b.SizeBytes = hex.EncodeToString(sum[:]), int64(len(artifact))
	return c.Import(b, artifact)
}

// Import stores a build that another host made, so that Get and Path know it here. The bytes must be the ones that b names.
func (c *Cache) Import(b *harness.Build, artifact []byte) error {
	if sum := sha256.Sum256(artifact); hex.EncodeToString(sum[:]) != b.Artifact {
		return fmt.Errorf("import build %.12s: its artifact has another SHA-256 than the build says", b.Key)
	}
	stored := *b
	stored.Cached = false
	text, err := json.Marshal(&stored)
	if err != nil {
		return fmt.Errorf("write build %.12s: %w", b.Key, err)
	}
	if err := writeWhole(c.Path(b), artifact, 0o755); err != nil {
		return fmt.Errorf("write artifact %.12s: %w", b.Artifact, err)
	}
	if err := writeWhole(c.buildFile(b.Key), text, 0o644); err != nil {
		return fmt.Errorf("write build %.12s: %w", b.Key, err)
	}
	return c.trim()
}

// Artifact returns the bytes of a build. The error wraps fs.ErrNotExist when they are gone or damaged.
func (c *Cache) Artifact(b *harness.Build) ([]byte, error) {
	if len(b.Artifact) != 2*sha256.Size {
		return nil, fmt.Errorf("artifact %q is not named by a SHA-256: %w", b.Artifact, fs.ErrNotExist)
	}
	data, err := os.ReadFile(c.Path(b))
	if err != nil {
		return nil, fmt.Errorf("read artifact %.12s: %w", b.Artifact, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.Artifact {
		return nil, errors.Join(fmt.Errorf("artifact %.12s is damaged: %w", b.Artifact, fs.ErrNotExist), os.Remove(c.Path(b)))
	}
	return data, nil
}

func (c *Cache) buildFile(key string) string {
	return filepath.Join(c.dir, buildsFolder, key+".json")
}

func (c *Cache) drop(key string) error {
	if err := os.Remove(c.buildFile(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop a damaged build: %w", err)
	}
	return nil
}

// trim drops the least recently used artifacts beyond the limit, one process at a time; a busy lock means that another does.
func (c *Cache) trim() error {
	lock, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("lock the build cache: %w", err)
	}
	defer func() { _ = lock.Close() }() // closing releases the lock
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(c.dir, objectsFolder))
	if err != nil {
		return fmt.Errorf("list the build cache: %w", err)
	}
	var infos []fs.FileInfo
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // gone since the listing: another process dropped it
			infos = append(infos, info)
			total += info.Size()
		}
	}
	if total <= c.limitBytes {
		return nil
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].ModTime().Before(infos[j].ModTime()) })
	for _, info := range infos[:max(len(infos)-1, 0)] {
		if total <= c.limitBytes {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, objectsFolder, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("trim the build cache: %w", err)
		}
		total -= info.Size()
	}
	return nil
}

// writeWhole writes a file under another name in the same folder and moves it into place.
func writeWhole(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
