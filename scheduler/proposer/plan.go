package proposer

import (
	"sort"

	"ridgepoint/harness"
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
