package propose_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/llm/propose"
)

var update = flag.Bool("update", false, "write the golden files anew")

// knownFor is what the corpus's replies are held against: a softmax task with one parent of the target.
func knownFor(t testing.TB, target string) propose.Known {
	t.Helper()
	ext := map[string]string{"cpu": ".c", "cuda": ".cu"}[target]
	source, err := os.ReadFile("testdata/replies/parent" + ext)
	if err != nil {
		t.Fatal(err)
	}
	return propose.Known{Target: target, Names: []string{"input", "output", "rows", "cols"}, DefaultKernel: "softmax",
		DefaultArgs: []string{"input", "output", "rows", "cols"}, Parents: []propose.Parent{{Name: "plain", Source: string(source)}}, Step: propose.StepRefine}
}

// describe writes what became of a reply, for golden files.
func describe(d *propose.Draft, complaints []propose.Complaint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: %s\ndirection: %s\nrepairs: %s\n", d.Kind, d.Direction, strings.Join(d.Repairs, " "))
	if d.Expectation != (propose.Expectation{}) {
		fmt.Fprintf(&b, "expectation: %.3g | %s | %s\n", d.Expectation.Ratio, d.Expectation.Change, d.Expectation.Why)
	}
	for _, c := range complaints {
		fmt.Fprintf(&b, "complaint: %s: %s\n", c.Code, c)
	}
	if d.Kind == propose.KindPoint {
		fmt.Fprintf(&b, "point of %s: %v\n", d.Of, d.Point)
	}
	if len(complaints) == 0 {
		b.WriteString("---\n" + d.Source)
	}
	return b.String()
}

func TestReplyCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replies/*.md")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d reply files, %v; want at least 60", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			reply, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			target := strings.Split(filepath.Base(file), "-")[1]
			draft, complaints := propose.Parse(string(reply), false, knownFor(t, target))
			got := describe(draft, complaints)
			golden := strings.TrimSuffix(file, ".md") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
