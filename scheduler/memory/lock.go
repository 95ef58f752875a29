package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked says that another scheduler owns the store.
var ErrLocked = errors.New("the store is in use by another scheduler")

// lockFolder takes the scheduler's lock of dir and writes this process's id into it. The kernel drops the lock when the
// process dies, however it dies.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, "scheduler.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the scheduler's lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(path) // only for the message
		_ = f.Close()                 // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (process %s, %s): stop it, or use another folder with --data", ErrLocked, strings.TrimSpace(string(owner)), path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
		}
	}
	return f, nil
}
