package propose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/llm"
	"ridgepoint/llm/propose"
)

func situation(t testing.TB, step propose.Step) *propose.Situation {
	t.Helper()
	plain := propose.Exhibit{Name: "plain", Direction: "plain-rows", Source: read(t, "testdata/replies/parent.c"), Score: "1.42x the baseline", Best: "BLOCK=64, THREADS=2",
		Learned:  []string{"THREADS matters most: 2 is 1.7 times as fast as 1", "BLOCK makes no difference within the noise"},
		Feedback: "ITERATION 3 / TASK softmax_2d\nCOMPILE_STATUS : PASS\nRUNTIME_STATUS : PASS\nNUMERICAL_STATUS : PASS\nMAX_ABS_ERROR : 2.1e-9\nWARNINGS : [scalar_code: the inner loop is not vectorised; write it over vectors of 8]",
		Main:     "the inner loop is not vectorised; write it over vectors of 8."}
	wide := propose.Exhibit{Name: "wide", Direction: "two-rows", Source: "void softmax_wide(const float *input, float *output, int rows, int cols) { /* two rows at a time */ }", Score: "1.10x the baseline", Best: "ROWS=2",
		Learned: []string{"ROWS above 2 spills"}}
	s := &propose.Situation{Target: "cpu", Step: step, Incumbent: &plain, Others: []propose.Exhibit{wide},
		Task: propose.TaskText{Name: "softmax_2d", Description: "Row-wise softmax of a contiguous row-major float32 matrix.",
			Facts: []string{"input: float32[rows, cols], read only", "output: float32[rows, cols], written", "sizes: 128x128 to 4096x4096", "an element passes when |out - ref| <= 1e-8 + 2e-5 |ref|"}},
		Rules: []string{"no library calls", "no branch on sizes that changes the algorithm"}, Device: []string{"2 cores, x86-64-v3, 32 KB L1, 1 MB L2"},
		Directions: []string{"plain-rows: 1 structure, best 1.42x", "two-rows: 1 structure, best 1.10x", "gather: paused after 4 failures"}, Direction: "plain-rows",
		Failures: []string{"draft-4: incorrect: the tail of odd rows is not written"}, Expectations: []string{"draft-3 expected 0.80, reached 0.97"},
		Digest: "70 % of the time in expf; 11 GB/s of 20 GB/s", Diagnosis: "The exponential limits all sizes up to 1024 columns.", Example: "/* ridgepoint\ndirection: name\n*/\nvoid kernel(...) { ... }"}
	switch step {
	case propose.StepRefine, propose.StepSuggest:
		s.Parents = []propose.Exhibit{plain}
	case propose.StepCross:
		s.Parents = []propose.Exhibit{plain, wide}
	case propose.StepRepair:
		s.Parents = []propose.Exhibit{{Name: "draft-7", Source: "void softmax_new(float *x) { x[0] = 1 }"}}
		s.Complaints = []string{"compile: line 1: expected ';' before '}'"}
	}
	return s
}

func text(r *llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "[%s]\n%s\n", m.Role, m.Text)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/prompts", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(read(t, path), got); d != "" {
		t.Errorf("prompt %s of version %s changed; a new wording is a new version (-want +got):\n%s", name, propose.PromptVersion, d)
	}
}

func TestPromptsAreGolden(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*propose.Situation){
		"new_direction": func(s *propose.Situation) { s.Exploring = true },
		"refine":        func(*propose.Situation) {},
		"cross":         func(*propose.Situation) {},
		"repair":        func(*propose.Situation) {},
		"suggest":       func(*propose.Situation) {},
		"regenerate": func(s *propose.Situation) {
			s.Parents, s.Incumbent = []propose.Exhibit{*s.Incumbent}, nil
			s.Parents[0].Source = ""
		},
		"refine-flat":   func(s *propose.Situation) { s.Flat = 2 },
		"cross-explore": func(s *propose.Situation) { s.Exploring = true },
		"refine-cuda":   func(s *propose.Situation) { s.Target = "cuda" },
		"new_direction-first": func(s *propose.Situation) {
			s.Exploring, s.Incumbent, s.Others, s.Directions, s.Failures, s.Expectations = true, nil, nil, nil, nil, nil
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, _, _ := strings.Cut(name, "-")
			s := situation(t, propose.Step(step))
			change(s)
			r, dropped, err := s.Author()
			if err != nil || len(dropped) > 0 {
				t.Fatalf("Author: %v, dropped %v", err, dropped)
			}
			golden(t, name, text(r))
		})
	}
	r, _, err := situation(t, propose.StepRefine).Analyst()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "analyst", text(r))
	again := propose.Again(&llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "q"}}}, "a", []propose.Complaint{{Line: 3, Text: "the code uses TILE, which is not declared"}})
	golden(t, "again", text(again))
}

func TestExploringPromptsDoNotGuide(t *testing.T) {
	t.Parallel()
	s := situation(t, propose.StepNew)
	s.Exploring = true
	r, _, err := s.Author()
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range []string{"Feedback on", "WARNINGS", "not vectorised", "Diagnosis", "Profile", "What failed"} {
		if strings.Contains(text(r), guide) {
			t.Errorf("an exploring prompt holds %q", guide)
		}
	}
	s.Exploring, s.Step, s.Parents = true, propose.StepRefine, s.Others
	if _, _, err := s.Author(); err == nil || !strings.Contains(err.Error(), "converges") {
		t.Errorf("an exploring refinement: %v", err)
	}
}

func TestTokenBudgetDropsWholeParts(t *testing.T) {
	t.Parallel()
	full, _, err := situation(t, propose.StepRefine).Author()
	if err != nil {
		t.Fatal(err)
	}
	var last int
	for limit := full.PromptTokens(); ; limit -= 25 {
		s := situation(t, propose.StepRefine)
		s.MaxTokens = limit
		r, dropped, err := s.Author()
		if err != nil {
			if !strings.Contains(err.Error(), "raise it") || last == 0 {
				t.Errorf("limit %d: %v after %d dropped parts", limit, err, last)
			}
			break
		}
		if r.PromptTokens() > limit {
			t.Errorf("limit %d: the prompt takes %d", limit, r.PromptTokens())
		}
		if !strings.Contains(text(r), s.Parents[0].Source) || !strings.Contains(text(r), "Improve plain") || !strings.Contains(text(r), "no library calls") {
			t.Errorf("limit %d: source, step or rules are missing", limit)
		}
		if strings.Contains(text(r), "two rows at a time") != strings.Contains(text(r), s.Others[0].Source) {
			t.Errorf("limit %d: a source was cut", limit)
		}
		if len(dropped) < last {
			t.Errorf("limit %d dropped %v, fewer than a larger limit", limit, dropped)
		}
		if len(dropped) == 1 && dropped[0] != "expectations" {
			t.Errorf("dropped first: %v, want the expectations", dropped)
		}
		last = len(dropped)
	}
}
