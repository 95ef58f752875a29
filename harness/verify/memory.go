package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// poolShare is the part of a machine's memory that one process's pool may take by default: with the collector's headroom
// (as much again) and a judge of each kind beside each other, four processes still fit into half of the machine. An eighth, as
// it was, exhausted a machine on which several ran.
const poolShare = 16

// assumedBytes is taken for the memory of a machine that does not say.
const assumedBytes = 8 << 30

// PoolBytes is the default limit of a process's pool: a sixteenth of what this process may use of the machine's memory (the
// machine's own, or its control group's limit where that is less), at most most.
func PoolBytes(most int64) int64 {
	return min(memoryBytes(os.DirFS("/"))/poolShare, most)
}

// memoryBytes is what a process may use of the machine's memory; root is the file system that tells.
func memoryBytes(root fs.FS) int64 {
	total := int64(assumedBytes)
	if b, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		var kb int64
		if _, err := fmt.Sscanf(string(b), "MemTotal: %d kB", &kb); err == nil && kb > 0 {
			total = kb << 10
		}
	}
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return total // no control groups
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3) // hierarchy, controllers, path
		if len(parts) != 3 {
			continue
		}
		folder, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" { // version 1: a hierarchy of its own for each controller
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		total = min(total, groupLimit(root, folder, parts[2], file, total))
	}
	return total
}

// groupLimit is the least limit of a control group and those above it; none where nothing is limited. A group's path may lie
// outside what a container sees of the tree: then only the root is there.
func groupLimit(root fs.FS, folder, group, file string, none int64) int64 {
	least := none
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		if b, err := fs.ReadFile(root, path.Join(folder, at, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 { // else "max"
				least = min(least, n)
			}
		}
		if at == "/" {
			return least
		}
	}
}
