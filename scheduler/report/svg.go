package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Geometry of a chart, in SVG user units.
const (
	chartWidth, chartHeight  = 520.0, 300.0
	padLeft, padRight        = 46.0, 14.0
	padTop, padBottom        = 14.0, 38.0
	maxDots                  = 1500 // more would only overprint
	seriesColours            = 8    // classes c0 to c7 in the page's style
	tickCount                = 5
	plotWidth, plotHeight    = chartWidth - padLeft - padRight, chartHeight - padTop - padBottom
	baselineDash, baselineAt = "4 4", 1.0
)

// axis maps values to a range of the chart.
type axis struct {
	low, high  float64
	from, to   float64
	ticks      []float64
	formatFunc func(float64) string
}

func newAxis(low, high, from, to float64, formatFunc func(float64) string) axis {
	if high <= low {
		high = low + 1
	}
	step := niceStep((high - low) / tickCount)
	a := axis{low: math.Floor(low/step) * step, high: math.Ceil(high/step) * step, from: from, to: to, formatFunc: formatFunc}
	for v := a.low; v <= a.high+step/2; v += step {
		a.ticks = append(a.ticks, v)
	}
	return a
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*p {
			return m * p
		}
	}
	return 10 * p
}

func (a axis) at(v float64) float64 { return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from) }

// searchChart draws every evaluation as a dot and the best so far as a line. xFunc gives a point's place on the x axis.
func (r *Report) searchChart(title string, xFunc func(Point) float64, formatFunc func(float64) string) template.HTML {
	if len(r.Points) == 0 {
		return ""
	}
	last := r.Points[len(r.Points)-1]
	x := newAxis(0, xFunc(last), padLeft, padLeft+plotWidth, formatFunc)
	y := newAxis(0, math.Max(last.Best*1.05, baselineAt), padTop+plotHeight, padTop, func(v float64) string { return fmt.Sprintf("%g×", math.Round(v*100)/100) })
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString("Speedup over "+title))
	drawAxes(&b, x, y, title)
	fmt.Fprintf(&b, `<line class="base" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke-dasharray="%s"/>`, x.from, x.to, y.at(baselineAt), y.at(baselineAt), baselineDash)
	stride := len(r.Points)/maxDots + 1
	best := 0.0
	path := fmt.Sprintf("M%.1f %.1f", x.at(xFunc(r.Points[0])), y.at(r.Points[0].Best))
	for i, p := range r.Points {
		record := p.Best > best
		if record {
			best = p.Best
			path += fmt.Sprintf("H%.1fV%.1f", x.at(xFunc(p)), y.at(p.Best))
		}
		if record || i%stride == 0 {
			fmt.Fprintf(&b, `<circle class="c%d" cx="%.1f" cy="%.1f" r="3"><title>%s, evaluation %d: %.2f×</title></circle>`, (p.Structure-1)%seriesColours, x.at(xFunc(p)), y.at(p.Speedup),
				template.HTMLEscapeString(r.structure(p.Structure)), p.Evaluation, p.Speedup)
		}
	}
	path += fmt.Sprintf("H%.1f", x.at(xFunc(last)))
	fmt.Fprintf(&b, `<path class="best" d="%s"/></svg>`, path)
	return template.HTML(b.String()) // numbers and escaped text only
}

func drawAxes(b *strings.Builder, x, y axis, title string) {
	for _, v := range y.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, x.from, x.to, y.at(v), y.at(v), x.from-6, y.at(v)+4, y.formatFunc(v))
	}
	for _, v := range x.ticks {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x.at(v), y.from+16, x.formatFunc(v))
	}
	fmt.Fprintf(b, `<text class="title" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (x.from+x.to)/2, y.from+33, template.HTMLEscapeString(title))
}

func (r *Report) structure(number int) string {
	if number < 1 || number > len(r.Structures) {
		return "baseline"
	}
	return r.Structures[number-1].Name
}
