package llm_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ridgepoint/llm"
)

func TestSecretHidesItself(t *testing.T) {
	t.Parallel()
	const key = `sk-"planted"/0123456789+abc`
	s := llm.NewSecret(" " + key + "\n")
	b, err := json.Marshal(map[string]any{"a": s, "b": &s})
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%v %+v %#v %s %q %v", s, s, s, s, s, struct{ S llm.Secret }{s}) + string(b)
	if strings.Contains(printed, "planted") {
		t.Errorf("a formatted secret shows itself: %s", printed)
	}
	if s.Reveal() != key {
		t.Errorf("Reveal = %q, want the key without white space", s.Reveal())
	}
	quoted, _ := json.Marshal(key)
	text := "plain " + key + " json " + string(quoted) + " base64 " + base64.StdEncoding.EncodeToString([]byte(key)) + " url sk-%22planted%22%2F0123456789%2Babc"
	scrubbed := llm.NewScrubber(s, llm.NewSecret("abc")).Scrub(text)
	if strings.Contains(scrubbed, "planted") || strings.Contains(scrubbed, "c2stIn") {
		t.Errorf("scrubbed text still holds the key: %s", scrubbed)
	}
	if !strings.Contains(scrubbed, "plain [secret] json ") {
		t.Errorf("scrubbed text lost its words: %s", scrubbed)
	}
}

func TestBudgetAllows(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name                  string
		budget                llm.Budget
		campaign, today, next llm.Spent
		says                  string
	}{
		{"no limit", llm.Budget{}, llm.Spent{Tokens: 1 << 50}, llm.Spent{}, llm.Spent{Tokens: 1}, ""},
		{"tokens fit exactly", llm.Budget{Tokens: 100}, llm.Spent{Tokens: 60}, llm.Spent{}, llm.Spent{Tokens: 40}, ""},
		{"tokens", llm.Budget{Tokens: 100}, llm.Spent{Tokens: 61}, llm.Spent{}, llm.Spent{Tokens: 40}, "61 of 100 tokens"},
		{"money", llm.Budget{USD: 1}, llm.Spent{MicroUSD: 900_000}, llm.Spent{}, llm.Spent{MicroUSD: 100_001}, "$0.9000 of $1.0000"},
		{"tokens a day", llm.Budget{TokensPerDay: 10}, llm.Spent{}, llm.Spent{Tokens: 10}, llm.Spent{Tokens: 1}, "today: 10 of 10"},
		{"money a day", llm.Budget{USDPerDay: 0.5}, llm.Spent{}, llm.Spent{MicroUSD: 499_999}, llm.Spent{MicroUSD: 2}, "today: $0.5"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.budget.Allows(tc.campaign, tc.today, tc.next)
			if (err == nil) != (tc.says == "") || (err != nil && (!errors.Is(err, llm.ErrBudget) || !strings.Contains(err.Error(), tc.says))) {
				t.Errorf("Allows: %v, want %q", err, tc.says)
			}
		})
	}
}

func TestHashCoversWhatShapesTheReply(t *testing.T) {
	t.Parallel()
	base := llm.Request{ID: "a", For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: "x"}}}
	same := base
	same.ID = "b"
	if base.Hash() != same.Hash() {
		t.Error("the id changes the hash")
	}
	seed := int64(1)
	for name, other := range map[string]llm.Request{
		"text": {For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: "y"}}},
		"role": {For: llm.Author, Messages: []llm.Message{{Role: llm.System, Text: "x"}}},
		"for":  {For: llm.Analyst, Messages: base.Messages},
		"seed": {For: llm.Author, Messages: base.Messages, Seed: &seed},
		"most": {For: llm.Author, Messages: base.Messages, MaxTokens: 9},
	} {
		if other.Hash() == base.Hash() {
			t.Errorf("%s does not change the hash", name)
		}
	}
}
