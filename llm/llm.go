// Package llm holds the nouns of talking to a language model: Request, Reply, Usage, Price, Budget and Client, with the rules
// between them and no I/O. It knows kernels as text. The subpackages do the work:
//
//	openai    one OpenAI-compatible chat endpoint, hosted or local
//	command   an external program that is the model: prompt on stdin, reply on stdout
//	library   structure files offered one by one where no model is configured
//	pool      several models by weight, token buckets, budgets, cost
//	cassette  exchanges recorded and played back
//	scripted  a chat endpoint that behaves as badly as real ones do
//	propose   prompts, and replies turned into drafts
package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Role says who wrote a message.
type Role string

// The roles of messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// The tasks that a model may be given. An author writes structures; an analyst writes the diagnosis that the author gets.
const (
	Author  = "author"
	Analyst = "analyst"
)

// Request asks a model for one reply. Everything but ID is hashed.
type Request struct {
	// ID names the request within its campaign and stays the same when it is sent again, e.g. "draft-12/1".
	ID       string    `json:"id"`
	For      string    `json:"for"` // Author or Analyst
	Messages []Message `json:"messages"`
	// Model names a model of the configuration; empty: the pool draws one by weight.
	Model       string   `json:"model,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"` // nil: the model's configured one
	MaxTokens   int      `json:"max_tokens,omitempty"`  // of the reply; 0: the model's configured limit
	Seed        *int64   `json:"seed,omitempty"`
}

// requestHashVersion goes into every hash: change it when the meaning of the hashed fields changes.
const requestHashVersion = 1

// Hash returns the prompt hash stored with every draft: a SHA-256 in hex over the messages and the sampling settings.
func (r *Request) Hash() string {
	b, err := json.Marshal(struct {
		Version     int       `json:"version"`
		For         string    `json:"for"`
		Messages    []Message `json:"messages"`
		Temperature *float64  `json:"temperature"`
		MaxTokens   int       `json:"max_tokens"`
		Seed        *int64    `json:"seed"`
	}{requestHashVersion, r.For, r.Messages, r.Temperature, r.MaxTokens, r.Seed})
	if err != nil {
		panic(fmt.Sprintf("llm: request cannot be hashed: %v", err)) // strings and numbers always marshal; a NaN temperature is refused by Validate
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// PromptTokens estimates the tokens of all messages.
func (r *Request) PromptTokens() int {
	n := 3
	for _, m := range r.Messages {
		n += 4 + EstimateTokens(m.Text)
	}
	return n
}

// Reply is what a model answered, with what it cost.
type Reply struct {
	Text         string        `json:"text"`
	Model        string        `json:"model"`         // name in the configuration
	Served       string        `json:"served"`        // what the endpoint says it ran; may be empty
	FinishReason string        `json:"finish_reason"` // stop, length, content_filter, ...; may be empty
	Usage        Usage         `json:"usage"`
	CostMicroUSD int64         `json:"cost_micro_usd"`
	Calls        int           `json:"calls"`  // requests sent, retries included
	Wasted       Usage         `json:"wasted"` // estimate for cut and stalled attempts before this reply; part of the cost, not of Usage
	Took         time.Duration `json:"took"`
}

// Truncated reports whether the endpoint says that the reply was cut at the token limit.
func (r *Reply) Truncated() bool { return r.FinishReason == "length" || r.FinishReason == "max_tokens" }

// Usage counts tokens.
type Usage struct {
	PromptTokens     int  `json:"prompt_tokens"`
	CachedTokens     int  `json:"cached_tokens,omitempty"` // of PromptTokens, read from the endpoint's cache
	CompletionTokens int  `json:"completion_tokens"`
	Estimated        bool `json:"estimated,omitempty"` // the endpoint gave no usage: counted from the texts' lengths
}

// Total returns prompt and completion tokens together.
func (u Usage) Total() int { return u.PromptTokens + u.CompletionTokens }

// Add returns the sum of two usages; it is an estimate when either is.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.PromptTokens + v.PromptTokens, u.CachedTokens + v.CachedTokens,
		u.CompletionTokens + v.CompletionTokens, u.Estimated || v.Estimated}
}

// Client answers requests. Implementations are safe for concurrent use. An error is an *Error, a context's error, or wraps
// ErrBudget or ErrNoMore.
type Client interface {
	Complete(ctx context.Context, r *Request) (*Reply, error)
}

// EstimateTokens estimates how many tokens a text has: one for 3.2 bytes of text. Code and English measure 2.8 to 4.2 bytes
// a token with the tokenizers in use; the low end is taken so that limits hold.
func EstimateTokens(text string) int { return (len(text)*10 + 31) / 32 }
