package main

import (
	"context"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
)

// harnessConfig is what a harness is opened for.
type harnessConfig struct {
	Task   *harness.Task
	Target harness.Target
	Setup  bool // install what is missing
	Log    zerolog.Logger
}

// openHarness opens what judges kernels on this machine, and returns how to close it.
func (env environment) openHarness(ctx context.Context, c harnessConfig) (harness.Harness, func() error, error) {
	if env.harnessFunc != nil {
		return env.harnessFunc(ctx, c)
	}
	tools := evalCmd{Setup: c.Setup}
	if err := tools.prepare(ctx, env, c.Target); err != nil {
		return nil, nil, err
	}
	j, err := newJudge(env, tools.compiler(env), false)
	if err != nil {
		return nil, nil, err
	}
	return j, j.Close, nil
}
