package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/cassette"
	"ridgepoint/llm/pool"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/proposer"
)

// regenerated asks the models of a campaign for its winner again.
func regenerated(ctx context.Context, env environment, store *memory.Store, w *winning) (*harness.Candidate, error) {
	v, err := viewOf(ctx, store, w.campaign.ID)
	if err != nil {
		return nil, err
	}
	settings := v.Campaign.Settings.LLM
	if settings == nil || (len(settings.Pool.Models) == 0 && settings.Replay == "") {
		return nil, &exitError{exitUsage, errors.New("--regenerate: the campaign has no model; only what a model wrote down can be written again by one")}
	}
	var client llm.Client
	if settings.Replay != "" {
		client, err = cassette.Open(settings.Replay)
	} else {
		client, err = pool.New(settings.Pool, v.Campaign.Seed, pool.Ledger{Campaign: v.State.Drafts.Spent, Days: v.State.Drafts.Days},
			pool.Hooks{EnvFunc: env.getenv, ReadFileFunc: os.ReadFile, NowFunc: time.Now, SandboxFunc: confineModel(zerolog.New(env.stderr).Level(zerolog.WarnLevel))})
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	c, spent, err := proposer.Regenerate(ctx, client, store, proposer.View{Campaign: v.Campaign, State: v.State, Structures: v.Structures}, w.candidate)
	if err != nil {
		return nil, fmt.Errorf("regenerate the winner: %w", err)
	}
	_, err = fmt.Fprintf(env.stderr, "the model wrote %d bytes again, for %d tokens, $%.4f\n", len(c.Structure.Source), spent.Tokens, float64(spent.MicroUSD)/1e6)
	return c, err
}
