package task

import (
	"fmt"
	"strings"
)

// Error is one fault of a task file, a structure file or a configuration: where it is, what is wrong and what to do about
// it. It is the only error that a wrong file gives.
type Error struct {
	File   string // as the person named it
	Line   int    // 1-based; 0 when the fault has no place
	Column int    // 1-based; 0 when the fault has no place
	Reason string // what is wrong
	Remedy string // what to do
}

// Error returns "file:line:column: reason; remedy".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// Nearest returns the known word closest to word, or "" when none is close.
func Nearest(word string, known []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	lower := strings.ToLower(word)
	for _, k := range known {
		d := distance(lower, strings.ToLower(k))
		if len(word) >= 3 && (strings.HasPrefix(k, lower) || strings.HasPrefix(lower, k)) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// choose is the remedy for a word that is not one of known.
func choose(word string, known []string) string {
	if k := Nearest(word, known); k != "" {
		return fmt.Sprintf("did you mean %q? known: %s", k, strings.Join(known, ", "))
	}
	return "known: " + strings.Join(known, ", ")
}

// distance is the edit distance of two words, a swap of neighbours counted as one edit.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
