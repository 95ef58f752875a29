package propose

import (
	"regexp"
	"strings"
)

var (
	hunkRE   = regexp.MustCompile(`(?m)^@@.*$`)
	searchRE = regexp.MustCompile(`(?s)<{5,}[ \t]*(?:SEARCH|ORIGINAL|HEAD)[^\n]*\n(.*?)\n?={5,}[ \t]*\n(.*?)\n?>{5,}[^\n]*`)
)

// isDiff says whether a block is a change to a file instead of a file.
func isDiff(b block) bool {
	if hunkRE.MatchString(b.text) || searchRE.MatchString(b.text) || strings.Contains(b.text, "*** Begin Patch") {
		return true
	}
	if b.label != "diff" && b.label != "patch" {
		return false
	}
	for _, line := range strings.Split(b.text, "\n") {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			return true
		}
	}
	return false
}

// applyDiff applies changes to the first parent on which all of them fit in exactly one place.
func (p *parse) applyDiff(blocks []block) (string, bool) {
	for _, parent := range p.known.Parents {
		src, ok := invisible.Replace(parent.Source), true
		for _, b := range blocks {
			if src, ok = applyOne(src, b.text); !ok {
				break
			}
		}
		if ok {
			p.repaired("diff_applied")
			return src, true
		}
	}
	p.complain("diff_fails", "the reply is a change to a file, and it does not fit exactly on one of the structures shown: send the whole file")
	return "", false
}

// change is lines to be found and what stands in their place.
type change struct{ old, new []string }

func applyOne(src, text string) (string, bool) {
	changes := searchChanges(text)
	if len(changes) == 0 {
		changes = hunks(text)
	}
	if len(changes) == 0 {
		return "", false
	}
	lines := strings.Split(src, "\n")
	for _, c := range changes {
		at, ok := locate(lines, c.old)
		if !ok {
			return "", false
		}
		lines = append(append(append([]string{}, lines[:at]...), c.new...), lines[at+len(c.old):]...)
	}
	return strings.Join(lines, "\n"), true
}

func searchChanges(text string) []change {
	var out []change
	for _, m := range searchRE.FindAllStringSubmatch(text, -1) {
		c := change{old: strings.Split(m[1], "\n")}
		if m[2] != "" {
			c.new = strings.Split(m[2], "\n")
		}
		out = append(out, c)
	}
	return out
}

// hunks reads a unified diff; line numbers are not believed, models count badly.
func hunks(text string) []change {
	var out []change
	var c change
	flush := func() {
		for len(c.old) > 0 && len(c.new) > 0 && strings.TrimSpace(c.old[len(c.old)-1]) == "" && strings.TrimSpace(c.new[len(c.new)-1]) == "" {
			c.old, c.new = c.old[:len(c.old)-1], c.new[:len(c.new)-1] // an empty last line is the block's, not the hunk's
		}
		if len(c.old) > 0 {
			out = append(out, c)
		}
		c = change{}
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "*** "), strings.HasPrefix(line, `\ No newline`):
		case strings.HasPrefix(line, "+"):
			c.new = append(c.new, line[1:])
		case strings.HasPrefix(line, "-"):
			c.old = append(c.old, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			c.old, c.new = append(c.old, line), append(c.new, line)
		}
	}
	flush()
	return out
}

// locate finds the one place where lines stand, trailing white space aside; if there is none, leading white space aside too.
func locate(lines, want []string) (int, bool) {
	if len(want) == 0 {
		return 0, false
	}
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return strings.TrimRight(a, " \t") == strings.TrimRight(b, " \t") },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
	} {
		found, at := 0, 0
		for i := 0; i+len(want) <= len(lines); i++ {
			equal := true
			for j := range want {
				if !same(lines[i+j], want[j]) {
					equal = false
					break
				}
			}
			if equal {
				found, at = found+1, i
			}
		}
		if found > 0 {
			return at, found == 1
		}
	}
	return 0, false
}
