package proposer

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

func directionText(v View) []string {
	count, told, best := map[string]int{}, map[string]int{}, map[string]float64{}
	for i := range v.State.Structures {
		st := &v.State.Structures[i]
		count[st.Direction]++
		told[st.Direction] += st.Told
		if st.Best > 0 && (best[st.Direction] == 0 || st.Best < best[st.Direction]) {
			best[st.Direction] = st.Best
		}
	}
	var out []string
	for _, name := range sortedKeys(count) {
		line := fmt.Sprintf("%s: %d structures", name, count[name])
		switch {
		case best[name] > 0:
			line += fmt.Sprintf(", best at %.3g of the baseline's time", best[name])
		case told[name] > 0:
			line += ", nothing that works yet"
		default:
			line += ", not measured yet"
		}
		if d := v.State.Directions[name]; d != nil && d.Paused {
			line += fmt.Sprintf("; paused after %d failures in a row: propose nothing more in it", d.Consecutive)
		}
		out = append(out, line)
	}
	return out
}

// failureText tells what failed in a direction, or in all of them, the latest first.
func (f *findings) failureText(v View, direction string) []string {
	type line struct {
		at   float64
		text string
	}
	var lines []line
	for _, s := range f.structures {
		if direction != "" && s.direction != direction {
			continue
		}
		for _, x := range s.failures {
			text := fmt.Sprintf("%s: %s: %s", s.name, x.fault, first(x.reason, 200))
			if len(x.config) > 0 {
				text += " (" + assignment(x.config) + ")"
			}
			lines = append(lines, line{float64(x.seq), text})
		}
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i].at > lines[j].at })
	var out []string
	seen := map[string]bool{}
	for i := len(v.State.Drafts.Ended) - 1; i >= 0 && len(out) < shownFailures/2; i-- {
		if d := v.State.Drafts.Ended[i]; d.Status == scheduler.DraftDuplicate || direction == "" || d.Direction == direction {
			out = append(out, fmt.Sprintf("%s: %s: %s", d.Name, d.Status, first(d.Reason, 200)))
		}
	}
	for _, l := range lines {
		if key := l.text; !seen[key] && len(out) < shownFailures {
			seen[key] = true
			out = append(out, l.text)
		}
	}
	return out
}

// expectationText compares what models expected of their drafts with what came, the latest first.
func expectationText(v View) []string {
	var out []string
	for i := len(v.State.Drafts.Taken) - 1; i >= 0 && len(out) < shownExpectations; i-- {
		t := &v.State.Drafts.Taken[i]
		st := v.State.Structure(t.Structure)
		if t.Draft.Expected == 0 || t.Before == 0 || st.Told == 0 {
			continue
		}
		came := "it does not work"
		if st.Best > 0 {
			came = fmt.Sprintf("%.2f after %d configurations", st.Best/t.Before, st.Asked)
		}
		out = append(out, fmt.Sprintf("%s (%s): expected %.2f of the run time of the best then, reached %s", t.Draft.Name, first(t.Draft.Change, 120), t.Draft.Expected, came))
	}
	return out
}

// Calibration is how far expectations were off: the mean of ln(reached/expected) over drafts that work, and their number.
func Calibration(s *decide.State) (meanLog float64, n int) {
	for i := range s.Drafts.Taken {
		t := &s.Drafts.Taken[i]
		if st := s.Structure(t.Structure); t.Draft.Expected > 0 && t.Before > 0 && st.Best > 0 {
			meanLog += math.Log(st.Best / t.Before / t.Draft.Expected)
			n++
		}
	}
	if n > 0 {
		meanLog /= float64(n)
	}
	return meanLog, n
}

func first(s string, runes int) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > runes {
		return string(r[:runes]) + "..."
	}
	return s
}
