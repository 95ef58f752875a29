package proposer

import (
	"fmt"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/feedback"
	"ridgepoint/harness/profile"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
)

// The numbers of what a prompt shows.
const (
	shownOthers       = 3
	shownFailures     = 5
	shownExpectations = 6
	maxRepairs        = 1 // of one structure by a step of its own, after the two complaints that a reply may get
)

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
		s.Digest = f.digest(v, best[0])
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

// digest is what a profile says of a structure's incumbent, the slowest launch first; without one, what feedback folded away
// of its best report.
func (f *findings) digest(v View, number int) string {
	if x := f.structures[v.Structures[number-1].Digest]; x != nil && len(x.profile) > 0 {
		var all []profile.Digest
		for _, d := range x.profile {
			all = append(all, profile.Digest(d))
		}
		profile.Slowest(all)
		var b strings.Builder
		for i := range all {
			b.WriteString(all[i].Text())
		}
		return strings.TrimSpace(b.String())
	}
	if r := f.report(v, number); r != nil {
		return strings.Join(r.Detail, "\n")
	}
	return ""
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
