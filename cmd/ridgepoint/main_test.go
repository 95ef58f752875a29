package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/llm/pool"
	"ridgepoint/scheduler"
)

// TestHiddenVariables wants a hidden variable to be read as before, as often as it is asked for, and to be gone from what children
// inherit.
func TestHiddenVariables(t *testing.T) {
	t.Setenv("RIDGEPOINT_TEST_HIDDEN", "a key")
	var own variables
	env := environment{getenv: own.get, hideFunc: own.hide}
	for range 2 {
		env.hide("", "RIDGEPOINT_TEST_HIDDEN", "RIDGEPOINT_TEST_NOT_SET")
		if got := env.getenv("RIDGEPOINT_TEST_HIDDEN"); got != "a key" {
			t.Errorf("%q", got)
		}
		if _, ok := os.LookupEnv("RIDGEPOINT_TEST_HIDDEN"); ok {
			t.Error("children would inherit it")
		}
	}
	if env.getenv("RIDGEPOINT_TEST_NOT_SET") != "" || env.getenv("PATH") != os.Getenv("PATH") {
		t.Error("other variables changed")
	}
}

// TestSecretsAreHidden wants the password of Redis, where it may stand, to be hidden when it is read, and the keys of models before the
// first compiler or card is looked for. What drivers read is left to them.
func TestSecretsAreHidden(t *testing.T) {
	var hidden []string
	env := environment{hideFunc: func(name string) { hidden = append(hidden, name) }, getenv: func(name string) string {
		return map[string]string{"RIDGEPOINT_REDIS": "redis://me:word@localhost:1/0", "RIDGEPOINT_REDIS_PASSWORD": "word"}[name]
	}}
	c, err := redisFlags{}.config(env)
	if err != nil || c.Password != "word" || c.Redis != "redis://me:word@localhost:1/0" {
		t.Fatalf("%+v, %v", c, err)
	}
	if slices.Sort(hidden); !slices.Equal(hidden, []string{"RIDGEPOINT_REDIS", "RIDGEPOINT_REDIS_PASSWORD"}) {
		t.Errorf("hidden %q", hidden)
	}
	campaign := &scheduler.Campaign{Target: harness.TargetCPU, Task: &harness.Task{}}
	program := pool.Model{}
	program.Env = []string{"PROGRAM_KEY", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"}
	campaign.Settings.LLM = &scheduler.LLMSettings{}
	campaign.Settings.LLM.Pool.Models = []pool.Model{{KeyEnv: "MODEL_KEY"}, {HeaderEnv: map[string]string{"X-Key": "HEADER_KEY"}}, program}
	enough := errors.New("enough")
	var before []string
	hidden, env.harnessFunc = nil, func(context.Context, harnessConfig) (harness.Harness, func() error, error) {
		before = slices.Sorted(slices.Values(hidden))
		return nil, nil, enough
	}
	if _, _, err := ownWorker(t.Context(), env, []*scheduler.Campaign{campaign}, t.TempDir(), true, false, zerolog.Nop()); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if !slices.Equal(before, []string{"HEADER_KEY", "MODEL_KEY", "PROGRAM_KEY"}) {
		t.Errorf("hidden before anything is started: %q", before)
	}
}
