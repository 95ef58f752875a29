// Package blobs keeps task bundles, sources and artifacts by content hash, in Redis with a time to live or in a directory
// that hosts share. What is read is checked against its digest, so a store needs no trust. It must not know what a blob means.
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrMissing says that the store does not have the blob (or has other bytes under its name, which is the same to a reader).
// It is an infrastructure fault: whoever has the blob publishes it again.
var ErrMissing = errors.New("blob is missing")

// MaxBytes is the largest blob that is accepted: no cubin or task bundle comes near it.
const MaxBytes = 64 << 20

// Store keeps blobs by the SHA-256 of their content in hex.
type Store interface {
	// Put publishes data under its digest and starts its time to live afresh.
	Put(ctx context.Context, digest string, data []byte) error
	// Get returns the blob, or an error that is ErrMissing.
	Get(ctx context.Context, digest string) ([]byte, error)
	// Touch starts the time to live of the digests afresh and returns those that the store does not have.
	Touch(ctx context.Context, digests []string) (missing []string, err error)
}

// Check returns an error unless digest is the SHA-256 of data in hex and data is not too large.
func Check(digest string, data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("blob %.12s is %d bytes; at most %d are accepted", digest, len(data), MaxBytes)
	}
	sum := sha256.Sum256(data)
	if hex.EncodeToString(sum[:]) != digest {
		return fmt.Errorf("blob %.12s holds other bytes (SHA-256 %x): %w", digest, sum[:6], ErrMissing)
	}
	return nil
}

// validDigest refuses anything that is not 64 lower-case hex digits: a digest becomes part of keys and paths.
func validDigest(digest string) error {
	if len(digest) != sha256.Size*2 {
		return fmt.Errorf("blob digest %.80q: want 64 hex digits", digest)
	}
	for _, c := range digest {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("blob digest %.80q: want lower-case hex digits", digest)
		}
	}
	return nil
}
