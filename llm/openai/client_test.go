package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/llm"
	"ridgepoint/llm/openai"
	"ridgepoint/llm/scripted"
)

const plantedKey = "sk-planted-0123456789abcdef"

type bundle struct {
	client *openai.Client
	server *scripted.Server
	slept  []time.Duration
}

// setup serves a script and returns a client of it whose pauses take no time.
func setup(t *testing.T, script scripted.Script, change func(*openai.Config)) *bundle {
	t.Helper()
	server, err := scripted.New(&script, llm.NewSecret(plantedKey))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	c := openai.Config{Name: "m", BaseURL: web.URL + "/v1", Model: "scripted", StallTimeout: 150 * time.Millisecond, Timeout: 5 * time.Second}
	if change != nil {
		change(&c)
	}
	b := &bundle{server: server}
	b.client, err = openai.New(c, openai.Credentials{Key: llm.NewSecret(plantedKey + "\n")}, openai.Hooks{
		SleepFunc:  func(_ context.Context, d time.Duration) error { b.slept = append(b.slept, d); return nil },
		JitterFunc: func() float64 { return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.client.Close() })
	return b
}

func request() *llm.Request {
	return &llm.Request{ID: "draft-1/1", For: llm.Author, Messages: []llm.Message{{Role: llm.System, Text: "be brief"}, {Role: llm.User, Text: "write a kernel"}}}
}

func ptr[T any](v T) *T { return &v }

func TestCompleteSurvivesBadServers(t *testing.T) {
	t.Parallel()
	good := scripted.Rule{Text: "héllo\n```c\nint x;\n```\n"}
	cases := []struct {
		name   string
		rules  []scripted.Rule
		change func(*openai.Config)
		calls  int
		slept  []time.Duration // nil: not looked at
	}{
		{"streamed", []scripted.Rule{good}, nil, 1, []time.Duration{}},
		{"whole", []scripted.Rule{good}, func(c *openai.Config) { c.Stream = ptr(false) }, 1, nil},
		{"one rune a chunk", []scripted.Rule{{Text: good.Text, ChunkBytes: 1}}, nil, 1, nil},
		{"429 with seconds", []scripted.Rule{{Times: 2, Status: 429, RetryAfter: "7"}, good}, nil, 3, []time.Duration{7350 * time.Millisecond, 7350 * time.Millisecond}},
		{"429 without", []scripted.Rule{{Times: 2, Status: 429}, good}, nil, 3, []time.Duration{375 * time.Millisecond, 750 * time.Millisecond}},
		{"5xx in turn", []scripted.Rule{{Times: 1, Status: 500}, {Times: 1, Status: 502, Body: "<html>bad gateway</html>", ContentType: "text/html"}, {Times: 1, Status: 503}, {Times: 1, Status: 529}, good}, nil, 5, nil},
		{"reset", []scripted.Rule{{Times: 1, Reset: true}, good}, nil, 2, nil},
		{"cut stream", []scripted.Rule{{Times: 1, Text: strings.Repeat("x", 4000), CutAfter: ptr(900)}, good}, nil, 2, nil},
		{"cut before any text", []scripted.Rule{{Times: 1, Text: "x", CutAfter: ptr(0)}, good}, nil, 2, nil},
		{"cut whole", []scripted.Rule{{Times: 1, Text: strings.Repeat("x", 4000), CutAfter: ptr(900)}, good}, func(c *openai.Config) { c.Stream = ptr(false) }, 2, nil},
		{"stalled stream", []scripted.Rule{{Times: 1, Text: strings.Repeat("x", 4000), StallAfter: ptr(900)}, good}, nil, 2, nil},
		{"stalled before any text", []scripted.Rule{{Times: 1, Text: "x", StallAfter: ptr(0)}, good}, nil, 2, nil},
		{"hanging headers", []scripted.Rule{{Times: 1, Delay: ptr(time.Minute)}, good}, nil, 2, nil},
		{"whole reply too slow", []scripted.Rule{{Times: 1, Delay: ptr(time.Minute)}, good}, func(c *openai.Config) { c.Stream = ptr(false); c.Timeout = 100 * time.Millisecond }, 2, nil},
		{"garbage", []scripted.Rule{{Times: 1, Body: "\x00\xff\x17not json"}, good}, nil, 2, nil},
		{"garbage event", []scripted.Rule{{Times: 1, Body: "data: {\"choices\": [}\n\n", ContentType: "text/event-stream"}, good}, nil, 2, nil},
		{"login page", []scripted.Rule{{Times: 1, Body: "<html>please sign in</html>", ContentType: "text/html"}, good}, nil, 2, nil},
		{"wrong type on a stream", []scripted.Rule{{Text: good.Text, ContentType: "text/plain"}}, nil, 1, nil},
		{"wrong type on json", []scripted.Rule{{Text: good.Text, ContentType: "text/html"}}, func(c *openai.Config) { c.Stream = ptr(false) }, 1, nil},
		{"no type", []scripted.Rule{{Text: good.Text, ContentType: "x"}}, nil, 1, nil},
		{"json to a stream request", []scripted.Rule{{Body: `{"choices":[{"message":{"content":"héllo\n` + "```c\\nint x;\\n```\\n" + `"},"finish_reason":"stop"}]}`}}, nil, 1, nil},
		{"content in parts", []scripted.Rule{{Body: `{"choices":[{"message":{"content":[{"type":"text","text":"héllo\n` + "```c\\n" + `"},{"type":"text","text":"int x;\n` + "```\\n" + `"}]},"finish_reason":"stop"}]}`}}, nil, 1, nil},
		{"crlf stream with comments", []scripted.Rule{{ContentType: "text/event-stream", Body: ": keep-alive\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u00e9llo\\n```c\\n\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other choice\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"int x;\\n```\\n\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]"}}, nil, 1, nil},
		{"no done", []scripted.Rule{{Text: good.Text, OmitDone: true}}, nil, 1, nil},
		{"error inside a stream", []scripted.Rule{{Times: 1, ContentType: "text/event-stream", Body: "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"}, good}, nil, 2, nil},
		{"empty reply", []scripted.Rule{{Times: 1, Text: " \n"}, good}, nil, 2, nil},
		{"stream_options refused", []scripted.Rule{{Times: 1, Status: 400, Body: `{"error":{"message":"unknown field stream_options"}}`}, good}, nil, 2, []time.Duration{}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, scripted.Script{Rules: tc.rules}, tc.change)
			reply, err := b.client.Complete(t.Context(), request())
			if err != nil {
				t.Fatalf("Complete: %v", err)
			}
			if reply.Text != good.Text {
				t.Errorf("text = %q, want %q", reply.Text, good.Text)
			}
			if reply.FinishReason != "stop" || reply.Calls != tc.calls || reply.Model != "m" {
				t.Errorf("finish %q, calls %d, model %q; want stop, %d, m", reply.FinishReason, reply.Calls, reply.Model, tc.calls)
			}
			if reply.Usage.PromptTokens <= 0 || reply.Usage.CompletionTokens <= 0 {
				t.Errorf("usage = %+v, want positive counts", reply.Usage)
			}
			if tc.slept != nil && cmp.Diff(tc.slept, append([]time.Duration{}, b.slept...)) != "" {
				t.Errorf("slept %v, want %v", b.slept, tc.slept)
			}
		})
	}
}

func TestCompleteGivesUp(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		rule   scripted.Rule
		change func(*openai.Config)
		kind   llm.ErrorKind
		calls  int
		says   string
	}{
		{"only 429", scripted.Rule{Status: 429, RetryAfter: "1"}, nil, llm.KindRateLimit, 6, "429"},
		{"429 for an hour", scripted.Rule{Status: 429, RetryAfter: "3600"}, nil, llm.KindRateLimit, 1, "429"},
		{"no credit", scripted.Rule{Status: 429, Body: `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`}, nil, llm.KindQuota, 1, "quota"},
		{"wrong key", scripted.Rule{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + plantedKey + `"}}`}, nil, llm.KindAuth, 1, "key_env"},
		{"bad request", scripted.Rule{Status: 400, Body: `{"error":{"message":"context length exceeded"}}`}, nil, llm.KindRefused, 1, "context length"},
		{"not found", scripted.Rule{Status: 404, Body: "404 page not found"}, nil, llm.KindRefused, 1, "404 page"},
		{"huge", scripted.Rule{HugeBytes: 1 << 20}, func(c *openai.Config) { c.LimitBytes = 50_000 }, llm.KindTooLarge, 1, "limit_bytes"},
		{"always hanging", scripted.Rule{StallAfter: ptr(0), Text: "x"}, func(c *openai.Config) { c.Retries = ptr(1) }, llm.KindStall, 2, "stall_timeout"},
		{"content filter", scripted.Rule{Text: "", FinishReason: "content_filter"}, func(c *openai.Config) { c.Stream = ptr(false) }, llm.KindRefused, 1, "filter"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, scripted.Script{Rules: []scripted.Rule{tc.rule}}, tc.change)
			_, err := b.client.Complete(t.Context(), request())
			var failed *llm.Error
			if !errors.As(err, &failed) {
				t.Fatalf("Complete: %v, want an *llm.Error", err)
			}
			if failed.Kind != tc.kind || failed.Calls != tc.calls || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v with %d calls, want %v, %d and %q in the text", err, failed.Calls, tc.kind, tc.calls, tc.says)
			}
			if got := len(b.server.Calls()); got != tc.calls {
				t.Errorf("the server got %d calls, want %d", got, tc.calls)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, failed, failed), plantedKey) {
				t.Error("the error shows the key")
			}
		})
	}
}

func TestCutReplyIsCountedAsWasted(t *testing.T) {
	t.Parallel()
	b := setup(t, scripted.Script{Rules: []scripted.Rule{{Times: 1, Text: strings.Repeat("x", 4000), CutAfter: ptr(3200)}, {Text: "ok", Usage: &scripted.Usage{PromptTokens: 11, CompletionTokens: 5}}}}, nil)
	reply, err := b.client.Complete(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if want := (llm.Usage{PromptTokens: 11, CompletionTokens: 5}); reply.Usage != want {
		t.Errorf("usage = %+v, want %+v", reply.Usage, want)
	}
	if w := reply.Wasted; w.CompletionTokens != 1000 || w.PromptTokens != request().PromptTokens() || !w.Estimated {
		t.Errorf("wasted = %+v, want the prompt and 1000 tokens for 3200 bytes", w)
	}
}

func TestBodyCarriesSettings(t *testing.T) {
	t.Parallel()
	var got map[string]any
	var header http.Header
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header = r.Header.Clone()
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60}}}`)
	}))
	defer web.Close()
	client, err := openai.New(openai.Config{Name: "m", BaseURL: web.URL, Model: "gpt", Extra: map[string]any{"reasoning_effort": "low", "top_p": 0.9},
		Headers: map[string]string{"X-Team": "kernels"}, MaxTokensField: "max_completion_tokens"},
		openai.Credentials{Key: llm.NewSecret(plantedKey), Headers: map[string]llm.Secret{"Api-Key": llm.NewSecret("second-secret")}}, openai.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.Seed = ptr(int64(7))
	reply, err := client.Complete(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"model": "gpt", "stream": true, "stream_options": map[string]any{"include_usage": true}, "temperature": 0.2, "seed": 7.0,
		"max_completion_tokens": 8192.0, "reasoning_effort": "low", "top_p": 0.9,
		"messages": []any{map[string]any{"role": "system", "content": "be brief"}, map[string]any{"role": "user", "content": "write a kernel"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
	if header.Get("Authorization") != "Bearer "+plantedKey || header.Get("X-Team") != "kernels" || header.Get("Api-Key") != "second-secret" {
		t.Errorf("headers = %v", header)
	}
	if reply.Usage.CachedTokens != 60 {
		t.Errorf("cached tokens = %d, want 60", reply.Usage.CachedTokens)
	}
	price := llm.Price{Prompt: 2, Cached: 0.5, Completion: 10}
	if cost := price.Cost(reply.Usage); cost != 40*2+30+50 {
		t.Errorf("cost = %d, want 160 micro-dollars", cost)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var leaked bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked = true }))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	client, err := openai.New(openai.Config{Name: "m", BaseURL: web.URL, Model: "x"}, openai.Credentials{Key: llm.NewSecret(plantedKey)}, openai.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Complete(t.Context(), request())
	if err == nil || !strings.Contains(err.Error(), "base_url") || leaked {
		t.Errorf("err = %v, leaked = %v; want a message that names base_url and no second call", err, leaked)
	}
}

func TestCancelEndsACall(t *testing.T) {
	t.Parallel()
	b := setup(t, scripted.Script{Rules: []scripted.Rule{{Delay: ptr(time.Minute)}}}, func(c *openai.Config) { c.StallTimeout = time.Minute })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.client.Complete(ctx, request()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the caller's deadline", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	base := openai.Config{Name: "m", BaseURL: "http://localhost:8000/v1", Model: "x"}
	for says, change := range map[string]func(*openai.Config){
		"base_url: want":   func(c *openai.Config) { c.BaseURL = "localhost:8000" },
		"key_env":          func(c *openai.Config) { c.BaseURL = "http://h/v1?key=abc" },
		"user":             func(c *openai.Config) { c.BaseURL = "http://me:pw@h/v1" },
		"model:":           func(c *openai.Config) { c.Model = "" },
		"header_env":       func(c *openai.Config) { c.Headers = map[string]string{"api-key": "abc"} },
		"extra.messages":   func(c *openai.Config) { c.Extra = map[string]any{"messages": 1} },
		"max_tokens_field": func(c *openai.Config) { c.MaxTokensField = "tokens" },
		"temperature":      func(c *openai.Config) { c.Temperature = ptr(3.0) },
		"negative":         func(c *openai.Config) { c.MaxTokens = -1 },
	} {
		c := base
		change(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abc") || strings.Contains(err.Error(), "pw") {
			t.Errorf("Validate: %v, want %q and no secret in it", err, says)
		}
	}
	if err := base.Validate(); err != nil {
		t.Errorf("Validate of a good config: %v", err)
	}
}
