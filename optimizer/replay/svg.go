package replay

import (
	"io"
	"math"
)

// colours of the curves, distinguishable without red and green side by side.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"}

// The picture's size and margins in pixels.
const (
	svgWidth, svgHeight = 760, 440
	svgLeft, svgTop     = 60, 20
	svgRight, svgBottom = 170, 50
	svgFloor            = 0.5 // ratios below it are drawn on the axis
)

// WriteSVG draws, for each strategy, the geometric mean over recordings of the mean ratio over seeds, against evaluations (in log scale).
func WriteSVG(w io.Writer, cells []Cell, budget int) error {
	p := &printer{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", svgWidth, svgHeight)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	x := func(k int) float64 {
		return svgLeft + (svgWidth-svgLeft-svgRight)*math.Log(float64(k))/math.Log(float64(max(2, budget)))
	}
	y := func(r float64) float64 {
		return svgTop + (svgHeight-svgTop-svgBottom)*(1-(math.Max(r, svgFloor)-svgFloor)/(1-svgFloor))
	}
	for r := svgFloor; r < 1.001; r += 0.1 {
		p.printf(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.1f</text>`+"\n",
			svgLeft, svgWidth-svgRight, y(r), y(r), svgLeft-6, y(r)+4, r)
	}
	for _, k := range Marks(budget) {
		p.printf(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			x(k), x(k), svgTop, svgHeight-svgBottom, x(k), svgHeight-svgBottom+16, k)
	}
	p.printf(`<text x="%d" y="%d" text-anchor="middle">evaluations</text>`+"\n", (svgLeft+svgWidth-svgRight)/2, svgHeight-12)
	p.printf(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">optimum / best so far</text>`+"\n", (svgTop+svgHeight-svgBottom)/2)
	for from, n := 0, 0; from < len(cells); n++ {
		to := from
		for to < len(cells) && cells[to].Strategy == cells[from].Strategy {
			to++
		}
		colour := colours[n%len(colours)]
		p.printf(`<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for k := 1; k <= budget; k++ {
			p.printf("%.1f,%.1f ", x(k), y(meanRatio(cells[from:to], k)))
		}
		p.printf(`"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", svgWidth-svgRight+10, svgTop+14+18*n, colour, cells[from].Strategy)
		from = to
	}
	p.printf("</svg>\n")
	return p.err
}

func meanRatio(cells []Cell, k int) float64 {
	means := make([]float64, len(cells))
	for i := range cells {
		means[i] = mean(cells[i].Ratios(k))
	}
	return geometric(means)
}
