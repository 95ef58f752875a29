package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Dir is a Store in a directory that the hosts share.
type Dir struct {
	root string
	ttl  time.Duration
}

// NewDir returns a store under root, which is made if need be. Sweep removes what was not touched for ttl.
func NewDir(root string, ttl time.Duration) (*Dir, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("blob directory: %w", err)
	}
	return &Dir{root: root, ttl: ttl}, nil
}

func (d *Dir) path(digest string) string { return filepath.Join(d.root, digest[:2], digest) }

// Put writes a blob under a temporary name and renames it: readers see all of it or nothing.
func (d *Dir) Put(_ context.Context, digest string, data []byte) (err error) {
	if err := errors.Join(validDigest(digest), Check(digest, data)); err != nil {
		return err
	}
	path := d.path(digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("put blob %.12s: %w", digest, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("put blob %.12s: %w", digest, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("put blob %.12s: %w", digest, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Get reads a blob and checks it.
func (d *Dir) Get(_ context.Context, digest string) ([]byte, error) {
	if err := validDigest(digest); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(d.path(digest))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("get blob %.12s: %w", digest, ErrMissing)
	case err != nil:
		return nil, fmt.Errorf("get blob %.12s: %w", digest, err)
	default:
		return data, Check(digest, data)
	}
}

// Touch sets the files' times to now.
func (d *Dir) Touch(_ context.Context, digests []string) (missing []string, err error) {
	now := time.Now()
	for _, digest := range digests {
		if err := validDigest(digest); err != nil {
			return nil, err
		}
		switch err := os.Chtimes(d.path(digest), now, now); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, digest)
		case err != nil:
			return missing, fmt.Errorf("touch blob %.12s: %w", digest, err)
		}
	}
	return missing, nil
}

// Sweep removes the blobs that were not touched for the time to live and returns how many.
func (d *Dir) Sweep(now time.Time) (removed int, err error) {
	err = filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another host swept it
		}
		if err != nil || now.Sub(info.ModTime()) < d.ttl {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed++
		return nil
	})
	return removed, err
}
