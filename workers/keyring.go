package workers

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// minKeyBytes is the shortest key that is accepted: as long as the hash, per RFC 2104, section 3.
const minKeyBytes = 32

// Keyring signs payloads with its first key and verifies with any of them, so that keys can be changed while a fleet runs.
// A nil Keyring signs nothing and accepts unsigned payloads only.
type Keyring struct {
	keys []key
}

type key struct {
	id     string // first 8 hex digits of the key's SHA-256
	secret []byte
}

// NewKeyring makes a keyring of raw keys, each at least 32 bytes long.
func NewKeyring(secrets ...[]byte) (*Keyring, error) {
	if len(secrets) == 0 {
		return nil, errors.New("keyring: no key; write one with `openssl rand -hex 32 > ridgepoint.key && chmod 600 ridgepoint.key`")
	}
	r := &Keyring{}
	for i, s := range secrets {
		if len(s) < minKeyBytes {
			return nil, fmt.Errorf("keyring: key %d has %d bytes; want at least %d", i+1, len(s), minKeyBytes)
		}
		sum := sha256.Sum256(s)
		r.keys = append(r.keys, key{id: hex.EncodeToString(sum[:4]), secret: bytes.Clone(s)})
	}
	return r, nil
}

// RandomKeyring makes a keyring of one fresh key, for an embedded carrier that nobody else shares.
func RandomKeyring() *Keyring {
	secret := make([]byte, minKeyBytes)
	_, _ = rand.Read(secret) // never fails: crypto/rand aborts the process instead
	r, err := NewKeyring(secret)
	if err != nil {
		panic(fmt.Sprintf("workers: fresh key refused: %v", err))
	}
	return r
}

// ParseKeyFile reads a key file: one key a line in hex, the signing one first; blank lines and lines that start with # are
// skipped. Errors never show key material.
func ParseKeyFile(b []byte) (*Keyring, error) {
	var secrets [][]byte
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := hex.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("key file: line %d is not hex; write a key with `openssl rand -hex 32`", n)
		}
		secrets = append(secrets, secret)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return NewKeyring(secrets...)
}

// sign returns the id of the signing key and the MAC of message in hex.
func (r *Keyring) sign(message []byte) (id, mac string) {
	k := r.keys[0]
	return k.id, k.mac(message)
}

// verify reports whether mac is the MAC of message under the key with that id.
func (r *Keyring) verify(id, mac string, message []byte) bool {
	for _, k := range r.keys {
		if k.id == id && hmac.Equal([]byte(mac), []byte(k.mac(message))) {
			return true
		}
	}
	return false
}

func (k key) mac(message []byte) string {
	h := hmac.New(sha256.New, k.secret)
	h.Write(message)
	return hex.EncodeToString(h.Sum(nil))
}
