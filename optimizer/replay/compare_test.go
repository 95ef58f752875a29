package replay

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// flat returns a cell whose runs have one ratio to the optimum from the first evaluation to the last.
func flat(strategy string, r *Record, ratios ...float64) Cell {
	c := Cell{Strategy: strategy, Record: r}
	for _, ratio := range ratios {
		curve := make([]float64, 20)
		for i := range curve {
			curve[i] = r.Best / ratio
		}
		c.Results = append(c.Results, &Result{Curve: curve})
	}
	return c
}

func TestCompare(t *testing.T) {
	t.Parallel()
	a, b := &Record{Header: Header{Name: "a"}, Best: 2}, &Record{Header: Header{Name: "b"}, Best: 3}
	cells := []Cell{
		flat("gp", a, 0.9, 0.8), flat("gp", b, 0.5, 0.5),
		flat("gp"+WithoutRecords, a, 0.7, 0.8), flat("gp"+WithoutRecords, b, 0.6, 0.6),
		flat("tpe", a, 0.1, 0.1), flat("tpe", b, 0.1, 0.1),
	}
	got, err := Compare(cells, 20)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Strategy != "gp" || len(got[0].Points) != 2 {
		t.Fatalf("got %+v; want gp alone, at 5 and 20", got)
	}
	// Of a's seeds +0.2 and 0: mean 0.1, standard error 0.1; of b's -0.1 twice.
	pt := got[0].Points[1]
	for name, pair := range map[string][2]float64{
		"difference": {pt.Difference, 0}, "spread": {pt.Spread, 0.1}, "worst": {pt.WorstBy, -0.1}, "worst spread": {pt.WorstSpread, 0},
		"a": {got[0].Spaces[0].Differences[1], 0.1}, "b": {got[0].Spaces[1].Differences[1], -0.1},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, pair[0], pair[1])
		}
	}
	if pt.Evaluations != 20 || pt.Worst != "b" {
		t.Errorf("at %d the worst is %s; want b at 20", pt.Evaluations, pt.Worst)
	}
	var text bytes.Buffer
	if err := WriteComparisons(&text, got, []string{"c"}); err != nil || !strings.Contains(text.String(), "worst space b -0.1000") || !strings.Contains(text.String(), "no records of this kind for c") {
		t.Errorf("error %v, text:\n%s", err, text.String())
	}
	if _, err := Compare(cells[:3], 20); err == nil {
		t.Error("a strategy without one of its recordings compares")
	}
}
