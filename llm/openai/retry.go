package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ridgepoint/llm"
)

var (
	errStall   = errors.New("nothing came for the stall timeout")
	errTimeout = errors.New("the call took longer than its timeout")
)

// The pauses between attempts: doubling from half a second to half a minute, each drawn from its upper half ("equal jitter"), and
// at least what Retry-After asks for; an endpoint that asks for more than five minutes is left to the caller.
const (
	firstPause    = 500 * time.Millisecond
	longestPause  = 30 * time.Second
	longestAsked  = 5 * time.Minute
	excerptBytes  = 4096 // read of an error's body: far more than is shown, so that no key is cut in two before it is scrubbed
	shownOfReason = 400  // runes
)

// backoff returns how long to wait before the next attempt, and whether there is to be one.
func (c *Client) backoff(failed *llm.Error, call int) (time.Duration, bool) {
	if !failed.Kind.Retryable() || call > *c.config.Retries || failed.RetryAfter > longestAsked {
		return 0, false
	}
	pause := min(firstPause<<min(call-1, 10), longestPause)
	pause = pause/2 + time.Duration(c.hooks.JitterFunc()*float64(pause/2))
	if failed.RetryAfter > 0 { // spread those who were all told the same moment
		pause = max(pause, failed.RetryAfter+time.Duration(c.hooks.JitterFunc()*float64(min(failed.RetryAfter/10, time.Second))))
	}
	return pause, true
}

func (c *Client) fail(kind llm.ErrorKind, status int, cause error, reason string) *llm.Error {
	if cause != nil {
		cause = errors.New(c.scrub.Scrub(cause.Error())) // net/http puts URLs and server text into its errors
	}
	return &llm.Error{Kind: kind, Model: c.config.Name, Status: status, Reason: shorten(c.scrub.Scrub(reason)), Cause: cause}
}

func shorten(s string) string {
	if r := []rune(s); len(r) > shownOfReason {
		return string(r[:shownOfReason]) + "..."
	}
	return s
}

// wasted adds what an attempt that brought no reply is billed for all the same: the prompt, and the text that came.
func (c *Client) wasted(e *llm.Error, r *llm.Request, textBytes int) *llm.Error {
	e.Wasted = llm.Usage{PromptTokens: r.PromptTokens(), CompletionTokens: (textBytes*10 + 31) / 32, Estimated: true}
	return e
}

// networkError turns a failed read or connection into an *llm.Error, or into the caller's own cancellation.
func (c *Client) networkError(ctx, call context.Context, err error, read int, r *llm.Request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *llm.Error
	cause := context.Cause(call)
	switch {
	case errors.Is(cause, errStall):
		e = c.fail(llm.KindStall, 0, errStall, fmt.Sprintf("no byte for %s: raise stall_timeout if the model thinks longer", c.config.StallTimeout))
	case errors.Is(cause, errTimeout):
		e = c.fail(llm.KindTimeout, 0, errTimeout, fmt.Sprintf("no whole reply within %s: raise timeout or lower max_tokens", c.config.Timeout))
	case errors.Is(err, io.ErrUnexpectedEOF), read > 0:
		e = c.fail(llm.KindCut, 0, err, fmt.Sprintf("the stream was cut after %d bytes", read))
	default:
		return c.fail(llm.KindNetwork, 0, err, "the endpoint cannot be reached: "+err.Error())
	}
	return c.wasted(e, r, read)
}

func (c *Client) statusError(response *http.Response, body io.Reader) *llm.Error {
	excerpt, _ := io.ReadAll(io.LimitReader(body, excerptBytes)) // what came of it serves the message
	status := response.StatusCode
	said := errorText(excerpt)
	reason := fmt.Sprintf("HTTP %d: %s", status, said)
	lower := strings.ToLower(string(excerpt))
	var kind llm.ErrorKind
	switch {
	case status == http.StatusTooManyRequests && (strings.Contains(lower, "insufficient_quota") || strings.Contains(lower, "billing")), status == http.StatusPaymentRequired:
		kind = llm.KindQuota
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly:
		kind = llm.KindRateLimit
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		kind, reason = llm.KindAuth, reason+": check the key that key_env or key_file names"
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		kind = llm.KindServer
	case status >= 300 && status < 400:
		kind, reason = llm.KindRefused, fmt.Sprintf("HTTP %d: redirected to %s: write that into base_url", status, response.Header.Get("Location"))
	default:
		kind = llm.KindRefused
	}
	e := c.fail(kind, status, nil, reason)
	e.RetryAfter = retryAfter(response.Header, c.hooks.NowFunc())
	return e
}

// errorText returns the message inside an error body, or the body.
func errorText(body []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && len(e.Error) > 0 {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
		var text string
		if json.Unmarshal(e.Error, &text) == nil {
			return text
		}
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
}

// retryAfter reads Retry-After (seconds or a date) and the milliseconds form that some vendors add. 0: not asked.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(v, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
