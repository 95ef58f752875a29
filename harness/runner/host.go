//go:build linux

package runner

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Host describes the processor that candidates run on.
type Host struct {
	Name     string // model name
	Cores    []int  // that this process may use
	LLCBytes int64  // last-level cache; 0: unknown
}

// ThisHost reads the processor's description.
func ThisHost() (Host, error) {
	h := Host{Name: modelName(), LLCBytes: llcBytes("/sys/devices/system/cpu/cpu0/cache")}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return h, fmt.Errorf("read the cores this process may use: %w", err)
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			h.Cores = append(h.Cores, i)
		}
	}
	return h, nil
}

func modelName() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // "": no name
	scan := bufio.NewScanner(bytes.NewReader(b))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		if name, value, ok := strings.Cut(scan.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH + " processor"
}

// llcBytes returns the size of the largest cache in sysfs.
func llcBytes(dir string) int64 {
	files, _ := filepath.Glob(filepath.Join(dir, "index*", "size")) // a constant pattern
	var largest int64
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		text := strings.TrimSpace(string(b))
		unit := int64(1)
		switch {
		case strings.HasSuffix(text, "K"):
			unit, text = 1<<10, strings.TrimSuffix(text, "K")
		case strings.HasSuffix(text, "M"):
			unit, text = 1<<20, strings.TrimSuffix(text, "M")
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			largest = max(largest, n*unit)
		}
	}
	return largest
}

// stealTicks returns the time that the hypervisor took from the given cores so far, in ticks of 10 ms; 0 where it is not told.
func stealTicks(cores []int) int64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return parseSteal(b, cores)
}

func parseSteal(stat []byte, cores []int) int64 { return parseTicks(stat, cores, 8) }

// busyFields are the columns of /proc/stat in which a core works: user, nice, system, irq, softirq (proc_stat(5)).
var busyFields = []int{1, 2, 3, 6, 7}

// Foreign measures what other processes take of the cores given to candidates: it returns a function that says which share of
// them, 0 to 1, went to others since. Children that have ended by then count as ours, as all of a candidate's have.
func (e *Engine) Foreign() func() float64 {
	begin, busy, own := time.Now(), busyTime(e.cores), ownTime()
	return func() float64 {
		whole := time.Since(begin) * time.Duration(len(e.cores))
		foreign := busyTime(e.cores) - busy - (ownTime() - own)
		return min(max(float64(foreign)/float64(whole), 0), 1)
	}
}

// tick is the unit of /proc/stat: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

func busyTime(cores []int) time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return time.Duration(parseTicks(b, cores, busyFields...)) * tick
}

// ownTime is the processor time of this process and of its children that have ended.
func ownTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u) // cannot fail with these arguments
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// parseTicks adds columns of /proc/stat up over the given cores.
func parseTicks(stat []byte, cores []int, columns ...int) int64 {
	var sum int64
	for line := range strings.Lines(string(stat)) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(fields[0], "cpu"))
		if err != nil || !slices.Contains(cores, n) {
			continue
		}
		for _, c := range columns {
			if ticks, err := strconv.ParseInt(fields[c], 10, 64); err == nil {
				sum += ticks
			}
		}
	}
	return sum
}
