package propose_test

import (
	"os"
	"strings"
	"testing"

	"ridgepoint/llm/propose"
)

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	base := read(t, "testdata/similar/blocked.c")
	header, body, _ := strings.Cut(base, "*/\n")
	change := func(pairs ...string) string { return header + "*/\n" + strings.NewReplacer(pairs...).Replace(body) }
	cases := []struct {
		name      string
		source    string
		exact     bool
		numbers   bool
		duplicate bool
		low, high float64
	}{
		{"itself", base, true, false, true, 1, 1},
		{"other white space and comments", strings.ReplaceAll(strings.ReplaceAll(base, "    ", "\t"), "/* Three", "/* Tres"), true, false, true, 1, 1},
		{"another header", "/* ridgepoint\ndirection: new\n*/\n" + body, true, false, true, 1, 1},
		{"renamed variables", change("sum", "total", "biased", "q", "row_max", "find_largest", "top", "m0"), true, false, true, 1, 1},
		{"numbers spelt otherwise", change("0.0f", "0.f", "1.0f", "1.F"), true, false, true, 1, 1},
		{"a constant changed", change("-87.0f", "-80.0f"), false, true, true, 0.9, 1},
		{"a line added", change("float sum = 0.0f;", "float sum = 0.0f; int unused = 0; (void)unused;"), false, false, true, 0.96, 1},
		{"another function order", change("static void row_scale", "static float nothing(float a) { return a; }\n\nstatic void row_scale"), false, false, true, 0.96, 1},
		{"the online structure", read(t, "testdata/similar/online.c"), false, false, false, 0.2, 0.85},
		{"the textbook kernel", read(t, "testdata/similar/naive.c"), false, false, false, 0, 0.5},
		{"a kernel of this corpus", read(t, "testdata/replies/parent.c"), false, false, false, 0, 0.5},
	}
	var tried propose.Tried
	tried.Add("blocked", base)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := tried.Nearest(tc.source)
			if m.Exact != tc.exact || m.Numbers != tc.numbers || m.Duplicate() != tc.duplicate || m.Similarity < tc.low || m.Similarity > tc.high {
				t.Errorf("match = %+v, duplicate %v; want exact %v, numbers %v, duplicate %v, similarity %v to %v", m, m.Duplicate(), tc.exact, tc.numbers, tc.duplicate, tc.low, tc.high)
			}
			if back := propose.Similarity(tc.source, base); back != propose.Similarity(base, tc.source) {
				t.Errorf("similarity is not symmetric: %v", back)
			}
		})
	}
}

func TestExceptedParentCountsOnlyWhenExact(t *testing.T) {
	t.Parallel()
	base := read(t, "testdata/similar/blocked.c")
	var tried propose.Tried
	tried.Add("draft-1", base)
	if m := tried.Nearest(strings.Replace(base, "-87.0f", "-88.0f", 1), "draft-1"); m.Duplicate() {
		t.Errorf("a mended parent counts as a duplicate: %+v", m)
	}
	if m := tried.Nearest(base, "draft-1"); !m.Exact {
		t.Errorf("an unchanged parent does not count: %+v", m)
	}
}
