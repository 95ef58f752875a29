package optimizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash returns the canonical hash of a configuration: SHA-256 in hex over its sorted names and typed values. Configurations
// that Space.Canonical makes equal hash equal.
func Hash(c Configuration) string {
	h := sha256.New()
	h.Write([]byte("configuration.v1\n"))
	for _, name := range sortedNames(c) {
		b, err := c[name].MarshalJSON()
		if err != nil {
			panic(fmt.Sprintf("optimizer: configuration %s cannot be hashed: %v", describe(c), err)) // spaces hold valid values only
		}
		fmt.Fprintf(h, "%q=%s\n", name, b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
