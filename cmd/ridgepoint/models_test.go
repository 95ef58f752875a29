package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs"
	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/cassette"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

// storedNight writes a small campaign's log: a draft asked for, taken, tried and measured. It returns the store's folder and the id.
func storedNight(t *testing.T) (dir, id string) {
	t.Helper()
	cfg, err := configs.Load("softmax-cpu-models")
	if err != nil {
		t.Fatal(err)
	}
	campaign, structures, err := newCampaign(&cfg.Campaign)
	if err != nil {
		t.Fatal(err)
	}
	id, dir = campaign.ID, t.TempDir()
	store, err := memory.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	st := structures[0]
	ask := scheduler.Ask{Step: "refine", Direction: st.Direction, Parents: []int{1}}
	request := &llm.Request{ID: "draft-1/1", For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: "write one"}}}
	score := -0.5
	batch := &memory.Batch{Campaigns: []scheduler.Campaign{*campaign}, Structures: []memory.StructureRow{{Campaign: id, Number: 1, Structure: st}}}
	for i, e := range []struct {
		kind  scheduler.EventKind
		trial int64
		data  any
	}{
		{scheduler.EventStructure, 0, &scheduler.Added{Structure: 1, Name: st.Name, Digest: st.Digest, Direction: st.Direction, Origin: "library"}},
		{scheduler.EventPhase, 0, &scheduler.Phase{Phase: scheduler.PhaseOpened}},
		{scheduler.EventExchange, 0, scheduler.NewExchange(1, 1, ask, request, &llm.Reply{Text: "BLOCK=64", Model: "m", Calls: 1, CostMicroUSD: 42, Usage: llm.Usage{PromptTokens: 10, CompletionTokens: 5}}, nil, time.Now())},
		{scheduler.EventDraft, 0, &scheduler.Draft{Number: 1, Name: "draft-1", Ask: ask, Status: scheduler.DraftPoint, Structure: 1, Model: "m", PromptHash: "abcdef", Rounds: 1, Spent: llm.Spent{Calls: 1, Tokens: 15, MicroUSD: 42}, Change: "a wider block", Expected: 0.8}},
		{scheduler.EventPlanned, 1, &scheduler.Trial{Purpose: scheduler.PurposeSearch, Point: scheduler.Point{Structure: 1, Configuration: st.Default, ID: "c1"}, Asked: true, Draft: 1, Plan: harness.Plan{Stage: harness.StageSearch}, Why: map[string]float64{"per_second": 0.0123}}},
		{scheduler.EventOutcome, 1, &scheduler.Summary{Attempt: 1, Fault: harness.FaultNone, Objective: 0.5, Score: &score, DeviceSeconds: 1.5, HeldSeconds: 2}},
	} {
		ev, err := scheduler.NewEvent(id, e.kind, e.trial, e.data)
		if err != nil {
			t.Fatal(err)
		}
		ev.Seq, ev.Time = int64(i+1), time.Now().UTC()
		batch.Events = append(batch.Events, ev)
	}
	if err := store.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, id
}

func ctlRun(t *testing.T, dir string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), environment{args: append(args, "--data", dir), getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestCommandsOnDrafts(t *testing.T) {
	t.Parallel()
	dir, id := storedNight(t)
	for _, tc := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"prompt", id}, exitOK, []string{"# Task softmax_2d", "# What to do now", "input: float32[rows, cols]"}},
		{[]string{"prompt", id, "--step", "refine"}, exitOK, []string{"Improve blocked", "softmax_blocked"}},
		{[]string{"prompt", id, "--step", "dance"}, exitUsage, []string{"not known"}},
		{[]string{"why", "1", id}, exitOK, []string{"per_second", "0.0123", "draft-1, asked to refine by m from [blocked]", "a wider block", "score -0.5", "$0.0000"}},
		{[]string{"why", "9", id}, exitUsage, []string{"no trial 9"}},
		{[]string{"compare", id, id}, exitOK, []string{"best at 1 evaluations", "0.5", "tokens", "15"}},
		{[]string{"ctl", id, "pin", "nothing"}, exitUsage, []string{"there are blocked"}},
		{[]string{"ctl", id, "budget"}, exitUsage, []string{"--tokens"}},
		{[]string{"ctl", id, "pause", "--wait", "1ms"}, exitOK, []string{"it counts from the next resume on"}},
		{[]string{"ctl", id, "budget", "--tokens", "500", "--wait", "1ms"}, exitOK, []string{"budget is left"}},
	} {
		code, out, errs := ctlRun(t, dir, tc.args...)
		if code != tc.code {
			t.Errorf("%v: exit code %d, want %d: %s", tc.args, code, tc.code, errs)
		}
		for _, s := range tc.says {
			if !strings.Contains(out+errs, s) {
				t.Errorf("%v does not say %q:\n%s%s", tc.args, s, out, errs)
			}
		}
	}
	words, err := mailbox{dir, id}.words()
	if err != nil || len(words) != 2 || words[0].control.Action != scheduler.ControlPause || words[1].control.Budget == nil || words[1].control.Budget.Tokens != 500 {
		t.Errorf("the mailbox holds %+v, %v", words, err)
	}
}

func TestExchangesMakeARecording(t *testing.T) {
	t.Parallel()
	dir, id := storedNight(t)
	code, out, errs := ctlRun(t, dir, "prompt", id, "--exchanges")
	if code != exitOK {
		t.Fatal(errs)
	}
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	player, err := cassette.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := player.Complete(t.Context(), &llm.Request{ID: "draft-1/1", For: llm.Author})
	if err != nil || reply.Text != "BLOCK=64" {
		t.Errorf("played %+v, %v", reply, err)
	}
	var k configs.Campaign
	if err := overrideLLM(&k, "replay:"+path); err != nil || k.LLM.Replay != path {
		t.Errorf("--llm replay: %v, %+v", err, k.LLM)
	}
	if err := overrideLLM(&k, "gpt"); err == nil || !strings.Contains(err.Error(), "replay:FILE") {
		t.Errorf("--llm gpt: %v", err)
	}
}

func TestCompareJSON(t *testing.T) {
	t.Parallel()
	dir, id := storedNight(t)
	code, out, errs := ctlRun(t, dir, "compare", id+","+id, id, "--json")
	var got struct {
		Groups []compared `json:"groups"`
	}
	if code != exitOK || json.Unmarshal([]byte(out), &got) != nil || len(got.Groups) != 2 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if a, b := got.Groups[0], got.Groups[1]; a.Tokens.Interval == nil || b.Tokens.Interval != nil || a.Tokens.Mean != 15 || a.Device.Mean != 1.5 || b.ByEvaluation["1"].Mean != 0.5 {
		t.Errorf("groups = %+v", got.Groups)
	}
}
