package task

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
)

// Host is what `arch: native` stands for on one machine.
type Host struct {
	March    string   // what -march takes: x86-64-v3, armv8.2-a
	Features []string // instruction set extensions beyond it in the compiler's spelling (-mNAME on x86, +NAME on arm), sorted
}

// ThisHost describes this machine by /proc/cpuinfo.
func ThisHost() (*Host, error) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, fmt.Errorf("read the processor's features: %w", err)
	}
	return ParseHost(runtime.GOARCH, b)
}

// The levels of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI), by the kernel's names of the flags.
var x86Levels = []struct {
	march string
	flags string
}{
	{"x86-64-v2", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"},
	{"x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"},
	{"x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
}

// x86Features maps the kernel's names of extensions that matter to kernels and are in no level to the compiler's.
var x86Features = map[string]string{
	"adx": "adx", "aes": "aes", "avx": "avx", "avx2": "avx2", "avx512_bf16": "avx512bf16", "avx512_bitalg": "avx512bitalg", "avx512_fp16": "avx512fp16",
	"avx512_vbmi2": "avx512vbmi2", "avx512_vnni": "avx512vnni", "avx512_vpopcntdq": "avx512vpopcntdq", "avx512ifma": "avx512ifma",
	"avx512vbmi": "avx512vbmi", "avx_vnni": "avxvnni", "bmi1": "bmi", "bmi2": "bmi2", "clflushopt": "clflushopt", "f16c": "f16c", "fma": "fma",
	"gfni": "gfni", "pclmulqdq": "pclmul", "rdseed": "rdseed", "sha_ni": "sha", "vaes": "vaes", "vpclmulqdq": "vpclmulqdq",
}

// armFeatures maps the kernel's names (Documentation/arch/arm64/elf_hwcaps.rst) to the compiler's.
var armFeatures = map[string]string{
	"asimddp": "dotprod", "asimdhp": "fp16", "bf16": "bf16", "i8mm": "i8mm", "sve": "sve", "sve2": "sve2", "aes": "crypto",
}

// ParseHost reads the text of /proc/cpuinfo of a machine of the given GOARCH.
func ParseHost(goarch string, cpuinfo []byte) (*Host, error) {
	switch goarch {
	case "amd64":
		flags, err := cpuFlags(cpuinfo, "flags")
		if err != nil {
			return nil, err
		}
		return x86Host(flags), nil
	case "arm64":
		flags, err := cpuFlags(cpuinfo, "Features")
		if err != nil {
			return nil, err
		}
		return armHost(flags), nil
	default:
		return nil, fmt.Errorf("architecture %s is not known; write the arch out", goarch)
	}
}

func cpuFlags(cpuinfo []byte, label string) ([]string, error) {
	scan := bufio.NewScanner(bytes.NewReader(cpuinfo))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		name, value, ok := strings.Cut(scan.Text(), ":")
		if ok && strings.TrimSpace(name) == label {
			return strings.Fields(value), nil
		}
	}
	return nil, fmt.Errorf("/proc/cpuinfo has no line %q", label)
}

func x86Host(flags []string) *Host {
	h := &Host{March: "x86-64"}
	implied := map[string]bool{}
	for _, level := range x86Levels {
		needs := strings.Fields(level.flags)
		if slices.ContainsFunc(needs, func(f string) bool { return !slices.Contains(flags, f) }) {
			break
		}
		h.March = level.march
		for _, f := range needs {
			implied[f] = true
		}
	}
	h.collect(flags, x86Features, implied)
	return h
}

func armHost(flags []string) *Host {
	h := &Host{March: "armv8-a"}
	if slices.Contains(flags, "atomics") && slices.Contains(flags, "asimdrdm") {
		h.March = "armv8.1-a"
		if slices.Contains(flags, "dcpop") {
			h.March = "armv8.2-a"
		}
	}
	h.collect(flags, armFeatures, nil)
	return h
}

func (h *Host) collect(flags []string, names map[string]string, implied map[string]bool) {
	for _, f := range flags {
		if name, ok := names[f]; ok && !implied[f] && !slices.Contains(h.Features, name) {
			h.Features = append(h.Features, name)
		}
	}
	sort.Strings(h.Features)
}
