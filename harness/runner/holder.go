package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder says which process of this host has the device's lock: "process 1234 (ridgepoint run softmax-cpu)"; "" where the kernel does
// not say, or nobody has it.
func (e *Engine) Holder() string {
	var st unix.Stat_t
	if err := unix.Fstat(int(e.lock.Fd()), &st); err != nil {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	pid := lockedBy(string(locks), uint64(unix.Major(st.Dev)), uint64(unix.Minor(st.Dev)), st.Ino)
	if pid == 0 {
		return ""
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.Fields(strings.ReplaceAll(string(line), "\x00", " "))
	if err != nil || len(words) == 0 {
		return fmt.Sprintf("process %d", pid)
	}
	words[0] = filepath.Base(words[0])
	const most = 4 // the command and what it works on; the rest is flags
	return fmt.Sprintf("process %d (%s)", pid, strings.Join(words[:min(len(words), most)], " "))
}

// lockedBy reads /proc/locks, whose lines are like "3: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF", and returns the process that has
// a flock on a file; 0 where there is none. Lines with "->" are waiters.
func lockedBy(locks string, major, minor, inode uint64) int {
	file := fmt.Sprintf("%02x:%02x:%d", major, minor, inode)
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
