package verify

import (
	"testing"
	"testing/fstest"
)

func TestMemoryBytes(t *testing.T) {
	t.Parallel()
	const machine = "MemTotal:       24580000 kB\nMemFree: 1 kB\n"
	const all = 24580000 << 10
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"says nothing":              {map[string]string{}, assumedBytes},
		"no control groups":         {map[string]string{"proc/meminfo": machine}, all},
		"version 2, not limited":    {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, all},
		"version 2, own limit":      {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4294967296\n"}, 4 << 30},
		"version 2, parent's limit": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 2, path unseen":    {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/../outside\n", "sys/fs/cgroup/memory.max": "2147483648\n"}, 2 << 30},
		"version 1":                 {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "3221225472\n"}, 3 << 30},
		"version 1, not limited":    {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n"}, all},
		"nonsense":                  {map[string]string{"proc/meminfo": "?\n", "proc/self/cgroup": "?\n:memory\n0::/\n", "sys/fs/cgroup/memory.max": "-7\n"}, assumedBytes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for path, text := range c.files {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryBytes(root); got != c.want {
				t.Errorf("%d bytes; want %d", got, c.want)
			}
		})
	}
	if got := PoolBytes(1 << 30); got <= 0 || got > 1<<30 {
		t.Errorf("a pool of %d bytes; want at most what was asked for", got)
	}
}
