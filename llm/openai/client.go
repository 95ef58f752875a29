package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strings"
	"time"

	"ridgepoint/llm"
)

// Client talks to one endpoint. It is safe for concurrent use.
type Client struct {
	config      Config
	credentials Credentials
	scrub       llm.Scrubber
	http        *http.Client
	hooks       Hooks
}

// Hooks replace time and chance in tests, and let a recorder see a reply as it arrives. Nil fields get the real thing.
type Hooks struct {
	SleepFunc  func(ctx context.Context, d time.Duration) error
	NowFunc    func() time.Time
	JitterFunc func() float64 // in [0, 1)
	// ArrivedFunc gets each complete reply, scrubbed, before anything else is done with it: it is paid for, and must survive a
	// kill from here on.
	ArrivedFunc func(requestID string, r *llm.Reply) error
}

// New returns a client. The config must be valid.
func New(c Config, credentials Credentials, hooks Hooks) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if hooks.SleepFunc == nil {
		hooks.SleepFunc = sleep
	}
	if hooks.NowFunc == nil {
		hooks.NowFunc = time.Now
	}
	if hooks.JitterFunc == nil {
		hooks.JitterFunc = rand.Float64
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4
	return &Client{
		config: c.withDefaults(), credentials: credentials, scrub: llm.NewScrubber(credentials.Secrets()...), hooks: hooks,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect would carry header keys to another host
		}},
	}, nil
}

// Close drops idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// MaxTokens returns the reply's token limit, for budgets.
func (c *Client) MaxTokens() int { return c.config.MaxTokens }

// Complete sends the request, and again after failures that may pass, until a reply is whole or the retries are used up.
func (c *Client) Complete(ctx context.Context, r *llm.Request) (*llm.Reply, error) {
	body, err := c.body(r, true)
	if err != nil {
		return nil, err
	}
	started, wasted := c.hooks.NowFunc(), llm.Usage{}
	for call := 1; ; call++ {
		reply, err := c.once(ctx, r, body)
		if err == nil {
			reply.Model, reply.Calls, reply.Wasted, reply.Took = c.config.Name, call, wasted, c.hooks.NowFunc().Sub(started)
			return c.arrived(r, reply)
		}
		var failed *llm.Error
		if !errors.As(err, &failed) {
			return nil, err
		}
		wasted = wasted.Add(failed.Wasted)
		failed.Calls, failed.Wasted = call, wasted
		if failed.Kind == llm.KindRefused && strings.Contains(failed.Reason, "stream_options") && bytes.Contains(body, []byte(`"stream_options"`)) {
			if body, err = c.body(r, false); err != nil { // older servers refuse the field: usage is then estimated
				return nil, err
			}
			continue
		}
		wait, again := c.backoff(failed, call)
		if !again {
			return nil, failed
		}
		if err := c.hooks.SleepFunc(ctx, wait); err != nil {
			return nil, errors.Join(err, failed)
		}
	}
}

func (c *Client) arrived(r *llm.Request, reply *llm.Reply) (*llm.Reply, error) {
	reply.Text, reply.Served = c.scrub.Scrub(reply.Text), c.scrub.Scrub(reply.Served)
	if c.hooks.ArrivedFunc == nil {
		return reply, nil
	}
	if err := c.hooks.ArrivedFunc(r.ID, reply); err != nil {
		return nil, fmt.Errorf("keep reply %s: %w", r.ID, err)
	}
	return reply, nil
}

func (c *Client) body(r *llm.Request, askUsage bool) ([]byte, error) {
	fields := map[string]any{}
	for k, v := range c.config.Extra {
		fields[k] = v
	}
	messages := make([]map[string]string, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = map[string]string{"role": string(m.Role), "content": m.Text}
	}
	fields["model"], fields["messages"] = c.config.Model, messages
	temperature, limit, seed := c.config.Temperature, c.config.MaxTokens, c.config.Seed
	if r.Temperature != nil && *temperature >= 0 {
		temperature = r.Temperature
	}
	if r.MaxTokens > 0 {
		limit = r.MaxTokens
	}
	if r.Seed != nil {
		seed = r.Seed
	}
	set := func(name string, value any) {
		if _, extra := c.config.Extra[name]; !extra {
			fields[name] = value
		}
	}
	if *temperature >= 0 {
		set("temperature", *temperature)
	}
	if seed != nil {
		set("seed", *seed)
	}
	set(c.config.MaxTokensField, limit)
	if *c.config.Stream {
		fields["stream"] = true
		if askUsage {
			fields["stream_options"] = map[string]bool{"include_usage": true}
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("llm.models.%s.extra: not expressible in JSON: %w", c.config.Name, err)
	}
	return body, nil
}

// once sends one HTTP request and reads its reply. Its errors are *llm.Error, or the context's.
func (c *Client) once(ctx context.Context, r *llm.Request, body []byte) (*llm.Reply, error) {
	timed, stop := context.WithTimeoutCause(ctx, c.config.Timeout, errTimeout)
	defer stop()
	call, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(call, http.MethodPost, c.config.endpoint(), bytes.NewReader(body))
	if err != nil {
		return nil, c.fail(llm.KindRefused, 0, err, "the request cannot be made")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream, application/json")
	for name, value := range c.config.Headers {
		request.Header.Set(name, value)
	}
	if !c.credentials.Key.Empty() {
		request.Header.Set("Authorization", "Bearer "+c.credentials.Key.Reveal())
	}
	for name, value := range c.credentials.Headers {
		request.Header.Set(name, value.Reveal())
	}
	watch := newWatchdog(c.config.StallTimeout, func() { cancel(errStall) })
	defer watch.stop()
	if !*c.config.Stream {
		watch.stop() // nothing comes before the whole reply does: only the timeout counts
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.networkError(ctx, call, err, 0, r)
	}
	defer func() { _ = response.Body.Close() }() // the reply was read or is of no use
	limited := &limitedReader{reader: response.Body, left: c.config.LimitBytes, readFunc: watch.reset}
	if response.StatusCode != http.StatusOK {
		return nil, c.statusError(response, limited)
	}
	reply, read, err := readReply(limited, mediaType(response.Header))
	switch {
	case err == nil:
		if reply.Usage.PromptTokens == 0 && reply.Usage.CompletionTokens == 0 {
			reply.Usage = llm.Usage{PromptTokens: r.PromptTokens(), CompletionTokens: llm.EstimateTokens(reply.Text), Estimated: true}
		}
		return reply, nil
	case errors.Is(err, errLimit):
		return nil, c.wasted(c.fail(llm.KindTooLarge, 200, err, fmt.Sprintf("the reply is over %d bytes: lower max_tokens or raise limit_bytes", c.config.LimitBytes)), r, read)
	case errors.As(err, new(*contentError)):
		var content *contentError
		errors.As(err, &content)
		return nil, c.wasted(c.fail(content.kind, 200, nil, content.reason), r, 0)
	default:
		return nil, c.networkError(ctx, call, err, read, r)
	}
}

func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// limitedReader bounds what is read and tells a watchdog of every byte.
type limitedReader struct {
	reader   io.Reader
	left     int64
	readFunc func()
}

var errLimit = errors.New("over the size limit")

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLimit
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.reader.Read(p)
	l.left -= int64(n)
	if n > 0 {
		l.readFunc()
	}
	return n, err
}

// watchdog calls a function when it has not been reset for a while.
type watchdog struct {
	timer *time.Timer
	after time.Duration
}

func newWatchdog(after time.Duration, barkFunc func()) *watchdog {
	return &watchdog{timer: time.AfterFunc(after, barkFunc), after: after}
}

// reset starts the wait anew unless the watchdog was stopped or has barked.
func (w *watchdog) reset() {
	if w.timer.Stop() {
		w.timer.Reset(w.after)
	}
}

func (w *watchdog) stop() { w.timer.Stop() }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
