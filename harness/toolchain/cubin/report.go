package cubin

import (
	"regexp"
	"strconv"
	"strings"

	"ridgepoint/harness"
)

var (
	entryLine = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	spillLine = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedLine  = regexp.MustCompile(`Used (\d+) registers`)
	smemLine  = regexp.MustCompile(`(\d+)(?:\+\d+)? bytes smem`)
)

// Report reads ptxas's verbose report out of a compiler's log: one entry for each kernel it compiled, in its order.
func Report(log string) []harness.KernelResource {
	var all []harness.KernelResource
	var k *harness.KernelResource
	for line := range strings.Lines(log) {
		if m := entryLine.FindStringSubmatch(line); m != nil {
			all = append(all, harness.KernelResource{Name: m[1]})
			k = &all[len(all)-1]
			continue
		}
		if k == nil {
			continue
		}
		if m := spillLine.FindStringSubmatch(line); m != nil {
			k.LocalBytes, k.SpillStoreBytes, k.SpillLoadBytes = atoi(m[1]), atoi(m[2]), atoi(m[3])
		}
		if m := usedLine.FindStringSubmatch(line); m != nil {
			k.Registers = atoi(m[1])
			if m := smemLine.FindStringSubmatch(line); m != nil {
				k.StaticSharedBytes = atoi(m[1])
			}
		}
	}
	return all
}

// Resources joins the image's own numbers with the compiler's report, which alone knows spills. Kernels are sorted by name.
func Resources(kernels []Kernel, log string) []harness.KernelResource {
	reported := map[string]harness.KernelResource{}
	for _, r := range Report(log) {
		reported[r.Name] = r
	}
	all := make([]harness.KernelResource, 0, len(kernels))
	for _, k := range kernels {
		r, ok := reported[k.Name]
		if !ok {
			r = harness.KernelResource{Name: k.Name, StaticSharedBytes: k.StaticSharedBytes, LocalBytes: k.FrameBytes}
		}
		r.Registers = k.Registers
		all = append(all, r)
	}
	return all
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0 // the expressions above match digits alone; only an absurd length fails
	}
	return n
}

// messageLine matches "kernel.cu(5): error: ...", "kernel.cu(5): warning #177-D: ..." and "kernel.cu:5:7: error: ...".
var messageLine = regexp.MustCompile(`^([^\s():][^():]*)[(:](\d+)(?:\)|:(\d+))?: (?:(catastrophic|fatal) )?(error|warning)(?: #?[\w-]+)?: (.*)$`)

// Diagnostics reads a CUDA, HIP or host compiler's messages: at most limit of them, errors first, each with its line of
// source. Lines refer to source, whose name in the messages is name.
func Diagnostics(log, name, source string, limit int) []harness.Diagnostic {
	lines := strings.Split(source, "\n")
	var errors, warnings []harness.Diagnostic
	for line := range strings.Lines(log) {
		m := messageLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		d := harness.Diagnostic{Severity: m[5], File: m[1], Line: atoi(m[2]), Column: atoi(m[3]), Message: m[6]}
		if d.File == name && d.Line >= 1 && d.Line <= len(lines) {
			d.Source = strings.TrimRight(lines[d.Line-1], "\r")
		}
		if d.Severity == "error" {
			errors = append(errors, d)
		} else {
			warnings = append(warnings, d)
		}
	}
	all := append(errors, warnings...)
	return all[:min(len(all), limit)]
}

// FirstError returns a line for a person from a log in which Diagnostics found no error: the first line that names one,
// else the first line.
func FirstError(log string) string {
	first := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if first == "" {
			first = line
		}
		if strings.Contains(line, "error") || strings.Contains(line, "fatal") {
			return line
		}
	}
	return first
}
