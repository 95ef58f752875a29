package proposer

import (
	"context"
	"fmt"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/llm"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// Preview is the request that would be sent now, with what is asked and what was left out for want of room.
type Preview struct {
	Ask     scheduler.Ask `json:"ask"`
	Version string        `json:"prompt_version"`
	Hash    string        `json:"hash"`
	Tokens  int           `json:"tokens"`
	Dropped []string      `json:"dropped,omitempty"`
	Request *llm.Request  `json:"request"`
}

// Look writes the request that a campaign's author would get now. step, if not empty, is asked for in place of the one that is due.
func Look(ctx context.Context, store *memory.Store, v View, step string) (*Preview, error) {
	var f findings
	if err := f.read(ctx, store, v.Campaign.ID); err != nil {
		return nil, err
	}
	next, err := f.next(v)
	if err != nil {
		return nil, err
	}
	if step != "" && step != next.ask.Step {
		if next, err = f.forced(v, step); err != nil {
			return nil, err
		}
	}
	r, dropped, err := next.situation.Author()
	if err != nil {
		return nil, err
	}
	r.ID = fmt.Sprintf("draft-%d/1", v.State.Drafts.Last+1)
	return &Preview{Ask: next.ask, Version: propose.PromptVersion, Hash: r.Hash(), Tokens: r.PromptTokens(), Dropped: dropped, Request: r}, nil
}

// forced is a step that a person wants to see.
func (f *findings) forced(v View, step string) (*plan, error) {
	if err := propose.Step(step).Validate(); err != nil {
		return nil, err
	}
	best := f.ranked(v)
	ask := scheduler.Ask{Step: step}
	need := map[string]int{"refine": 1, "suggest": 1, "repair": 1, "cross": 2}[step]
	if len(best) < need {
		return nil, fmt.Errorf("step %s needs %d measured structures, the campaign has %d", step, need, len(best))
	}
	switch {
	case step == string(propose.StepNew):
		ask.Exploring = true
	case need == 2:
		ask.Parents = f.pair(v, best)
	default:
		ask.Parents = best[:1]
	}
	if len(ask.Parents) > 0 {
		ask.Direction = v.State.Structure(ask.Parents[0]).Direction
	}
	return &plan{ask: ask, situation: f.situation(v, best, &ask)}, nil
}

// Regenerate asks a model to write a campaign's winner again from what the campaign remembers of it (its idea, its parameters, its speed),
// without its source. A broken reply goes back twice. It returns the candidate with the winner's parameter values where the new structure
// has parameters of those names, and what was spent.
func Regenerate(ctx context.Context, client llm.Client, store *memory.Store, v View, winner *harness.Candidate) (*harness.Candidate, llm.Spent, error) {
	var f findings
	var spent llm.Spent
	if err := f.read(ctx, store, v.Campaign.ID); err != nil {
		return nil, spent, err
	}
	number := 0
	for i, st := range v.Structures {
		if st.Digest == winner.Structure.Digest {
			number = i + 1
		}
	}
	if number == 0 {
		return nil, spent, fmt.Errorf("the winner's structure %s is not in the campaign", winner.Structure.Name)
	}
	e := f.exhibit(v, number)
	e.Source, e.Best = "", assignment(winner.Configuration)
	for _, t := range v.State.Drafts.Taken {
		if t.Structure == number {
			e.Learned = append([]string{"what was done: " + t.Draft.Change, "why: " + t.Draft.Why}, e.Learned...)
		}
	}
	ask := scheduler.Ask{Step: string(propose.StepRegenerate)}
	s := f.situation(v, nil, &ask)
	s.Parents, s.Others = []propose.Exhibit{e}, nil
	request, _, err := s.Author()
	if err != nil {
		return nil, spent, err
	}
	known := Known(v.Campaign.Task, v.Campaign.Target)
	known.Step = propose.StepNew
	for round := 1; ; round++ {
		request.ID = fmt.Sprintf("regenerate/%d", round)
		reply, err := client.Complete(ctx, request)
		if err != nil {
			return nil, spent, err
		}
		total := reply.Usage.Add(reply.Wasted)
		spent = spent.Add(llm.Spent{Calls: int64(reply.Calls), Tokens: int64(total.Total()), MicroUSD: reply.CostMicroUSD})
		d, complaints := propose.Parse(reply.Text, reply.Truncated(), known)
		if len(complaints) == 0 && d.Kind == propose.KindStructure {
			c, err := candidate(v, d.Source, winner)
			return c, spent, err
		}
		if round > complaintRounds {
			var texts []string
			for _, c := range complaints {
				texts = append(texts, c.String())
			}
			return nil, spent, fmt.Errorf("the model did not write a whole structure in %d rounds: %s", round, strings.Join(texts, "; "))
		}
		request = propose.Again(request, reply.Text, complaints)
	}
}

// candidate is a regenerated source with the winner's values where they fit.
func candidate(v View, source string, winner *harness.Candidate) (*harness.Candidate, error) {
	st, err := task.ParseStructure("regenerated", source, v.Campaign.Task, v.Campaign.Target)
	if err != nil {
		return nil, err
	}
	config := harness.Configuration{}
	for name, d := range st.Default {
		config[name] = d
		if w, ok := winner.Configuration[name]; ok {
			config[name] = w
		}
	}
	if c, err := task.NewCandidate(v.Campaign.Task, st, config); err == nil {
		return c, nil
	}
	return task.NewCandidate(v.Campaign.Task, st, nil) // the values do not fit this structure's constraints
}
