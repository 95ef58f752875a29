package pool

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os/exec"
	"sort"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ridgepoint/llm"
	"ridgepoint/llm/command"
	"ridgepoint/llm/openai"
)

// Hooks connect a pool to its surroundings. EnvFunc, ReadFileFunc and NowFunc are needed; the others may be nil.
type Hooks struct {
	EnvFunc      func(name string) string
	ReadFileFunc func(path string) ([]byte, error)
	NowFunc      func() time.Time
	SleepFunc    func(ctx context.Context, d time.Duration) error
	// ArrivedFunc must make a reply, with its cost, durable: what has arrived is never paid for again.
	ArrivedFunc func(requestID string, r *llm.Reply) error
	SandboxFunc func(cmd *exec.Cmd, c command.Confinement) (bool, error)
}

// Ledger is what was spent before: by the campaign, and by day (llm.Day). A resumed campaign hands over what its log says.
type Ledger struct {
	Campaign llm.Spent
	Days     map[string]llm.Spent
}

// Pool answers requests by the models of a campaign. It is safe for concurrent use.
type Pool struct {
	members []*member
	hooks   Hooks
	seed    uint64
	scrub   llm.Scrubber

	mu       sync.Mutex
	budget   llm.Budget
	ledger   Ledger
	reserved llm.Spent // by calls in flight
}

// member is one model with its state; the pool's mutex guards aside and failures.
type member struct {
	model    Model
	client   limited
	requests *rate.Limiter
	tokens   *rate.Limiter
	aside    time.Time // not asked before
	failures int       // in a row
}

type limited interface {
	llm.Client
	MaxTokens() int
}

// The pause of a failing model: doubling from 15 s to ten minutes; at once ten minutes when a person must act.
const (
	firstAside   = 15 * time.Second
	longestAside = 10 * time.Minute
)

// New makes the clients of all models. It reads their keys.
func New(c Config, seed uint64, ledger Ledger, h Hooks) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if ledger.Days == nil {
		ledger.Days = map[string]llm.Spent{}
	}
	if h.SleepFunc == nil {
		h.SleepFunc = sleep
	}
	p := &Pool{hooks: h, seed: seed, budget: c.Budget, ledger: ledger}
	var secrets []llm.Secret
	for _, model := range c.Models {
		m := &member{model: model, requests: perMinute(model.RequestsPerMinute), tokens: perMinute(model.TokensPerMinute)}
		found, err := m.connect(h)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, found...)
		p.members = append(p.members, m)
	}
	p.scrub = llm.NewScrubber(secrets...)
	return p, nil
}

func perMinute(n float64) *rate.Limiter {
	if n == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(n/60), max(1, int(n)))
}

// connect makes the member's client and returns the secrets that it holds.
func (m *member) connect(h Hooks) ([]llm.Secret, error) {
	arrived := func(id string, r *llm.Reply) error {
		r.CostMicroUSD = m.model.Price.Cost(r.Usage.Add(r.Wasted))
		if h.ArrivedFunc == nil {
			return nil
		}
		return h.ArrivedFunc(id, r)
	}
	if len(m.model.Command) > 0 {
		client, err := command.New(m.model.program(), command.Hooks{EnvFunc: h.EnvFunc, SandboxFunc: h.SandboxFunc, ArrivedFunc: arrived, SleepFunc: h.SleepFunc})
		if err != nil {
			return nil, err
		}
		var secrets []llm.Secret
		for _, name := range m.model.Env {
			secrets = append(secrets, llm.NewSecret(h.EnvFunc(name)))
		}
		m.client = client
		return secrets, nil
	}
	credentials, err := m.model.credentials(h)
	if err != nil {
		return nil, err
	}
	client, err := openai.New(m.model.endpoint(), credentials, openai.Hooks{SleepFunc: h.SleepFunc, NowFunc: h.NowFunc, ArrivedFunc: arrived})
	if err != nil {
		return nil, err
	}
	m.client = client
	return credentials.Secrets(), nil
}

// Scrubber removes all keys of the pool from a text.
func (p *Pool) Scrubber() llm.Scrubber { return p.scrub }

// Has reports whether a model of the given role (llm.Author, llm.Analyst) is configured.
func (p *Pool) Has(role string) bool {
	for _, m := range p.members {
		if m.model.role() == role {
			return true
		}
	}
	return false
}

// Spent returns what the campaign used so far, and its budget.
func (p *Pool) Spent() (llm.Spent, llm.Budget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.Campaign, p.budget
}

// SetBudget replaces the budget from the next call on.
func (p *Pool) SetBudget(b llm.Budget) error {
	if err := b.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = b
	return nil
}

// Complete asks the model that the request names, or one drawn by weight; when that one fails, the others of the same role. The draw
// is a function of the seed and the request's id. The error is the last model's; all models being set aside, it says until when.
func (p *Pool) Complete(ctx context.Context, r *llm.Request) (*llm.Reply, error) {
	order := p.order(r)
	if len(order) == 0 {
		return nil, fmt.Errorf("request %s: no model is configured for %s %s", r.ID, r.For, r.Model)
	}
	var last error
	for _, m := range order {
		if wait := p.setAside(m); wait > 0 {
			if last == nil {
				last = &llm.Error{Kind: llm.KindServer, Model: m.model.Name, RetryAfter: wait, Reason: "set aside after failures, for " + wait.Round(time.Second).String() + " more"}
			}
			continue
		}
		reply, err := p.ask(ctx, m, r)
		if err == nil || errors.Is(err, llm.ErrBudget) || ctx.Err() != nil {
			return reply, err
		}
		var failed *llm.Error
		if !errors.As(err, &failed) {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// order returns the members that may answer, the drawn one first, the others by falling weight.
func (p *Pool) order(r *llm.Request) []*member {
	var order []*member
	total := 0.0
	for _, m := range p.members {
		if (r.Model == "" && m.model.role() == r.For) || (r.Model != "" && m.model.Name == r.Model) {
			order = append(order, m)
			total += m.model.weight()
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].model.weight() > order[j].model.weight() })
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(p.seed, 16) + "/" + r.ID)) // a hash does not fail
	left := float64(mix(h.Sum64())>>11) / (1 << 53) * total
	for i, m := range order {
		if left -= m.model.weight(); left < 0 {
			copy(order[1:i+1], order[:i])
			order[0] = m
			break
		}
	}
	return order
}

// mix spreads the bits of a hash over the word (the finisher of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (p *Pool) setAside(m *member) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return m.aside.Sub(p.hooks.NowFunc())
}

// ask sends one request to one member within budget and rates, and counts what it used.
func (p *Pool) ask(ctx context.Context, m *member, r *llm.Request) (*llm.Reply, error) {
	reply := r.MaxTokens
	if reply == 0 {
		reply = m.client.MaxTokens()
	}
	most := llm.Usage{PromptTokens: r.PromptTokens(), CompletionTokens: reply}
	hold := llm.Spent{Calls: 1, Tokens: int64(most.Total()), MicroUSD: m.model.Price.Cost(most)}
	if err := p.reserve(hold); err != nil {
		return nil, err
	}
	used := llm.Spent{}
	defer func() { p.settle(hold, used) }()
	if err := p.wait(ctx, m.requests, 1); err != nil {
		return nil, err
	}
	if err := p.wait(ctx, m.tokens, most.PromptTokens); err != nil {
		return nil, err
	}
	got, err := m.client.Complete(ctx, r)
	if err != nil {
		var failed *llm.Error
		if errors.As(err, &failed) {
			failed.CostMicroUSD = m.model.Price.Cost(failed.Wasted)
			used = llm.Spent{Calls: int64(failed.Calls), Tokens: int64(failed.Wasted.Total()), MicroUSD: failed.CostMicroUSD}
			p.failed(m, failed)
		}
		return nil, err
	}
	total := got.Usage.Add(got.Wasted)
	used = llm.Spent{Calls: int64(got.Calls), Tokens: int64(total.Total()), MicroUSD: got.CostMicroUSD}
	p.mu.Lock()
	m.failures, m.aside = 0, time.Time{}
	p.mu.Unlock()
	// Completion tokens are paid after the fact: they delay the next call.
	m.tokens.ReserveN(p.hooks.NowFunc(), min(max(0, total.Total()-most.PromptTokens), max(1, m.tokens.Burst())))
	return got, nil
}

func (p *Pool) failed(m *member, e *llm.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.failures++
	pause := min(firstAside<<min(m.failures-1, 10), longestAside)
	if !e.Kind.Retryable() && e.Kind != llm.KindTooLarge && e.Kind != llm.KindRefused {
		pause = longestAside
	}
	m.aside = p.hooks.NowFunc().Add(max(pause, e.RetryAfter))
	e.RetryAfter = max(pause, e.RetryAfter)
}

func (p *Pool) reserve(hold llm.Spent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	today := p.ledger.Days[llm.Day(p.hooks.NowFunc())]
	if err := p.budget.Allows(p.ledger.Campaign.Add(p.reserved), today.Add(p.reserved), hold); err != nil {
		return err
	}
	p.reserved = p.reserved.Add(hold)
	return nil
}

func (p *Pool) settle(hold, used llm.Spent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved = p.reserved.Add(llm.Spent{Calls: -hold.Calls, Tokens: -hold.Tokens, MicroUSD: -hold.MicroUSD})
	day := llm.Day(p.hooks.NowFunc())
	p.ledger.Campaign = p.ledger.Campaign.Add(used)
	p.ledger.Days[day] = p.ledger.Days[day].Add(used)
}

// wait takes n from a bucket, sleeping until it has them.
func (p *Pool) wait(ctx context.Context, bucket *rate.Limiter, n int) error {
	if bucket.Limit() == rate.Inf {
		return ctx.Err()
	}
	now := p.hooks.NowFunc()
	r := bucket.ReserveN(now, min(n, bucket.Burst()))
	d := r.DelayFrom(now)
	if d == 0 {
		return ctx.Err()
	}
	if err := p.hooks.SleepFunc(ctx, d); err != nil {
		r.CancelAt(p.hooks.NowFunc())
		return err
	}
	return nil
}

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
