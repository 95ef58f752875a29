package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Point is the geometric mean over recordings of the mean over seeds at one number of evaluations, with its 95 % interval.
type Point struct {
	Evaluations int     `json:"evaluations"`
	Ratio       float64 `json:"ratio"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
}

// SpaceSummary is one strategy on one recording.
type SpaceSummary struct {
	Space       string    `json:"space"`
	Stable      bool      `json:"stable"`
	Ratios      []float64 `json:"ratios"` // at Marks of the budget
	Within5     float64   `json:"within_5_percent"`
	MedianTo5   *float64  `json:"median_evaluations_to_5_percent"` // null: more than half of the runs did not get there
	Failed      float64   `json:"failed_per_run"`
	Returned    float64   `json:"returned"`
	RepeatShare float64   `json:"repeat_share"`
}

// Summary is one strategy over all recordings. Within and Worst are over the stable ones.
type Summary struct {
	Strategy      string         `json:"strategy"`
	Seeds         int            `json:"seeds"`
	Points        []Point        `json:"points"`
	Stable        int            `json:"stable_spaces"` // how many; without one, within and worst are 0 and mean nothing
	Within5       float64        `json:"within_5_percent"`
	Within1       float64        `json:"within_1_percent"`
	MedianTo5     *float64       `json:"median_evaluations_to_5_percent"`
	Worst         string         `json:"worst_space"`
	WorstRatio    float64        `json:"worst_ratio"`
	Returned      float64        `json:"returned"`        // optimum over the true time of what was handed over
	RepeatShare   float64        `json:"repeat_share"`    // measurements beyond one a configuration
	Speedup       float64        `json:"flight_speedup"`  // work over wall-clock
	SecondsPerRun float64        `json:"seconds_per_run"` // in Ask and Tell
	Spaces        []SpaceSummary `json:"spaces"`
}

// Summarise reduces the cells to one summary a strategy, in their order.
func Summarise(cells []Cell) []Summary {
	var out []Summary
	for from := 0; from < len(cells); {
		to := from
		for to < len(cells) && cells[to].Strategy == cells[from].Strategy {
			to++
		}
		out = append(out, summarise(cells[from:to]))
		from = to
	}
	return out
}

func summarise(cells []Cell) Summary {
	s := Summary{Strategy: cells[0].Strategy, Seeds: len(cells[0].Results), WorstRatio: math.Inf(1)}
	for _, k := range Marks(cells[0].Budget) {
		ratios := make([][]float64, len(cells))
		means := make([]float64, len(cells))
		for i := range cells {
			ratios[i] = cells[i].Ratios(k)
			means[i] = mean(ratios[i])
		}
		low, high := interval(ratios)
		s.Points = append(s.Points, Point{k, geometric(means), low, high})
	}
	var to5, finals, returned, wall, work []float64
	repeats, evaluations, took := 0, 0, time.Duration(0)
	for i := range cells {
		sp := cells[i].summary()
		s.Spaces = append(s.Spaces, sp)
		returned = append(returned, sp.Returned)
		last := len(sp.Ratios) - 1
		if sp.Stable {
			s.Stable++
		}
		if sp.Stable && sp.Ratios[last] < s.WorstRatio {
			s.Worst, s.WorstRatio = sp.Space, sp.Ratios[last]
		}
		for seed, r := range cells[i].Results {
			repeats, evaluations, took = repeats+r.Repeats, evaluations+len(r.Curve), took+r.Took
			wall, work = append(wall, r.Wall.Seconds()), append(work, r.Work.Seconds())
			if sp.Stable {
				finals = append(finals, cells[i].Ratio(seed, math.MaxInt))
				to5 = append(to5, cells[i].To(seed, 0.05))
			}
		}
	}
	if len(finals) > 0 {
		s.Within5, s.Within1 = share(finals, 0.95), share(finals, 0.99)
	} else { // no recording is stable: JSON knows no infinity
		s.WorstRatio = 0
	}
	s.MedianTo5 = finite(median(to5))
	s.Returned, s.RepeatShare = geometric(returned), float64(repeats)/float64(max(1, evaluations))
	ratios := make([]float64, len(wall))
	for i := range wall {
		ratios[i] = work[i] / wall[i]
	}
	s.Speedup = geometric(ratios)
	s.SecondsPerRun = took.Seconds() / float64(len(cells)*s.Seeds)
	return s
}

func (c *Cell) summary() SpaceSummary {
	s := SpaceSummary{Space: c.Record.Name, Stable: c.Record.Stable()}
	for _, k := range Marks(c.Budget) {
		s.Ratios = append(s.Ratios, mean(c.Ratios(k)))
	}
	finals, to5, returned := make([]float64, 0, len(c.Results)), make([]float64, 0, len(c.Results)), make([]float64, 0, len(c.Results))
	repeats, evaluations := 0, 0
	for seed, r := range c.Results {
		finals = append(finals, c.Ratio(seed, math.MaxInt))
		to5 = append(to5, c.To(seed, 0.05))
		returned = append(returned, c.Record.Best/r.Returned)
		s.Failed += float64(r.Failed) / float64(len(c.Results))
		repeats, evaluations = repeats+r.Repeats, evaluations+len(r.Curve)
	}
	s.Within5, s.MedianTo5, s.Returned = share(finals, 0.95), finite(median(to5)), mean(returned)
	s.RepeatShare = float64(repeats) / float64(max(1, evaluations))
	return s
}

func share(x []float64, least float64) float64 {
	n := 0
	for _, v := range x {
		if v >= least {
			n++
		}
	}
	return float64(n) / float64(max(1, len(x)))
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// WriteTable writes the summaries as text: one line a strategy, then one a recording.
func WriteTable(w io.Writer, sums []Summary) error {
	p := &printer{w: w}
	p.printf("%-24s", "optimum/best at")
	if len(sums) == 0 {
		return nil
	}
	for _, pt := range sums[0].Points {
		p.printf(" %6d", pt.Evaluations)
	}
	p.printf("  %6s %6s %6s  %-24s %6s %6s %8s\n", "in 5%", "in 1%", "to 5%", "worst stable space", "handed", "repeat", "s/run")
	for _, s := range sums {
		p.printf("%-24s", s.Strategy)
		for _, pt := range s.Points {
			p.printf(" %6.4f", pt.Ratio)
		}
		if s.Stable > 0 {
			p.printf("  %6.3f %6.3f %6s  %-17s %6.4f", s.Within5, s.Within1, whole(s.MedianTo5), s.Worst, s.WorstRatio)
		} else {
			p.printf("  %6s %6s %6s  %-24s", "-", "-", "-", "none is stable")
		}
		p.printf(" %6.4f %6.3f %8.3f\n", s.Returned, s.RepeatShare, s.SecondsPerRun)
		p.printf("%-24s", "  95 % interval")
		for _, pt := range s.Points {
			if s.Seeds > 1 {
				p.printf("  ±%.3f", (pt.High-pt.Low)/2)
			} else { // one run says nothing of the spread
				p.printf(" %6s", "-")
			}
		}
		p.printf("  %.2f times as fast as one evaluation at a time\n", s.Speedup)
	}
	for _, s := range sums {
		p.printf("\n%s\n", s.Strategy)
		for _, sp := range s.Spaces {
			p.printf("  %-22s", sp.Space)
			for _, r := range sp.Ratios {
				p.printf(" %6.4f", r)
			}
			note := ""
			if !sp.Stable {
				note = "  (repeats disagree: only in the means)"
			}
			p.printf("  %6.3f %6s  failed %5.1f  handed %.4f%s\n", sp.Within5, whole(sp.MedianTo5), sp.Failed, sp.Returned, note)
		}
	}
	return p.err
}

func whole(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'f', 0, 64)
}

// printer keeps the first error of a row of prints.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// WriteCSV writes one line a strategy, recording and seed, with the ratio at each checkpoint.
func WriteCSV(w io.Writer, cells []Cell) error {
	out := csv.NewWriter(w)
	head := []string{"strategy", "space", "seed"}
	marks := Checkpoints
	if len(cells) > 0 {
		marks = Marks(cells[0].Budget)
	}
	for _, k := range marks {
		head = append(head, "ratio_"+strconv.Itoa(k))
	}
	head = append(head, "returned", "failed", "repeats", "wall_seconds", "work_seconds")
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range cells {
		c := &cells[i]
		for seed, r := range c.Results {
			row := []string{c.Strategy, c.Record.Name, strconv.FormatUint(c.First+uint64(seed), 10)}
			for _, k := range marks {
				row = append(row, strconv.FormatFloat(c.Ratio(seed, k), 'f', 6, 64))
			}
			row = append(row, strconv.FormatFloat(c.Record.Best/r.Returned, 'f', 6, 64), strconv.Itoa(r.Failed), strconv.Itoa(r.Repeats),
				strconv.FormatFloat(r.Wall.Seconds(), 'f', 3, 64), strconv.FormatFloat(r.Work.Seconds(), 'f', 3, 64))
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
