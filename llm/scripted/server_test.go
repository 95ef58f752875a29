package scripted_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/llm"
	"ridgepoint/llm/scripted"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "script.yaml")
}

func TestRulesAnswerInOrder(t *testing.T) {
	t.Parallel()
	path := write(t, map[string]string{"a.md": "reply a", "b.md": "reply b", "script.yaml": `
rules:
  - {every: 3, status: 429, retry_after: "1"}
  - {contains: [repair], text: repaired, times: 1}
  - {files: ["?.md"]}
  - {from: 7, text: late}
`})
	script, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	server, err := scripted.New(script, llm.NewSecret("the-key"))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	post := func(text, key string) string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`))
		req.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return response.Status[:3] + " " + string(body)
	}
	for i, step := range []struct{ text, want string }{
		{"new", "200"}, {"repair this", "repaired"}, {"new", "429"}, {"repair this", "reply b"}, {"new", "503"}, {"new", "429"}, {"new", "late"},
	} {
		if got := post(step.text, "the-key"); !strings.Contains(got, step.want) {
			t.Errorf("call %d: %s, want %s", i+1, got, step.want)
		}
	}
	if got := post("new", "other"); !strings.HasPrefix(got, "401") {
		t.Errorf("with a wrong key: %s", got)
	}
	calls := server.Calls()
	if len(calls) != 7 || !calls[0].Finished || calls[2].Finished || calls[6].Rule != 3 {
		t.Errorf("calls = %+v", calls)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for says, text := range map[string]string{
		"no rules":        "delay: 1s\n",
		"unknown field":   "rules: [{txt: hello}]\n",
		"nothing matches": "rules: [{files: [none.md]}]\n",
		"counts from 1":   "rules: [{from: 5, to: 2}]\n",
		"missing closing": "rules: [{matches: '('}]\n",
	} {
		if _, err := scripted.Load(write(t, map[string]string{"script.yaml": text})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Load: %v, want %q", err, says)
		}
	}
}
