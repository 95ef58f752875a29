package replay

import (
	"bytes"
	"strings"
	"testing"
)

func TestMarginsTellBehindFromWithinTheInterval(t *testing.T) {
	t.Parallel()
	a, b := &Record{Header: Header{Name: "a"}, Best: 2}, &Record{Header: Header{Name: "b"}, Best: 3}
	cells := []Cell{
		flat("ours", a, 0.50, 0.51, 0.49, 0.50), flat("ours", b, 0.2, 0.9, 0.4, 0.7),
		flat("random", a, 0.60, 0.61, 0.59, 0.60), flat("random", b, 0.6, 0.6, 0.5, 0.7),
	}
	margins := Margins(cells, "ours", "random")
	if len(margins) != 2*len(rivalled) {
		t.Fatalf("%d margins, want one a recording and number of evaluations", len(margins))
	}
	for _, m := range margins {
		if m.Behind() != (m.Space == "a") {
			t.Errorf("%s at %d: %+.4f ± %.4f is taken for behind: %v", m.Space, m.Evaluations, m.Ahead, m.Half, m.Behind())
		}
	}
	var out bytes.Buffer
	if err := WriteMargins(&out, cells, "random"); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "\n") != len(rivalled) || !strings.Contains(text, "on a (-0.1000") || strings.Contains(text, " b (") {
		t.Errorf("the lines name the wrong recordings:\n%s", text)
	}
}
