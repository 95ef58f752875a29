package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ridgepoint/llm"
)

// contentError is an answer that came whole but is not a reply.
type contentError struct {
	kind   llm.ErrorKind
	reason string
}

func (e *contentError) Error() string { return e.reason }

// chunk is one chat completion, or one part of a streamed one, in the forms that servers send.
type chunk struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int     `json:"index"`
	Delta        message `json:"delta"`
	Message      message `json:"message"`
	Text         string  `json:"text"` // completions of older servers
	FinishReason *string `json:"finish_reason"`
}

type message struct {
	Content json.RawMessage `json:"content"` // a string, null, or parts
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	PromptDetails    struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (m message) text() string {
	if len(m.Content) == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	var b strings.Builder
	if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// readReply reads a whole answer. What it is, is told from the content type and, since those are often wrong, from the first
// bytes. It returns also how many bytes of text had come when an error ended it.
func readReply(r io.Reader, mediaType string) (*llm.Reply, int, error) {
	buffered := bufio.NewReaderSize(r, 32<<10)
	head, err := peekText(buffered)
	if err != nil && len(head) == 0 {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	switch {
	case head[0] == '{':
		return readWhole(buffered)
	case mediaType == "text/event-stream" || bytes.HasPrefix(head, []byte("data:")) || bytes.HasPrefix(head, []byte("event:")) || head[0] == ':':
		return readStream(buffered)
	default:
		rest := make([]byte, excerptBytes)
		n, _ := io.ReadFull(buffered, rest) // only an excerpt for the message
		return nil, 0, &contentError{llm.KindGarbage, fmt.Sprintf("the answer is %q, not a chat completion: does base_url end in /v1? It begins %q", mediaType, rest[:n])}
	}
}

// peekText drops leading white space and returns the next few bytes without consuming them.
func peekText(r *bufio.Reader) ([]byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return nil, err
		}
		if b[0] != ' ' && b[0] != '\n' && b[0] != '\r' && b[0] != '\t' {
			return r.Peek(min(6, max(1, r.Buffered())))
		}
		if _, err := r.Discard(1); err != nil {
			return nil, err
		}
	}
}

func readWhole(r io.Reader) (*llm.Reply, int, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, len(body), err
	}
	var c chunk
	if err := json.Unmarshal(body, &c); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(body)) {
			return nil, len(body), io.ErrUnexpectedEOF
		}
		return nil, len(body), &contentError{llm.KindGarbage, fmt.Sprintf("the answer is not a chat completion: %v; it begins %q", err, body[:min(len(body), excerptBytes)])}
	}
	if err := streamError(c.Error); err != nil {
		return nil, len(body), err
	}
	var reply llm.Reply
	var text strings.Builder
	take(&reply, &text, &c)
	return finish(&reply, text.String())
}

func readStream(r *bufio.Reader) (*llm.Reply, int, error) {
	var reply llm.Reply
	var text strings.Builder
	for {
		data, err := nextEvent(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				if reply.FinishReason != "" { // some servers leave [DONE] out
					return finish(&reply, text.String())
				}
				err = io.ErrUnexpectedEOF
			}
			return nil, text.Len(), err
		}
		if string(data) == "[DONE]" {
			if reply.FinishReason == "" && text.Len() == 0 {
				return nil, 0, &contentError{llm.KindGarbage, "the stream ended without any text"}
			}
			return finish(&reply, text.String())
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, text.Len(), &contentError{llm.KindGarbage, fmt.Sprintf("an event of the stream is not JSON: %v; it begins %q", err, data[:min(len(data), excerptBytes)])}
		}
		if err := streamError(c.Error); err != nil {
			return nil, text.Len(), err
		}
		take(&reply, &text, &c)
	}
}

// nextEvent returns the data of the next server-sent event; its lines are joined by newlines.
func nextEvent(r *bufio.Reader) ([]byte, error) {
	var data []byte
	var any bool
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			line = bytes.TrimRight(line, "\r\n")
			if errors.Is(err, io.EOF) && bytes.Equal(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data:"))), []byte("[DONE]")) {
				return []byte("[DONE]"), nil
			}
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			if any {
				return data, nil
			}
		case bytes.HasPrefix(line, []byte("data:")):
			if any {
				data = append(data, '\n')
			}
			data, any = append(data, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...), true
			if string(data) == "[DONE]" {
				return data, nil // not every server ends it with an empty line
			}
		}
	}
}

func take(reply *llm.Reply, text *strings.Builder, c *chunk) {
	if c.Model != "" {
		reply.Served = c.Model
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		text.WriteString(choice.Delta.text())
		text.WriteString(choice.Message.text())
		text.WriteString(choice.Text)
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			reply.FinishReason = *choice.FinishReason
		}
	}
	if u := c.Usage; u != nil && u.PromptTokens >= 0 && u.CompletionTokens >= 0 && u.PromptTokens+u.CompletionTokens > 0 {
		reply.Usage = llm.Usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens,
			CachedTokens: min(max(0, u.PromptDetails.CachedTokens), u.PromptTokens)}
	}
}

func finish(reply *llm.Reply, text string) (*llm.Reply, int, error) {
	reply.Text = text
	switch {
	case strings.TrimSpace(text) != "":
		return reply, len(text), nil
	case reply.FinishReason == "content_filter":
		return nil, 0, &contentError{llm.KindRefused, "the endpoint's content filter withheld the reply"}
	default:
		return nil, 0, &contentError{llm.KindGarbage, fmt.Sprintf("the reply has no text (finish_reason %q)", reply.FinishReason)}
	}
}

// streamError reads an error object that came with status 200.
func streamError(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var e struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(raw, &e) != nil {
		e.Message = string(raw)
	}
	what := strings.ToLower(e.Type + " " + string(e.Code))
	kind := llm.KindServer
	switch {
	case strings.Contains(what, "quota") || strings.Contains(what, "billing"):
		kind = llm.KindQuota
	case strings.Contains(what, "rate") || strings.Contains(what, "429"):
		kind = llm.KindRateLimit
	case strings.Contains(what, "auth") || strings.Contains(what, "401") || strings.Contains(what, "403"):
		kind = llm.KindAuth
	case strings.Contains(what, "invalid"):
		kind = llm.KindRefused
	}
	return &contentError{kind, fmt.Sprintf("the endpoint reports an error: %s", e.Message)}
}
