package pool_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ridgepoint/llm"
	"ridgepoint/llm/pool"
	"ridgepoint/llm/scripted"
)

type bundle struct {
	pool    *pool.Pool
	mu      sync.Mutex
	now     time.Time
	arrived []string
}

// setup makes a pool whose clock moves only when it sleeps. Each model's script is served at its own address.
func setup(t *testing.T, c pool.Config, ledger pool.Ledger, scripts map[string]scripted.Script) *bundle {
	t.Helper()
	for i, m := range c.Models {
		if s, ok := scripts[m.Name]; ok {
			server, err := scripted.New(&s, llm.Secret{})
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(server)
			t.Cleanup(web.Close)
			c.Models[i].BaseURL, c.Models[i].Model = web.URL, "scripted"
			if m.Retries == nil {
				c.Models[i].Retries = new(int)
			}
		}
	}
	b := &bundle{now: time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)}
	p, err := pool.New(c, 1, ledger, pool.Hooks{
		EnvFunc: func(name string) string {
			return map[string]string{"PATH": "/usr/bin:/bin", "KEY": "sk-planted-abcdef"}[name]
		},
		ReadFileFunc: func(string) ([]byte, error) { return nil, errors.New("no files here") },
		NowFunc:      func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now },
		SleepFunc: func(_ context.Context, d time.Duration) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.now = b.now.Add(d)
			return nil
		},
		ArrivedFunc: func(id string, r *llm.Reply) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.arrived = append(b.arrived, fmt.Sprintf("%s %d", id, r.CostMicroUSD))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.pool = p
	return b
}

func ask(n int) *llm.Request {
	return &llm.Request{ID: fmt.Sprintf("draft-%d/1", n), For: llm.Author, MaxTokens: 100, Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
}

func usage(prompt, completion int) *scripted.Usage {
	return &scripted.Usage{PromptTokens: prompt, CompletionTokens: completion}
}

func TestModelsAreDrawnByWeight(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "small", Weight: 1}, {Name: "big", Weight: 3}}}, pool.Ledger{}, map[string]scripted.Script{
		"small": {Rules: []scripted.Rule{{Text: "s"}}}, "big": {Rules: []scripted.Rule{{Text: "b"}}}})
	got := map[string]int{}
	for i := range 200 {
		reply, err := b.pool.Complete(t.Context(), ask(i))
		if err != nil {
			t.Fatal(err)
		}
		got[reply.Model]++
	}
	if got["big"] < 125 || got["big"] > 175 { // 150 ± 4 standard deviations of a binomial
		t.Errorf("draws = %v, want about 50 and 150", got)
	}
	first, _ := b.pool.Complete(t.Context(), ask(3))
	again, _ := b.pool.Complete(t.Context(), ask(3))
	if first.Model != again.Model {
		t.Error("the same request draws different models")
	}
}

func TestFailingModelIsSetAside(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "bad", Weight: 1000}, {Name: "good", Weight: 0.001}}}, pool.Ledger{}, map[string]scripted.Script{
		"bad": {Rules: []scripted.Rule{{Times: 1, Status: 503}, {Text: "back"}}}, "good": {Rules: []scripted.Rule{{Text: "g"}}}})
	for i := range 2 {
		reply, err := b.pool.Complete(t.Context(), ask(i))
		if err != nil || reply.Model != "good" {
			t.Fatalf("call %d: %v, %v; want the other model", i, reply, err)
		}
	}
	b.mu.Lock()
	b.now = b.now.Add(time.Minute)
	b.mu.Unlock()
	if reply, err := b.pool.Complete(t.Context(), ask(2)); err != nil || reply.Model != "bad" {
		t.Errorf("after a minute: %v, %v; want the first model again", reply, err)
	}
}

func TestAllModelsFailing(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "a"}, {Name: "b"}}}, pool.Ledger{}, map[string]scripted.Script{
		"a": {Rules: []scripted.Rule{{Status: 429, RetryAfter: "40"}}}, "b": {Rules: []scripted.Rule{{Status: 500}}}})
	for i := range 2 { // the second time both are set aside and nobody is asked
		_, err := b.pool.Complete(t.Context(), ask(i))
		var failed *llm.Error
		if !errors.As(err, &failed) || failed.RetryAfter < 15*time.Second {
			t.Errorf("err = %v, want an *llm.Error that says how long to wait", err)
		}
	}
}

func TestBudgetStopsBeforeTheCall(t *testing.T) {
	t.Parallel()
	script := map[string]scripted.Script{"m": {Rules: []scripted.Rule{{Text: "ok", Usage: usage(20, 80)}}}}
	models := []pool.Model{{Name: "m", Price: llm.Price{Prompt: 1, Completion: 10}}}
	b := setup(t, pool.Config{Models: models, Budget: llm.Budget{Tokens: 1000}}, pool.Ledger{Campaign: llm.Spent{Calls: 7, Tokens: 600, MicroUSD: 5}}, script)
	n := 0
	for ; n < 20; n++ {
		if _, err := b.pool.Complete(t.Context(), ask(n)); err != nil {
			if !errors.Is(err, llm.ErrBudget) {
				t.Fatal(err)
			}
			break
		}
	}
	spent, _ := b.pool.Spent()
	if n != 3 || spent.Tokens != 900 || spent.Calls != 10 || spent.MicroUSD != 5+3*820 { // a fourth call may take 10 + 100 tokens: over
		t.Errorf("%d calls, spent %+v; want 3 calls, 900 tokens and 2465 micro-dollars", n, spent)
	}
	if err := b.pool.SetBudget(llm.Budget{Tokens: 2000}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool.Complete(t.Context(), ask(99)); err != nil {
		t.Errorf("after raising the budget: %v", err)
	}
	if len(b.arrived) != 4 || b.arrived[0] != "draft-0/1 820" {
		t.Errorf("arrived = %v, want 4 replies with their costs", b.arrived)
	}
}

func TestDayBudgetReopensAtMidnight(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "m"}}, Budget: llm.Budget{TokensPerDay: 200}},
		pool.Ledger{Days: map[string]llm.Spent{"2026-01-31": {Tokens: 150}}}, map[string]scripted.Script{"m": {Rules: []scripted.Rule{{Text: "ok"}}}})
	if _, err := b.pool.Complete(t.Context(), ask(1)); !errors.Is(err, llm.ErrBudget) {
		t.Errorf("err = %v, want the day's budget to stop it", err)
	}
	b.mu.Lock()
	b.now = b.now.Add(2 * time.Hour)
	b.mu.Unlock()
	if _, err := b.pool.Complete(t.Context(), ask(2)); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestConcurrentCallsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "m"}}, Budget: llm.Budget{Tokens: 1000}}, pool.Ledger{},
		map[string]scripted.Script{"m": {Rules: []scripted.Rule{{Text: "ok", Usage: usage(10, 100)}}}})
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() { _, _ = b.pool.Complete(context.Background(), ask(i)) }) // most are refused: that is the point
	}
	wg.Wait()
	if spent, _ := b.pool.Spent(); spent.Tokens > 1000 || spent.Calls == 0 {
		t.Errorf("spent %+v, want at most 1000 tokens", spent)
	}
}

func TestRatesDelayCalls(t *testing.T) {
	t.Parallel()
	script := map[string]scripted.Script{"m": {Rules: []scripted.Rule{{Text: "ok", Usage: usage(10, 590)}}}}
	for _, tc := range []struct {
		name  string
		model pool.Model
		least time.Duration
	}{
		{"requests", pool.Model{Name: "m", RequestsPerMinute: 6}, 40 * time.Second}, // 10 calls, 6 at once, 10 s apart
		{"tokens", pool.Model{Name: "m", TokensPerMinute: 1200}, 3 * time.Minute},   // 10 calls of 600 tokens, 1200 at once
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, pool.Config{Models: []pool.Model{tc.model}}, pool.Ledger{}, script)
			started := b.now
			for i := range 10 {
				if _, err := b.pool.Complete(t.Context(), ask(i)); err != nil {
					t.Fatal(err)
				}
			}
			if took := b.now.Sub(started); took < tc.least || took > 2*tc.least {
				t.Errorf("10 calls took %s, want %s to twice that", took, tc.least)
			}
		})
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Parallel()
	ok := pool.Model{Name: "m", BaseURL: "http://localhost/v1", Model: "x"}
	for says, c := range map[string]pool.Config{
		"give every model a name": {Models: []pool.Model{{}}},
		"two models are named m":  {Models: []pool.Model{ok, ok}},
		"author or analyst":       {Models: []pool.Model{{Name: "m", For: "critic", BaseURL: "http://h/v1", Model: "x"}}},
		"not both":                {Models: []pool.Model{{Name: "m", BaseURL: "http://h/v1", Model: "x", Command: []string{"cat"}}}},
		"process list":            {Models: []pool.Model{{Name: "m", Command: []string{"ask", "--api-key=abc"}}}},
		"dollars per million":     {Models: []pool.Model{{Name: "m", BaseURL: "http://h/v1", Model: "x", Price: llm.Price{Prompt: -1}}}},
		"limits are positive":     {Budget: llm.Budget{Tokens: -5}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Validate: %v, want %q", err, says)
		}
	}
	h := pool.Hooks{EnvFunc: func(string) string { return "" }, ReadFileFunc: func(string) ([]byte, error) { return nil, errors.New("no such file") }, NowFunc: time.Now}
	missing := ok
	missing.KeyEnv = "MY_KEY"
	if _, err := pool.New(pool.Config{Models: []pool.Model{missing}}, 1, pool.Ledger{}, h); err == nil || !strings.Contains(err.Error(), "MY_KEY is not set") {
		t.Errorf("New without the key: %v", err)
	}
}

func TestProgramAsModel(t *testing.T) {
	t.Parallel()
	b := setup(t, pool.Config{Models: []pool.Model{{Name: "cat", Command: []string{"cat"}}}}, pool.Ledger{}, nil)
	reply, err := b.pool.Complete(t.Context(), ask(1))
	if err != nil || reply.Text != "hello" || !reply.Usage.Estimated || len(b.arrived) != 1 {
		t.Errorf("reply %+v, err %v, arrived %v", reply, err, b.arrived)
	}
}

func TestPastedKeysAreRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	const key = "sk-planted-00112233445566778899"
	for name, m := range map[string]pool.Model{
		"as a variable":          {KeyEnv: key},
		"as a header's variable": {HeaderEnv: map[string]string{"api-key": key}},
		"as a file":              {KeyFile: key},
		"as a body field":        {Extra: map[string]any{"api_key": key}},
		"as a header":            {Headers: map[string]string{"Authorization": "Bearer " + key}},
		"in the address":         {BaseURL: "http://user:" + key + "@localhost/v1"},
	} {
		m.Name, m.Model = "m", "m"
		if m.BaseURL == "" {
			m.BaseURL = "http://localhost/v1"
		}
		err := pool.Config{Models: []pool.Model{m}}.Validate()
		if err == nil || strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "llm.models.m") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := pool.Model{Name: "m", Model: "m", BaseURL: "http://localhost/v1", KeyEnv: "MY_KEY", Extra: map[string]any{"max_completion_tokens": 5}}
	if err := (pool.Config{Models: []pool.Model{good}}).Validate(); err != nil {
		t.Error(err)
	}
}
