package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"ridgepoint/llm"
)

// Server answers chat calls by a script. It is an http.Handler, safe for concurrent use.
type Server struct {
	script *Script
	key    llm.Secret

	mu    sync.Mutex
	calls []Call
}

// Call is one call that the server got.
type Call struct {
	Number   int           `json:"number"` // from 1
	Rule     int           `json:"rule"`   // index of the rule that answered, -1 when none did
	Model    string        `json:"model"`
	Messages string        `json:"messages"` // joined by newlines
	Body     string        `json:"-"`
	Finished bool          `json:"finished"` // the whole reply was written
	Took     time.Duration `json:"took"`
}

// New returns a server. With a key, calls without it as their bearer token get 401.
func New(s *Script, key llm.Secret) (*Server, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Server{script: s, key: key}, nil
}

// Calls returns what the server got so far, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// maxBodyBytes bounds a call's body; a prompt of a million tokens fits.
const maxBodyBytes = 16 << 20

// ServeHTTP answers POST .../chat/completions; GET .../models lists one model; anything else is 404.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.key.Empty() && r.Header.Get("Authorization") != "Bearer "+s.key.Reveal() {
		fail(w, http.StatusUnauthorized, "invalid_api_key", "incorrect API key provided: "+r.Header.Get("Authorization"))
		return
	}
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"scripted","object":"model"}]}`) // the caller went away
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, r)
	default:
		fail(w, http.StatusNotFound, "not_found", "want POST /v1/chat/completions")
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var call struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(body, &call)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	texts := make([]string, len(call.Messages))
	for i, m := range call.Messages {
		texts[i] = m.Content
	}
	started := time.Now()
	number, rule := s.pick(Call{Model: call.Model, Messages: strings.Join(texts, "\n"), Body: string(body)})
	if rule == nil {
		fail(w, http.StatusServiceUnavailable, "server_error", "the script has no more replies")
		return
	}
	delay := s.script.Delay
	if rule.Delay != nil {
		delay = *rule.Delay
	}
	if pause(r.Context(), delay) != nil {
		return
	}
	if rule.answer(w, r, &answer{text: rule.text, model: call.Model, stream: call.Stream, promptBytes: len(body)}) == nil {
		s.mu.Lock()
		s.calls[number-1].Finished, s.calls[number-1].Took = true, time.Since(started)
		s.mu.Unlock()
	}
}

// picked is a rule with the text of this answer.
type picked struct {
	*Rule
	text string
}

func (s *Server) pick(c Call) (int, *picked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Number, c.Rule = len(s.calls)+1, -1
	var p *picked
	for i := range s.script.Rules {
		if r := &s.script.Rules[i]; r.matches(c.Number, c.Messages) {
			c.Rule, p = i, &picked{r, r.reply()}
			break
		}
	}
	s.calls = append(s.calls, c)
	return c.Number, p
}

// answer is what one call is to get.
type answer struct {
	text        string
	model       string
	stream      bool
	promptBytes int
}

var errFault = errors.New("the script breaks this answer")

func (r *Rule) answer(w http.ResponseWriter, request *http.Request, a *answer) error {
	switch {
	case r.Reset:
		return reset(w)
	case r.Status != 0 && r.Status != http.StatusOK:
		if r.RetryAfter != "" {
			w.Header().Set("Retry-After", r.RetryAfter)
		}
		if r.Body == "" {
			fail(w, r.Status, "scripted_error", http.StatusText(r.Status))
			return errFault
		}
		r.raw(w, r.Status)
		return errFault
	case r.Body != "":
		r.raw(w, http.StatusOK)
		return errFault
	case a.stream:
		return r.sendStream(w, request.Context(), a)
	default:
		return r.sendWhole(w, request.Context(), a)
	}
}

func (r *Rule) raw(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", r.contentType("text/plain; charset=utf-8"))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, r.Body) // the caller went away
}

func (r *Rule) contentType(usual string) string {
	if r.ContentType != "" {
		return r.ContentType
	}
	return usual
}

func (r *Rule) usage(a *answer) *Usage {
	switch {
	case r.OmitUsage:
		return nil
	case r.Usage != nil:
		return r.Usage
	default:
		return &Usage{PromptTokens: a.promptBytes / 4, CompletionTokens: len(a.text) / 4}
	}
}

func (r *Rule) finishReason() string {
	if r.FinishReason != "" {
		return r.FinishReason
	}
	return "stop"
}

func (r *Rule) sendWhole(w http.ResponseWriter, ctx context.Context, a *answer) error {
	body, err := json.Marshal(map[string]any{"id": "scripted", "object": "chat.completion", "model": a.model, "usage": r.usage(a),
		"choices": []any{map[string]any{"index": 0, "finish_reason": r.finishReason(), "message": map[string]string{"role": "assistant", "content": a.text}}}})
	if err != nil {
		return fmt.Errorf("marshal answer: %w", err)
	}
	w.Header().Set("Content-Type", r.contentType("application/json"))
	if r.CutAfter != nil || r.StallAfter != nil {
		n := len(body)
		for _, limit := range []*int{r.CutAfter, r.StallAfter} {
			if limit != nil {
				n = min(n, *limit)
			}
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:n]) // the caller went away
		_ = http.NewResponseController(w).Flush()
		if r.StallAfter != nil {
			<-ctx.Done()
		}
		return reset(w)
	}
	_, err = w.Write(body)
	return err
}

func (r *Rule) sendStream(w http.ResponseWriter, ctx context.Context, a *answer) error {
	w.Header().Set("Content-Type", r.contentType("text/event-stream"))
	size := r.ChunkBytes
	if size == 0 {
		size = 400
	}
	control, sent := http.NewResponseController(w), 0
	event := func(choice map[string]any, u *Usage) error {
		choices := []any{}
		if choice != nil {
			choices = append(choices, choice)
		}
		fields := map[string]any{"id": "scripted", "object": "chat.completion.chunk", "model": a.model, "choices": choices}
		if u != nil {
			fields["usage"] = u
		}
		b, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("marshal event: %w", err)
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return err
		}
		return control.Flush()
	}
	for runes := []rune(a.text); len(runes) > 0; {
		if r.StallAfter != nil && sent >= *r.StallAfter {
			<-ctx.Done()
			return errFault
		}
		if r.CutAfter != nil && sent >= *r.CutAfter {
			return reset(w)
		}
		n := min(size, len(runes))
		part := string(runes[:n])
		if err := event(map[string]any{"index": 0, "delta": map[string]string{"content": part}}, nil); err != nil {
			return err
		}
		runes, sent = runes[n:], sent+len(part)
		if err := pause(ctx, r.Gap); err != nil {
			return err
		}
	}
	if r.StallAfter != nil || r.CutAfter != nil { // the text was shorter than the limit
		return reset(w)
	}
	if err := event(map[string]any{"index": 0, "delta": map[string]string{}, "finish_reason": r.finishReason()}, nil); err != nil {
		return err
	}
	if u := r.usage(a); u != nil {
		if err := event(nil, u); err != nil {
			return err
		}
	}
	if r.OmitDone {
		return nil
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// reset ends the connection with a TCP reset where it can.
func reset(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset instead
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the connection ends with an orderly close
	}
	return errors.Join(errFault, conn.Close())
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]any{"error": map[string]string{"type": kind, "message": message}}) // strings always marshal
	_, _ = w.Write(b)                                                                                  // the caller went away
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
