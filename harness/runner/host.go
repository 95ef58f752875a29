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

func parseSteal(stat []byte, cores []int) int64 {
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
		ticks, err := strconv.ParseInt(fields[8], 10, 64)
		if err == nil {
			sum += ticks
		}
	}
	return sum
}
