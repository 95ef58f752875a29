package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
)

// Kept returns the file called name in dir, or makes its contents and keeps them there. The name must tell everything that the
// contents depend on. Several processes may do so at once: the file appears whole.
func Kept(dir, name string, makeFunc func() ([]byte, error)) ([]byte, error) {
	file := filepath.Join(dir, name)
	if data, err := os.ReadFile(file); err == nil {
		return data, nil
	}
	data, err := makeFunc()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := writeWhole(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("keep %s: %w", name, err)
	}
	return data, nil
}
