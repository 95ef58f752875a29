package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
)

//go:embed page.tmpl
var pages embed.FS

// page is the data of the page's template.
type page struct {
	*Report
	OverEvaluations, OverTime template.HTML
	Bars                      []sizeBar
	Legend                    []legend
}

// sizeBar is one line of the per-size table with the length of its bar.
type sizeBar struct {
	Size                        string
	Baseline, Runtime, Replayed string
	Speedup                     float64
	Percent                     float64
}

type legend struct {
	Class int
	Name  string
}

// HTML writes the report as one page that needs nothing else: no script, no font, no network. It follows the reader's light
// or dark setting.
func (r *Report) HTML(w io.Writer) error {
	p := page{Report: r}
	p.OverEvaluations = r.searchChart("evaluations", func(q Point) float64 { return float64(q.Evaluation) }, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	p.OverTime = r.searchChart("time", func(q Point) float64 { return q.Seconds }, shortClock)
	if k := r.Result.Winner; k != nil {
		top := 0.0
		for _, s := range k.Sizes {
			bar := sizeBar{Size: s.Size.String(), Baseline: micros(s.BaselineUS), Runtime: micros(s.RuntimeUS), Replayed: "–", Speedup: s.BaselineUS / s.RuntimeUS}
			if s.ReplayedUS > 0 {
				bar.Replayed, bar.Speedup = micros(s.ReplayedUS), s.BaselineUS/s.ReplayedUS
			}
			top = math.Max(top, bar.Speedup)
			p.Bars = append(p.Bars, bar)
		}
		for i := range p.Bars {
			p.Bars[i].Percent = 100 * p.Bars[i].Speedup / top
		}
	}
	for i, s := range r.Structures {
		if s.Evaluated > 0 {
			p.Legend = append(p.Legend, legend{i % seriesColours, s.Name})
		}
	}
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{"config": Config, "short": Short, "clock": clock, "percent": func(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) },
		"percent2": func(f float64) string { return fmt.Sprintf("%.2f %%", 100*f) }, "x": func(f float64) string { return fmt.Sprintf("%.2f×", f) }, "mod": func(n int) int { return (n - 1) % seriesColours }}).ParseFS(pages, "page.tmpl")
	if err != nil {
		return fmt.Errorf("parse the page's template: %w", err)
	}
	return t.Execute(w, p)
}

func shortClock(seconds float64) string {
	switch {
	case seconds >= 3600:
		return fmt.Sprintf("%.3g h", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.3g min", seconds/60)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}

// Classes has one entry for each colour of the charts.
func (page) Classes() [seriesColours]struct{} { return [seriesColours]struct{}{} }
