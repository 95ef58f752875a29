package replay

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// rivalled are the numbers of evaluations at which a strategy must not fall behind its rival on any recording.
var rivalled = []int{40, 80, 220}

// Margin is how far a strategy is ahead of a rival on one recording at one number of evaluations: the difference between the
// means over seeds of optimum/best, with half its 95 % interval (twice its standard error, the seeds of the two being
// independent draws).
type Margin struct {
	Space       string
	Evaluations int
	Ahead, Half float64
}

// Behind reports whether the strategy is behind beyond the interval.
func (m Margin) Behind() bool { return m.Ahead+m.Half < 0 }

// Margins compares the cells of a strategy with those of a rival, recording by recording, at 40, 80 and 220 evaluations.
// Recordings that only one of the two played are left out.
func Margins(cells []Cell, strategy, rival string) []Margin {
	var out []Margin
	for i := range cells {
		a := &cells[i]
		if a.Strategy != strategy {
			continue
		}
		at := slices.IndexFunc(cells, func(c Cell) bool { return c.Strategy == rival && c.Record == a.Record })
		if at < 0 {
			continue
		}
		for _, k := range rivalled {
			if a.Budget > 0 && k > a.Budget {
				break
			}
			x, y := a.Ratios(k), cells[at].Ratios(k)
			sx, sy := standardError(x), standardError(y)
			out = append(out, Margin{a.Record.Name, k, mean(x) - mean(y), 2 * math.Hypot(sx, sy)})
		}
	}
	return out
}

// WriteMargins writes one line a strategy and number of evaluations: on which recordings it is behind the rival beyond the
// interval, and where it is least ahead.
func WriteMargins(w io.Writer, cells []Cell, rival string) error {
	p := &printer{w: w}
	var names []string
	for i := range cells {
		if s := cells[i].Strategy; s != rival && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	for _, name := range names {
		margins := Margins(cells, name, rival)
		for _, k := range rivalled {
			var behind string
			var least *Margin
			for i := range margins {
				m := &margins[i]
				if m.Evaluations != k {
					continue
				}
				if least == nil || m.Ahead < least.Ahead {
					least = m
				}
				if m.Behind() {
					behind += fmt.Sprintf(" %s (%+.4f ± %.4f)", m.Space, m.Ahead, m.Half)
				}
			}
			if least == nil {
				continue
			}
			if behind == "" {
				behind = " no recording"
			}
			p.printf("%s at %d is behind %s beyond the interval on%s; least ahead on %s, %+.4f ± %.4f\n",
				name, k, rival, behind, least.Space, least.Ahead, least.Half)
		}
	}
	return p.err
}
