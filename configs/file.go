package configs

import (
	"fmt"
	"io"
	"os"
)

// The limits of a person's configuration file: far above what any needs, far below what would hold a parser up.
const (
	maxFileBytes = 256 << 10
	maxNesting   = 64 // open brackets
)

// readFile reads a person's file. Only regular files are read: a pipe or a device might never end.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return b, checkSize(path, b)
}

// checkSize refuses what is too large or nested too deep before a parser sees it.
func checkSize(name string, b []byte) error {
	if len(b) > maxFileBytes {
		return fmt.Errorf("%s is larger than %d KiB: keep it under that", name, maxFileBytes>>10)
	}
	depth, line := 0, 1
	for _, c := range b {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			line++
		}
		if depth > maxNesting {
			return fmt.Errorf("%s:%d: more than %d brackets are open: nest less", name, line, maxNesting)
		}
	}
	return nil
}
