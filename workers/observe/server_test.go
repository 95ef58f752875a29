package observe_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ridgepoint/workers/observe"
)

func get(t *testing.T, c *observe.Config, path string, change func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9464"+path, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body), w.Header()
}

func TestPages(t *testing.T) {
	t.Parallel()
	notReady := errors.New("redis is away")
	c := &observe.Config{Metrics: observe.NewMetrics(), ReadyFunc: func() error { return notReady }}
	c.Metrics.RedisUp.Set(1)
	if code, body, h := get(t, c, "/metrics", nil); code != 200 || !strings.Contains(body, "ridgepoint_redis_up 1") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("metrics: %d", code)
	}
	if code, _, _ := get(t, c, "/healthz", nil); code != 200 {
		t.Errorf("healthz: %d", code)
	}
	if code, body, _ := get(t, c, "/readyz", nil); code != 503 || !strings.Contains(body, "redis is away") {
		t.Errorf("readyz: %d %s", code, body)
	}
	notReady = nil
	if code, _, _ := get(t, c, "/readyz", nil); code != 200 {
		t.Errorf("readyz: %d", code)
	}
	for _, path := range []string{"/debug/pprof/", "/asynq/", "/"} {
		if code, _, _ := get(t, c, path, nil); code != 404 {
			t.Errorf("%s without its flag: %d; want 404", path, code)
		}
	}
	c.Pprof, c.Monitor, c.MonitorPath = true, http.NotFoundHandler(), "/asynq"
	if code, _, _ := get(t, c, "/debug/pprof/", nil); code != 200 {
		t.Errorf("pprof: %d", code)
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	open := &observe.Config{Metrics: observe.NewMetrics()}
	locked := &observe.Config{Metrics: observe.NewMetrics(), Token: "secret"}
	tests := []struct {
		name   string
		c      *observe.Config
		path   string
		change func(*http.Request)
		want   int
	}{
		{"plain", open, "/metrics", nil, 200},
		{"another site's page", open, "/metrics", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a rebound name", open, "/metrics", func(r *http.Request) { r.Host = "evil.example:9464" }, 403},
		{"no token", locked, "/metrics", nil, 401},
		{"wrong token", locked, "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret2") }, 401},
		{"token", locked, "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }, 200},
		{"token as password", locked, "/metrics", func(r *http.Request) { r.SetBasicAuth("any", "secret") }, 200},
		{"health needs none", locked, "/healthz", nil, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if code, _, _ := get(t, tt.c, tt.path, tt.change); code != tt.want {
				t.Errorf("got %d; want %d", code, tt.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		c  observe.Config
		ok bool
	}{
		{observe.Config{}, true},
		{observe.Config{Listen: "127.0.0.1:0"}, true},
		{observe.Config{Listen: "[::1]:0", Monitor: http.NotFoundHandler()}, true},
		{observe.Config{Listen: "0.0.0.0:9464"}, false},
		{observe.Config{Listen: ":9464"}, false},
		{observe.Config{Listen: "0.0.0.0:9464", Token: "x"}, true},
		{observe.Config{Listen: "0.0.0.0:9464", Token: "x", Monitor: http.NotFoundHandler()}, false},
		{observe.Config{Listen: "9464"}, false},
	}
	for _, tt := range tests {
		if err := tt.c.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s token=%q: %v", tt.c.Listen, tt.c.Token, err)
		}
	}
}
