package proposer

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/feedback"
	"ridgepoint/harness/task"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/blend"
	"ridgepoint/scheduler/decide"
)

// View is a campaign as a prompt sees it.
type View struct {
	Campaign   *scheduler.Campaign
	State      *decide.State
	Structures []*harness.Structure // by number - 1
}

// The numbers of what a prompt shows.
const (
	shownOthers       = 3
	shownFailures     = 5
	shownExpectations = 6
	maxRepairs        = 1 // of one structure by a step of its own, after the two complaints that a reply may get
)

// plan is the next draft: what is asked and of what it is made.
type plan struct {
	ask       scheduler.Ask
	situation *propose.Situation
	parents   []propose.Parent // what the reply may refer to
	excepted  []string         // names that do not count as duplicates
}

// next chooses the next step and writes its situation.
func (f *findings) next(v View) (*plan, error) {
	p := &plan{}
	best := f.ranked(v)
	p.ask = f.choose(v, best)
	s := f.situation(v, best, &p.ask)
	shown := map[string]bool{}
	show := func(e *propose.Exhibit) {
		if e != nil && e.Source != "" && !shown[e.Name] {
			shown[e.Name] = true
			p.parents = append(p.parents, propose.Parent{Name: e.Name, Source: e.Source})
		}
	}
	for i := range s.Parents {
		show(&s.Parents[i])
	}
	show(s.Incumbent)
	for i := range s.Others {
		show(&s.Others[i])
	}
	if p.ask.Step == string(propose.StepRepair) {
		p.excepted = []string{s.Parents[0].Name}
	}
	p.situation = s
	return p, nil
}

// ranked are the numbers of the structures with a measured configuration, the best first.
func (f *findings) ranked(v View) []int {
	var out []int
	for i := range v.State.Structures {
		if st := &v.State.Structures[i]; st.Best > 0 {
			out = append(out, st.Number)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return v.State.Structure(out[i]).Best < v.State.Structure(out[j]).Best })
	return out
}

// choose settles the step: a failed draft is mended first; else what the blend says.
func (f *findings) choose(v View, best []int) scheduler.Ask {
	if n := f.broken(v); n > 0 {
		return scheduler.Ask{Step: string(propose.StepRepair), Direction: v.State.Structure(n).Direction, Parents: []int{n}}
	}
	in := blend.AskInputs{Structures: len(best), Stagnation: blend.Stagnation(f.stagnationInputs(v)), Flat: f.flat(v, best)}
	for _, t := range v.State.Drafts.Taken {
		for _, a := range blend.Asks {
			if a.String() == t.Draft.Ask.Step {
				in.Records[a].Asked++
				in.Records[a].Gain += v.State.Gain(&t)
			}
		}
	}
	for _, d := range v.State.Drafts.Ended { // dropped ones were asked for too
		for _, a := range blend.Asks {
			if a.String() == d.Ask.Step {
				in.Records[a].Asked++
			}
		}
	}
	for _, d := range v.State.Drafts.Ready {
		for _, a := range blend.Asks {
			if a.String() == d.Ask.Step {
				in.Records[a].Asked++
			}
		}
	}
	for _, n := range best {
		in.Tunable = in.Tunable || len(v.Structures[n-1].Params) > 0
	}
	choice, why := blend.NextAsk(in)
	ask := scheduler.Ask{Step: choice.String(), Why: why}
	switch choice {
	case blend.AskNew:
		ask.Exploring = true
	case blend.AskRefine:
		ask.Parents = best[:1]
		if in.Flat >= 2 && len(best) > 1 && v.State.Drafts.Last%3 == 2 { // the second best deserves a turn when the best is stuck
			ask.Parents = best[1:2]
		}
	case blend.AskCross:
		ask.Parents = f.pair(v, best)
		ask.Exploring = in.Stagnation >= 0.5
	case blend.AskSuggest:
		for _, n := range best {
			if len(v.Structures[n-1].Params) > 0 {
				ask.Parents = []int{n}
				break
			}
		}
	}
	if len(ask.Parents) > 0 {
		ask.Direction = v.State.Structure(ask.Parents[0]).Direction
	}
	return ask
}

func (f *findings) stagnationInputs(v View) blend.Inputs {
	in := v.State.BlendInputs()
	for i := range v.State.Structures {
		if st := &v.State.Structures[i]; st.Cost.N > 0 {
			in.Arms = append(in.Arms, blend.Arm{Kind: blend.KindTune, CostSeconds: st.Cost.Mean})
		}
	}
	return in
}

// broken is a structure of a draft that failed altogether and may be mended once, 0 when there is none.
func (f *findings) broken(v View) int {
	tries := map[int]int{}
	count := func(a scheduler.Ask) {
		if a.Step == string(propose.StepRepair) && len(a.Parents) > 0 {
			tries[a.Parents[0]]++
		}
	}
	for _, d := range v.State.Drafts.Taken {
		count(d.Draft.Ask)
	}
	for _, d := range v.State.Drafts.Ready {
		count(d.Ask)
	}
	for _, d := range v.State.Drafts.Ended {
		count(d.Ask)
	}
	for _, open := range v.State.Drafts.Open {
		count(open[0].Ask)
	}
	for i := len(v.State.Drafts.Taken) - 1; i >= 0; i-- {
		n := v.State.Drafts.Taken[i].Structure
		st := v.State.Structure(n)
		if st.Told > 0 && st.Measured == 0 && tries[n] < maxRepairs && !v.State.Directions[st.Direction].Paused {
			if s := f.structures[v.Structures[n-1].Digest]; s != nil && s.failure != nil && mendable(s.failure.Fault) {
				return n
			}
		}
	}
	return 0
}

func mendable(fault harness.Fault) bool {
	switch fault {
	case harness.FaultCompile, harness.FaultLaunch, harness.FaultCrash, harness.FaultIncorrect, harness.FaultTimeout:
		return true
	default:
		return false
	}
}

// flat counts the drafts in a row, latest first, made of the best structure's direction that brought nothing.
func (f *findings) flat(v View, best []int) int {
	if len(best) == 0 {
		return 0
	}
	direction, n := v.State.Structure(best[0]).Direction, 0
	for i := len(v.State.Drafts.Taken) - 1; i >= 0; i-- {
		t := &v.State.Drafts.Taken[i]
		if t.Draft.Direction != direction || v.State.Structure(t.Structure).Told == 0 {
			continue
		}
		if v.State.Gain(t) > 0 {
			break
		}
		n++
	}
	return n
}

// pair is the best structure and the best of another direction; the second best where all are of one.
func (f *findings) pair(v View, best []int) []int {
	for _, n := range best[1:] {
		if v.State.Structure(n).Direction != v.State.Structure(best[0]).Direction {
			return []int{best[0], n}
		}
	}
	return best[:2]
}

// situation writes down everything that a prompt may say.
func (f *findings) situation(v View, best []int, ask *scheduler.Ask) *propose.Situation {
	llmSettings := v.Campaign.Settings.LLM
	s := &propose.Situation{Target: v.Campaign.Target.String(), Task: taskText(v.Campaign), Rules: ruleText(v.Campaign), Step: propose.Step(ask.Step), Exploring: ask.Exploring,
		Direction: ask.Direction, Diagnosis: strings.TrimSpace(v.State.Drafts.Diagnosis), MaxTokens: llmSettings.PromptTokens, Example: example(v.Campaign), Flat: f.flat(v, best)}
	if d := f.device; d != nil {
		s.Device = []string{fmt.Sprintf("%s, %d cores, %s", d.Device, d.Cores, d.OS), "compiled by " + d.Toolchain}
		if spec, ok := v.Campaign.Task.Target(v.Campaign.Target); ok {
			s.Device[1] += " for " + spec.Arch
		}
	}
	shown := map[int]bool{}
	for _, n := range ask.Parents {
		shown[n] = true
		s.Parents = append(s.Parents, f.exhibit(v, n))
	}
	if ask.Step == string(propose.StepRepair) {
		if x := f.structures[v.Structures[ask.Parents[0]-1].Digest]; x != nil && x.failure != nil {
			s.Complaints = []string{fmt.Sprintf("%s: %s", x.failure.Fault, x.failure.Reason)}
			for _, w := range x.failure.Warnings {
				s.Complaints = append(s.Complaints, w.Problem+": "+w.Direction)
			}
		}
	}
	if len(best) > 0 {
		e := f.exhibit(v, best[0])
		s.Incumbent, shown[best[0]] = &e, true
		if r := f.report(v, best[0]); r != nil {
			s.Digest = strings.Join(r.Detail, "\n")
		}
	}
	directions := map[string]bool{}
	for _, n := range best { // diverse: one of each other direction
		if d := v.State.Structure(n).Direction; !shown[n] && !directions[d] && len(s.Others) < shownOthers {
			directions[d] = true
			s.Others = append(s.Others, f.exhibit(v, n))
		}
	}
	s.Directions, s.Failures, s.Expectations = directionText(v), f.failureText(v, ask.Direction), expectationText(v)
	return s
}

func (f *findings) report(v View, number int) *harness.Report {
	if x := f.structures[v.Structures[number-1].Digest]; x != nil {
		return x.bestReport
	}
	return nil
}

// exhibit shows one structure.
func (f *findings) exhibit(v View, number int) propose.Exhibit {
	st, known := v.Structures[number-1], v.State.Structure(number)
	e := propose.Exhibit{Name: st.Name, Direction: known.Direction, Source: st.Source}
	x := f.structures[st.Digest]
	if x == nil {
		return e
	}
	e.Learned = x.learned()
	r := x.bestReport
	if r == nil {
		r = x.failure
	} else {
		e.Best = assignment(x.bestConfig)
		if up := feedback.Summarise(r).Speedup; up > 0 {
			e.Score = fmt.Sprintf("%.2fx the baseline", up)
		} else if known.Best > 0 {
			e.Score = fmt.Sprintf("%.3g of the baseline's time", known.Best)
		}
	}
	if r == nil {
		return e
	}
	t := *v.Campaign.Task
	t.Agent.FeedbackSchema = v.Campaign.Settings.LLM.Schema
	e.Feedback = feedback.Text(&t, r, int(v.State.Drafts.Last)+1)
	if len(r.Warnings) > 0 {
		e.Main = r.Warnings[0].Problem + ": " + r.Warnings[0].Direction + "."
	}
	return e
}

func taskText(c *scheduler.Campaign) propose.TaskText {
	t := c.Task
	out := propose.TaskText{Name: t.Name, Description: strings.TrimSpace(t.Description)}
	for _, x := range t.Tensors {
		role := map[harness.Role]string{harness.RoleIn: "read only", harness.RoleOut: "written", harness.RoleInOut: "read and written"}[x.Role]
		out.Facts = append(out.Facts, fmt.Sprintf("%s: %s[%s], %s, row-major", x.Name, x.DType, strings.Join(x.Shape, ", "), role))
	}
	for _, x := range t.Scalars {
		out.Facts = append(out.Facts, fmt.Sprintf("%s: %s, %g", x.Name, x.DType, x.Value))
	}
	if t.Reference.Expr != "" {
		out.Facts = append(out.Facts, "reference, in float64: "+strings.Join(strings.Fields(t.Reference.Expr), " "))
	}
	var sizes []string
	for _, s := range c.Sizes() {
		sizes = append(sizes, s.String())
	}
	out.Facts = append(out.Facts, "timed sizes: "+strings.Join(sizes, "; "),
		fmt.Sprintf("an element passes when |out - reference| <= %g + %g |reference|; one that fails is enough to refuse a kernel", t.Eval.ATol, t.Eval.RTol))
	if t.Work.FLOPs != "" || t.Work.Bytes != "" {
		out.Facts = append(out.Facts, fmt.Sprintf("work of one call: %s flops, %s bytes", orUnknown(t.Work.FLOPs), orUnknown(t.Work.Bytes)))
	}
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func ruleText(c *scheduler.Campaign) []string {
	t := c.Task
	out := []string{"any size within the stated ranges must come out right, odd and prime ones too: no branch on the timed sizes"}
	if c.Target == harness.TargetCPU {
		out = append(out, "C11 with OpenMP, in one file: `void NAME(args)` for every launch; arguments are the tensors as pointers, dims as int, scalars in their type",
			"no heap, no files, no threads but OpenMP's, no state from call to call, no clock")
	} else {
		out = append(out, `device code only, one file: extern "C" __global__ functions; no host code, no launch code`,
			"arguments are the tensors as pointers, dims as int, scalars in their type; no device heap, no writable globals, no clock reads")
		if spec, ok := t.Target(c.Target); ok && spec.MaxRegisters > 0 {
			out = append(out, fmt.Sprintf("at most %d registers a thread", spec.MaxRegisters))
		}
	}
	if spec, ok := t.Target(c.Target); ok && spec.FastMath == harness.FastMathOff {
		out = append(out, "fast math is off and stays off")
	}
	if len(t.Rules.Forbid) > 0 {
		out = append(out, "forbidden: "+strings.Join(t.Rules.Forbid, ", "))
	}
	if t.Rules.MaxSizeRegression > 0 {
		out = append(out, fmt.Sprintf("no timed size may be more than %.0f %% slower than the baseline or the best so far", 100*t.Rules.MaxSizeRegression))
	}
	return out
}

// example is a small structure file of the form that is wanted.
func example(c *scheduler.Campaign) string {
	kernel, args := "NAME", []string{}
	if l := c.Task.DefaultLaunch; l != nil {
		kernel, args = l.Kernel, l.Args
	} else {
		for _, x := range c.Task.Tensors {
			args = append(args, x.Name)
		}
		args = append(args, c.Task.Dims...)
	}
	launch := fmt.Sprintf("  - kernel: %s_NAME\n", kernel)
	code := fmt.Sprintf("void %s_NAME(...) { ... }\n", kernel)
	if c.Target != harness.TargetCPU {
		dim := "1"
		if len(c.Task.Dims) > 0 {
			dim = c.Task.Dims[0]
		}
		launch += fmt.Sprintf("    grid: [\"ceil_div(%s, TILE)\"]\n    block: [256]\n    shared_bytes: 0\n", dim)
		code = fmt.Sprintf("extern \"C\" __global__ void %s_NAME(...) { ... }\n", kernel)
	}
	return "/* ridgepoint\ndirection: name-of-the-idea\nlaunch:\n" + launch + "    args: [" + strings.Join(args, ", ") + "]\nparams:\n  TILE: {values: [16, 32, 64]}\n" +
		"constraints: [\"TILE <= 64\"]\ndefault: {TILE: 32}\n*/\n" + code
}

func directionText(v View) []string {
	count, told, best := map[string]int{}, map[string]int{}, map[string]float64{}
	for i := range v.State.Structures {
		st := &v.State.Structures[i]
		count[st.Direction]++
		told[st.Direction] += st.Told
		if st.Best > 0 && (best[st.Direction] == 0 || st.Best < best[st.Direction]) {
			best[st.Direction] = st.Best
		}
	}
	var out []string
	for _, name := range sortedKeys(count) {
		line := fmt.Sprintf("%s: %d structures", name, count[name])
		switch {
		case best[name] > 0:
			line += fmt.Sprintf(", best at %.3g of the baseline's time", best[name])
		case told[name] > 0:
			line += ", nothing that works yet"
		default:
			line += ", not measured yet"
		}
		if d := v.State.Directions[name]; d != nil && d.Paused {
			line += fmt.Sprintf("; paused after %d failures in a row: propose nothing more in it", d.Consecutive)
		}
		out = append(out, line)
	}
	return out
}

// failureText tells what failed in a direction, or in all of them, the latest first.
func (f *findings) failureText(v View, direction string) []string {
	type line struct {
		at   float64
		text string
	}
	var lines []line
	for _, s := range f.structures {
		if direction != "" && s.direction != direction {
			continue
		}
		for _, x := range s.failures {
			text := fmt.Sprintf("%s: %s: %s", s.name, x.fault, first(x.reason, 200))
			if len(x.config) > 0 {
				text += " (" + assignment(x.config) + ")"
			}
			lines = append(lines, line{float64(x.seq), text})
		}
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i].at > lines[j].at })
	var out []string
	seen := map[string]bool{}
	for i := len(v.State.Drafts.Ended) - 1; i >= 0 && len(out) < shownFailures/2; i-- {
		if d := v.State.Drafts.Ended[i]; d.Status == scheduler.DraftDuplicate || direction == "" || d.Direction == direction {
			out = append(out, fmt.Sprintf("%s: %s: %s", d.Name, d.Status, first(d.Reason, 200)))
		}
	}
	for _, l := range lines {
		if key := l.text; !seen[key] && len(out) < shownFailures {
			seen[key] = true
			out = append(out, l.text)
		}
	}
	return out
}

// expectationText compares what models expected of their drafts with what came, the latest first.
func expectationText(v View) []string {
	var out []string
	for i := len(v.State.Drafts.Taken) - 1; i >= 0 && len(out) < shownExpectations; i-- {
		t := &v.State.Drafts.Taken[i]
		st := v.State.Structure(t.Structure)
		if t.Draft.Expected == 0 || t.Before == 0 || st.Told == 0 {
			continue
		}
		came := "it does not work"
		if st.Best > 0 {
			came = fmt.Sprintf("%.2f after %d configurations", st.Best/t.Before, st.Asked)
		}
		out = append(out, fmt.Sprintf("%s (%s): expected %.2f of the run time of the best then, reached %s", t.Draft.Name, first(t.Draft.Change, 120), t.Draft.Expected, came))
	}
	return out
}

// Calibration is how far expectations were off: the mean of ln(reached/expected) over drafts that work, and their number.
func Calibration(s *decide.State) (meanLog float64, n int) {
	for i := range s.Drafts.Taken {
		t := &s.Drafts.Taken[i]
		if st := s.Structure(t.Structure); t.Draft.Expected > 0 && t.Before > 0 && st.Best > 0 {
			meanLog += math.Log(st.Best / t.Before / t.Draft.Expected)
			n++
		}
	}
	if n > 0 {
		meanLog /= float64(n)
	}
	return meanLog, n
}

func first(s string, runes int) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > runes {
		return string(r[:runes]) + "..."
	}
	return s
}

// point reads a point's values as the structure's parameters have them; the others are at their defaults.
func point(st *harness.Structure, values map[string]string) (harness.Configuration, error) {
	c := harness.Configuration{}
	for name, v := range st.Default {
		c[name] = v
	}
	for _, name := range sortedKeys(values) {
		name, v, err := task.ParseAssignment(st, name+"="+values[name])
		if err != nil {
			return nil, err
		}
		c[name] = v
	}
	return c, nil
}
