package propose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/llm/propose"
)

// FuzzParse checks what must hold of any reply: no panic, either a complaint or a usable draft, and a repaired source that parses
// again to itself.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/*.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), strings.Contains(file, "-cuda-"), false)
	}
	f.Add("```c\nvoid f(", false, true)
	f.Add("```c\nvoid f(void) { }\nextern \"C\"", false, true)
	f.Add("/* ridgepoint\nparams: [", true, false)
	cpu, cuda := knownFor(f, "cpu"), knownFor(f, "cuda")
	f.Fuzz(func(t *testing.T, reply string, device, truncated bool) {
		known := cpu
		if device {
			known = cuda
		}
		draft, complaints := propose.Parse(reply, truncated, known)
		if len(complaints) > 0 {
			for _, c := range complaints {
				if c.Code == "" || c.Text == "" {
					t.Errorf("an empty complaint: %+v", c)
				}
			}
			return
		}
		switch draft.Kind {
		case propose.KindPoint:
			if draft.Of == "" || len(draft.Point) == 0 {
				t.Errorf("a point of nothing: %+v", draft)
			}
		case propose.KindStructure:
			again, complaints := propose.Parse("```c\n"+strings.TrimRight(draft.Source, "\n")+"\n```\n", false, known)
			if strings.Contains(draft.Source, "```") || strings.Contains(draft.Source, "~~~") {
				return // such a source cannot be fenced this way
			}
			if len(complaints) > 0 {
				t.Errorf("a repaired source is complained of: %v\n%s", complaints, draft.Source)
			} else if again.Kind == propose.KindStructure && propose.NewFingerprint(again.Source).Hash != propose.NewFingerprint(draft.Source).Hash {
				t.Errorf("a repaired source changes when read again:\n%q\n%q", draft.Source, again.Source)
			}
		default:
			t.Errorf("neither a draft nor a complaint: %+v", draft)
		}
	})
}

// FuzzSimilarity checks that similarity is symmetric, bounded, and one for a source and itself.
func FuzzSimilarity(f *testing.F) {
	f.Add("int a = 1;", "int b = 2;")
	f.Add("", "/*")
	f.Fuzz(func(t *testing.T, a, b string) {
		ab, ba := propose.Similarity(a, b), propose.Similarity(b, a)
		if ab != ba || ab < 0 || ab > 1 {
			t.Errorf("similarity %v and %v", ab, ba)
		}
		if propose.Similarity(a, a) != 1 {
			t.Errorf("%q is not like itself", a)
		}
	})
}
