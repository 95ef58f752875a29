package propose

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"ridgepoint/llm"
)

// PromptVersion names the templates. It is stored with every draft, so that prompts can be compared; golden tests hold each version to
// its wording.
const PromptVersion = "v1"

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/"+PromptVersion+"/*.tmpl"))

// Situation is what a prompt is made of. Everything is text: numbers come with their units.
type Situation struct {
	Target       string // cpu, cuda or hip
	Task         TaskText
	Rules        []string
	Device       []string
	Incumbent    *Exhibit
	Others       []Exhibit // the most useful first
	Parents      []Exhibit // of the step: one to refine, repair or suggest for, two to cross
	Directions   []string  // one line each: name, structures, best score, paused or not
	Direction    string    // whose failures are told
	Failures     []string  // the latest first
	Expectations []string  // the latest first
	Digest       string    // of the profile
	Diagnosis    string    // by the analyst
	Step         Step
	// Exploring prompts guide weakly: they show results, and neither feedback nor problems. Converging ones guide strongly.
	Exploring  bool
	Complaints []string // of a repair
	// Flat counts rounds in this direction without gain; from two on the feedback shrinks to its main problem.
	Flat    int
	Example string // a structure file in the form that is wanted
	// MaxTokens bounds the whole prompt; 0 does not.
	MaxTokens int
}

// TaskText is the task in words and numbers.
type TaskText struct {
	Name        string
	Description string
	Facts       []string
}

// Exhibit is a structure as a prompt shows it.
type Exhibit struct {
	Name      string
	Direction string
	Source    string
	Score     string   // "1.84x the baseline"
	Best      string   // its best parameters
	Learned   []string // what parameter search found out
	Feedback  string   // the record, structured or plain
	Main      string   // the main problem in one sentence
	Fence     string   // set by the prompt
	Title     string   // set by the prompt
}

// flatRounds is after how many rounds without gain the feedback shrinks.
const flatRounds = 2

// part is a piece of a prompt. Those with a rank may be dropped, the lowest rank first; 0 must stay.
type part struct {
	name string
	text string
	rank int
}

// Author writes the request for the step of a situation. dropped names the parts left out to keep within MaxTokens. The error says how
// many tokens the indispensable parts take.
func (s *Situation) Author() (r *llm.Request, dropped []string, err error) {
	if err := s.validate(); err != nil {
		return nil, nil, err
	}
	return s.request(llm.Author, "system", s.authorParts())
}

// Analyst writes the request for a diagnosis.
func (s *Situation) Analyst() (r *llm.Request, dropped []string, err error) {
	parts := s.common()
	parts = append(parts, s.feedback(0)...)
	parts = append(parts, part{"analyst_step", render("analyst_step", nil), 0})
	return s.request(llm.Analyst, "analyst_system", parts)
}

// Again writes the next turn of a conversation: the model's reply and what is wrong with it.
func Again(r *llm.Request, reply string, complaints []Complaint) *llm.Request {
	next := *r
	next.Messages = append(append([]llm.Message{}, r.Messages...), llm.Message{Role: llm.Assistant, Text: reply},
		llm.Message{Role: llm.User, Text: render("complaints", map[string]any{"Complaints": complaints})})
	return &next
}

func (s *Situation) validate() error {
	if err := s.Step.Validate(); err != nil {
		return err
	}
	need := map[Step]int{StepRefine: 1, StepRepair: 1, StepSuggest: 1, StepRegenerate: 1, StepCross: 2}[s.Step]
	if len(s.Parents) < need {
		return fmt.Errorf("step %s needs %d structures to work on, got %d", s.Step, need, len(s.Parents))
	}
	if s.Exploring && s.Step != StepNew && s.Step != StepCross {
		return fmt.Errorf("step %s converges; only new_direction and cross explore", s.Step)
	}
	return nil
}

func (s *Situation) lang() (fence, lang string) {
	switch s.Target {
	case "cpu":
		return "c", "C"
	case "hip":
		return "cpp", "HIP"
	default:
		return "cuda", "CUDA"
	}
}

// common are the parts that author and analyst both get.
func (s *Situation) common() []part {
	fence, _ := s.lang()
	parts := []part{{"task", render("task", s), 0}, {"rules", list("rules", s.Rules, s), 0}, {"device", list("device", s.Device, s), 6}}
	if s.Incumbent != nil && !s.among(s.Incumbent.Name) {
		e := *s.Incumbent
		e.Fence = fence
		parts = append(parts, part{"incumbent", render("incumbent", e), 9})
	}
	for i, e := range s.Parents {
		e.Fence = fence
		e.Title = map[bool]string{true: "Structure", false: "Draft"}[s.Step != StepRepair]
		if s.Incumbent != nil && e.Name == s.Incumbent.Name {
			e.Title = "Best so far"
		}
		parts = append(parts, part{fmt.Sprintf("parent %d", i+1), render("parent", e), 0})
	}
	for i, e := range s.Others {
		if s.among(e.Name) || (s.Incumbent != nil && e.Name == s.Incumbent.Name) {
			continue
		}
		e.Fence = fence
		parts = append(parts, part{"other " + e.Name, render("other", e), max(1, 4-i)})
	}
	parts = append(parts, part{"directions", list("directions", s.Directions, s), 7}, part{"expectations", list("expectations", s.Expectations, s), 2})
	return parts
}

func (s *Situation) authorParts() []part {
	parts := s.common()
	if !s.Exploring {
		parts = append(parts, s.feedback(8)...)
		parts = append(parts, part{"failures", list("failures", s.Failures, s), 5})
		if s.Digest != "" && s.Flat < flatRounds {
			parts = append(parts, part{"digest", render("digest", s), 5})
		}
		if s.Diagnosis != "" {
			parts = append(parts, part{"diagnosis", render("diagnosis", s), 8})
		}
	}
	target, second, main := "", "", ""
	if len(s.Parents) > 0 {
		target, main = s.Parents[0].Name, s.Parents[0].Main
	}
	if len(s.Parents) > 1 {
		second = s.Parents[1].Name
	}
	parts = append(parts, part{"step", render("step_"+string(s.Step), map[string]any{"Target": target, "Second": second, "Main": main, "Complaints": s.Complaints}), 0})
	if s.Step != StepSuggest {
		fence, _ := s.lang()
		keep := ""
		if s.Step == StepRefine && len(s.Parents) > 0 {
			keep = s.Parents[0].Direction
		}
		parts = append(parts, part{"reply", render("reply", map[string]any{"Fence": fence, "Example": ensureNewline(s.Example), "Keep": keep}), 0})
	}
	return parts
}

// feedback is the record of the structure to work on, else of the best; after rounds without gain only its main problem.
func (s *Situation) feedback(rank int) []part {
	e := s.Incumbent
	if len(s.Parents) > 0 {
		e = &s.Parents[0]
	}
	if e == nil || (e.Feedback == "" && e.Main == "") {
		return nil
	}
	text := e.Feedback
	if s.Flat >= flatRounds && e.Main != "" {
		text = "Main problem: " + e.Main
	}
	return []part{{"feedback", render("feedback", map[string]any{"Name": e.Name, "Text": strings.TrimRight(text, "\n")}), rank}}
}

func (s *Situation) among(name string) bool {
	for _, p := range s.Parents {
		if p.Name == name {
			return true
		}
	}
	return false
}

// request joins parts within the token budget: whole parts are left out, the least useful first, never a piece of one.
func (s *Situation) request(role, system string, parts []part) (*llm.Request, []string, error) {
	_, lang := s.lang()
	r := &llm.Request{For: role, Messages: []llm.Message{{Role: llm.System, Text: render(system, map[string]any{"Lang": lang})}, {Role: llm.User}}}
	var dropped []string
	for {
		var b strings.Builder
		for _, p := range parts {
			if p.text != "" {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(p.text)
			}
		}
		r.Messages[1].Text = b.String()
		if s.MaxTokens == 0 || r.PromptTokens() <= s.MaxTokens {
			return r, dropped, nil
		}
		least := -1
		for i, p := range parts { // of equal ranks the later one goes first
			if p.rank > 0 && p.text != "" && (least < 0 || p.rank <= parts[least].rank) {
				least = i
			}
		}
		if least < 0 {
			return nil, dropped, fmt.Errorf("the indispensable parts of the prompt take about %d tokens, prompt_tokens allows %d: raise it", r.PromptTokens(), s.MaxTokens)
		}
		dropped = append(dropped, parts[least].name)
		parts[least].text = ""
	}
}

func list(name string, items []string, s *Situation) string {
	if len(items) == 0 {
		return ""
	}
	return render(name, s)
}

// render executes a template. A failure is a bug in an embedded template, which the golden tests would have found.
func render(name string, data any) string {
	if e, ok := data.(Exhibit); ok {
		e.Source = ensureNewline(e.Source)
		data = e
	}
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("propose: template %s: %v", name, err))
	}
	return strings.TrimLeft(b.String(), "\n")
}

func ensureNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
