package observe

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Config says what a process shows of itself over HTTP.
type Config struct {
	Listen string // host:port; empty: nothing is served
	// Token, when set, is asked for as "Authorization: Bearer TOKEN", or as the password of any user. An address that is not
	// loopback needs one.
	Token   string
	Pprof   bool // serve /debug/pprof
	Metrics *Metrics
	// ReadyFunc says why the process is not ready; nil: it is ready as soon as it serves.
	ReadyFunc func() error
	// Monitor, when set, is served under MonitorPath: asynq's own pages. It is refused on anything but loopback.
	Monitor     http.Handler
	MonitorPath string
	Log         zerolog.Logger
}

// Validate reports what would show too much to too many.
func (c *Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen address %q: want host:port, such as 127.0.0.1:9464", c.Listen)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case loopback:
		return nil
	case c.Token == "":
		return fmt.Errorf("listen address %s is not loopback: set a token with --http-token-file, or listen on 127.0.0.1", c.Listen)
	case c.Monitor != nil:
		return fmt.Errorf("asynq's pages can delete queues: they are served on loopback only, not on %s", c.Listen)
	default:
		return nil
	}
}

// Handler returns the pages: /metrics, /healthz (the process lives), /readyz (it can work), and what the config adds.
func (c *Config) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.Metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if c.ReadyFunc != nil {
			if err := c.ReadyFunc(); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
	if c.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	if c.Monitor != nil {
		mux.Handle(strings.TrimSuffix(c.MonitorPath, "/")+"/", c.Monitor)
	}
	return c.guard(mux)
}

// guard sets the usual headers, refuses pages that other sites' pages ask for, and asks for the token. Health pages need none:
// they tell nothing.
func (c *Config) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			http.Error(w, "asked for by another site's page", http.StatusForbidden)
			return
		}
		if !c.knownHost(r.Host) {
			http.Error(w, "this name is not served here", http.StatusForbidden) // a rebound DNS name
			return
		}
		health := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		if c.Token != "" && !health && !c.allowed(r) {
			h.Set("WWW-Authenticate", `Basic realm="ridgepoint"`)
			http.Error(w, "want the token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost accepts any host once a token protects the pages, and only this machine's own names without one.
func (c *Config) knownHost(hostport string) bool {
	if c.Token != "" {
		return true
	}
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) allowed(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, given, ok = r.BasicAuth()
	}
	return ok && subtle.ConstantTimeCompare([]byte(given), []byte(c.Token)) == 1
}

// Run serves until ctx ends. Ready, when not nil, is told the address once it listens.
func (c *Config) Run(ctx context.Context, ready func(addr string)) error {
	if c.Listen == "" {
		<-ctx.Done()
		return nil
	}
	if err := c.Validate(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	if ready != nil {
		ready(l.Addr().String())
	}
	c.Log.Info().Str("address", l.Addr().String()).Msg("serving metrics and health")
	srv := &http.Server{Handler: c.Handler(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 1 << 16}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }() // ends with Shutdown; received below
	select {
	case err := <-done:
		return fmt.Errorf("serve metrics: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err = srv.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close() // a profile still streaming
	}
	<-done
	return err
}
