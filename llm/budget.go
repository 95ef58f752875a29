package llm

import (
	"fmt"
	"math"
	"time"
)

// Price is what a model's tokens cost, in US dollars per million tokens.
type Price struct {
	Prompt     float64 `yaml:"prompt" json:"prompt"`
	Cached     float64 `yaml:"cached" json:"cached,omitempty"` // prompt tokens read from the endpoint's cache; 0: as Prompt
	Completion float64 `yaml:"completion" json:"completion"`
}

// Cost returns what a usage costs, in millionths of a US dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	cached := p.Cached
	if cached == 0 {
		cached = p.Prompt
	}
	micro := float64(u.PromptTokens-u.CachedTokens)*p.Prompt + float64(u.CachedTokens)*cached + float64(u.CompletionTokens)*p.Completion
	return int64(math.Ceil(micro - 1e-9))
}

// Validate refuses negative prices.
func (p Price) Validate() error {
	if !(p.Prompt >= 0 && p.Cached >= 0 && p.Completion >= 0) {
		return fmt.Errorf("price {prompt: %v, cached: %v, completion: %v}: want dollars per million tokens, none negative", p.Prompt, p.Cached, p.Completion)
	}
	return nil
}

// Budget bounds what a campaign's models may use. Zero is no limit.
type Budget struct {
	Tokens       int64   `yaml:"tokens" json:"tokens,omitempty"`
	USD          float64 `yaml:"usd" json:"usd,omitempty"`
	TokensPerDay int64   `yaml:"tokens_per_day" json:"tokens_per_day,omitempty"` // days in UTC
	USDPerDay    float64 `yaml:"usd_per_day" json:"usd_per_day,omitempty"`
}

// Validate refuses negative limits.
func (b Budget) Validate() error {
	if b.Tokens < 0 || b.TokensPerDay < 0 || !(b.USD >= 0) || !(b.USDPerDay >= 0) {
		return fmt.Errorf("llm.budget: %+v: limits are positive, or 0 for none", b)
	}
	return nil
}

// Spent is what calls have used so far.
type Spent struct {
	Calls    int64 `json:"calls"`
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"micro_usd"`
}

// Add returns the sum.
func (s Spent) Add(t Spent) Spent {
	return Spent{s.Calls + t.Calls, s.Tokens + t.Tokens, s.MicroUSD + t.MicroUSD}
}

// Allows says whether a budget leaves room for next, given what was spent in the campaign and today. The error wraps ErrBudget
// and names the limit.
func (b Budget) Allows(campaign, today, next Spent) error {
	usd := func(micro int64) float64 { return float64(micro) / 1e6 }
	switch {
	case b.Tokens > 0 && campaign.Tokens+next.Tokens > b.Tokens:
		return fmt.Errorf("%w: %d of %d tokens used, the next call may take %d", ErrBudget, campaign.Tokens, b.Tokens, next.Tokens)
	case b.USD > 0 && usd(campaign.MicroUSD+next.MicroUSD) > b.USD:
		return fmt.Errorf("%w: $%.4f of $%.4f used, the next call may cost $%.4f", ErrBudget, usd(campaign.MicroUSD), b.USD, usd(next.MicroUSD))
	case b.TokensPerDay > 0 && today.Tokens+next.Tokens > b.TokensPerDay:
		return fmt.Errorf("%w for today: %d of %d tokens used, the next call may take %d", ErrBudget, today.Tokens, b.TokensPerDay, next.Tokens)
	case b.USDPerDay > 0 && usd(today.MicroUSD+next.MicroUSD) > b.USDPerDay:
		return fmt.Errorf("%w for today: $%.4f of $%.4f used, the next call may cost $%.4f", ErrBudget, usd(today.MicroUSD), b.USDPerDay, usd(next.MicroUSD))
	default:
		return nil
	}
}

// Day returns the day that a moment's spending counts for: "2026-01-31", in UTC.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
