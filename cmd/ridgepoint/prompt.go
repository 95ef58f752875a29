package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ridgepoint/llm"
	"ridgepoint/llm/cassette"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/proposer"
)

// promptCmd shows what the author would be asked now.
type promptCmd struct {
	Campaign  string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	Step      string `help:"Another step than the one that is due: new_direction, refine, cross, repair or suggest."`
	Exchanges bool   `help:"Instead, write every exchange so far as a recording for run --llm replay:FILE."`
	JSON      bool   `name:"json" help:"Print one JSON object."`
	dataFlag
}

// Run prints the prompt, or the exchanges.
func (c *promptCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	v, err := viewOf(ctx, store, c.Campaign, func(_ *scheduler.Event, data any, _ *decide.State) {
		if x, ok := data.(*scheduler.Exchange); ok && c.Exchanges && x.Reply != nil {
			line, merr := json.Marshal(cassette.New(x.Request, x.Reply, nil, llm.Scrubber{}))
			_, werr := fmt.Fprintf(env.stdout, "%s\n", line)
			err = errors.Join(err, merr, werr)
		}
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if c.Exchanges {
		return nil
	}
	if v.Campaign.Settings.LLM == nil { // nobody is asked in this campaign: this is what would be
		v.Campaign.Settings.LLM = &scheduler.LLMSettings{Blend: "auto", PromptTokens: 24000, Schema: v.Campaign.Task.Agent.FeedbackSchema, AnalystEvery: 5}
	}
	p, err := proposer.Look(ctx, store, proposer.View{Campaign: v.Campaign, State: v.State, Structures: v.Structures}, c.Step)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if c.JSON {
		return writeJSON(env.stdout, p)
	}
	for _, m := range p.Request.Messages {
		if _, err := fmt.Fprintf(env.stdout, "[%s]\n%s\n", m.Role, m.Text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(env.stderr, "step %s, prompt %s, about %d tokens, hash %.12s, left out: %v\n", p.Ask.Step, p.Version, p.Tokens, p.Hash, p.Dropped)
	return err
}
