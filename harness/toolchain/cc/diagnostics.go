package cc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/toolchain"
)

// maxDiagnostics is how many messages are kept, errors first.
const maxDiagnostics = 8

// messagePattern is a message of gcc, clang or the assembler: file:line:column: severity: text.
var messagePattern = regexp.MustCompile(`^([^:\s][^:]*):(\d+):(?:(\d+):)? (fatal error|error|Error|warning): (.*)$`)

// parse reads a compiler's output into diagnostics, errors first, each with its source line.
func parse(text, source string) []harness.Diagnostic {
	lines := strings.Split(source, "\n")
	var errors, warnings []harness.Diagnostic
	for line := range strings.Lines(text) {
		m := messagePattern.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			if message, ok := linkError(line); ok {
				errors = append(errors, harness.Diagnostic{Severity: "error", Message: message})
			}
			continue
		}
		for strings.HasPrefix(m[1], "./") {
			m[1] = m[1][2:]
		}
		d := harness.Diagnostic{Severity: "error", File: scrub(m[1]), Message: scrub(m[5])}
		d.Line, _ = strconv.Atoi(m[2])   // digits by the pattern; overflow leaves the largest int
		d.Column, _ = strconv.Atoi(m[3]) // "" gives 0: unknown
		if m[1] == sourceName && d.Line >= 1 && d.Line <= len(lines) {
			d.Source = strings.TrimSpace(lines[d.Line-1])
		}
		if m[4] == "warning" {
			d.Severity = "warning"
			warnings = append(warnings, d)
		} else {
			errors = append(errors, d)
		}
	}
	all := append(errors, warnings...)
	return all[:min(len(all), maxDiagnostics)]
}

// linkError finds the linker's and the driver's messages, which have no line.
func linkError(line string) (string, bool) {
	line = strings.TrimSpace(line)
	for _, sign := range []string{"undefined reference to", "multiple definition of", "internal compiler error", "error: unrecognized", "error: unknown argument", "relocation "} {
		if strings.Contains(line, sign) {
			return scrub(line), true
		}
	}
	return "", false
}

// hostPath is an absolute path: it says where this host keeps things, which is nobody's business but the host's.
var hostPath = regexp.MustCompile(`/(?:[A-Za-z0-9_.+-]+/)+([A-Za-z0-9_.+-]+)`)

// scrub shortens absolute paths to their last part.
func scrub(text string) string { return hostPath.ReplaceAllString(text, "$1") }

// refusal makes the Refusal of a failed compile.
func refusal(diagnostics []harness.Diagnostic, text string) *toolchain.Refusal {
	for _, d := range diagnostics {
		if d.Severity != "error" {
			continue
		}
		reason := d.Message
		if d.Line > 0 {
			reason = fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message)
		}
		return &toolchain.Refusal{Reason: reason, Diagnostics: diagnostics}
	}
	first := ""
	for line := range strings.Lines(scrub(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "In file included from") {
			first = line
			break
		}
	}
	if first == "" {
		first = "the compiler made no object and said nothing"
	}
	return &toolchain.Refusal{Reason: first, Diagnostics: diagnostics}
}
