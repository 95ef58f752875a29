package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
)

// Switches are, by kernel family, the parameters that choose an algorithm rather than tune it: taken as structures, each
// assignment of them is a kernel of its own.
var Switches = map[string][]string{
	"conv":   {"use_shmem", "use_padding", "read_only"},
	"gemm":   {"SA", "SB"},
	"pnpoly": {"between_method", "use_method"},
}

// Split takes a recording apart into one recording for each assignment of the switches, in order of their names. Each keeps
// the whole recording's optimum as Best.
func Split(r *Record, switches []string) ([]*Record, error) {
	chosen := map[string]bool{}
	for _, s := range switches {
		if r.Space.Index(s) < 0 {
			return nil, fmt.Errorf("%s has no parameter %q to take as a structure", r.Name, s)
		}
		chosen[s] = true
	}
	groups := map[string][]line{}
	heads := map[string]Header{}
	pool := r.Space.NewPool()
	for id := range pool.Len() {
		c := r.Space.Configuration(pool.Row(id))
		var label []string
		fixed := map[string]expr.Value{}
		for name, v := range r.Fixed {
			fixed[name] = v
		}
		for _, s := range switches {
			label = append(label, s+"="+c[s].String())
			fixed[s] = c[s]
		}
		key := strings.Join(label, ",")
		if _, ok := heads[key]; !ok {
			h := r.Header
			h.Name, h.Fixed, h.Threads = r.Name+"/"+key, fixed, h.threads()
			h.Params = nil
			for _, p := range r.Params {
				if !chosen[p.Name] {
					h.Params = append(h.Params, p)
				}
			}
			heads[key] = h
		}
		l := line{Fail: r.Fail[id], C: r.Compile[id], B: r.Bench[id]}
		for _, p := range heads[key].Params {
			l.X = append(l.X, c[p.Name])
		}
		if t := r.Time[id]; !math.IsNaN(t) {
			l.T, l.SD = &t, r.Spread[id]*t
		}
		groups[key] = append(groups[key], l)
	}
	return buildParts(r, heads, groups)
}

func buildParts(r *Record, heads map[string]Header, groups map[string][]line) ([]*Record, error) {
	keys := make([]string, 0, len(groups))
	for key := range groups {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out []*Record
	for _, key := range keys {
		part, err := build(heads[key], groups[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", heads[key].Name, err)
		}
		part.Best = r.Best
		out = append(out, part)
	}
	return out, nil
}

// The ways to spend one budget over several structures.
const (
	SpendOffers  = "offers"  // on the structure whose next configuration promises most over the incumbent
	SpendEqually = "equally" // on each in turn
	SpendBest    = "default" // on the one whose default is best, after every default was measured
)

// Contender is a search of one structure that says what its next configuration promises.
type Contender interface {
	optimizer.Optimizer
	// Join lets it read what the others of a family are told.
	Join(f *optimizer.Family)
	// Resume holds a configuration as asked.
	Resume(c optimizer.Configuration) error
	// Adopt holds another structure's configuration as asked, when it carries over and was not tried here.
	Adopt(c optimizer.Configuration) (optimizer.Configuration, bool)
	// Gain is the expected improvement over an objective, in its units.
	Gain(objective float64) float64
}

// Compete spends evaluations over the parts of a recording until one is within share of the whole optimum, and returns how
// many that took; +Inf when the budget was not enough. Each structure's default is a configuration drawn by the seed.
func Compete(ctx context.Context, parts []*Record, searches []Contender, spend string, seed uint64, budget int, within float64) (float64, error) {
	m := &match{parts: parts, searches: searches, spend: spend, best: math.Inf(1), incumbents: make([]float64, len(parts)), told: make([]int, len(parts)), closed: make([]bool, len(parts))}
	for i := range m.incumbents {
		m.incumbents[i] = math.Inf(1)
	}
	limit := parts[0].Best / (1 - within)
	rng := rand.New(rand.NewPCG(seed, 5))
	for i := range parts {
		pool := parts[i].Space.NewPool()
		c := parts[i].Space.Configuration(pool.Row(pool.Draw(rng)))
		if err := searches[i].Resume(c); err != nil {
			return 0, err
		}
		if err := m.tell(ctx, i, c); err != nil {
			return 0, err
		}
		if m.best <= limit {
			return float64(i + 1), nil
		}
	}
	for n := len(parts); n < budget; {
		i := m.choose(n)
		if i < 0 {
			break
		}
		c, err := m.ask(ctx, i)
		if errors.Is(err, optimizer.ErrExhausted) {
			m.closed[i] = true
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", parts[i].Name, err)
		}
		if err := m.tell(ctx, i, c); err != nil {
			return 0, err
		}
		if n++; m.best <= limit {
			return float64(n), nil
		}
	}
	return math.Inf(1), nil
}

// match is one competition under way.
type match struct {
	parts      []*Record
	searches   []Contender
	spend      string
	best       float64
	incumbents []float64
	told       []int
	closed     []bool
	leader     int
	leading    optimizer.Configuration
}

// ask returns the structure's next configuration: of a structure that does not lead, first what the leader's best becomes in
// it.
func (m *match) ask(ctx context.Context, i int) (optimizer.Configuration, error) {
	if m.spend == SpendOffers && m.leader != i && m.leading != nil {
		if c, ok := m.searches[i].Adopt(m.leading); ok {
			return c, nil
		}
	}
	return m.searches[i].Ask(ctx)
}

// probes is how many configurations of each structure are tried before it must compete: its default and one more.
const probes = 2

func (m *match) choose(n int) int {
	best, at := math.Inf(-1), -1
	for i := range m.parts {
		if m.closed[i] {
			continue
		}
		score := 0.0
		switch m.spend {
		case SpendEqually:
			score = -float64(m.told[i])
		case SpendBest:
			score = -m.incumbents[i]
		case SpendOffers:
			if m.told[i] < probes {
				score = math.Inf(1)
			} else {
				score = m.searches[i].Gain(m.best)
			}
		default:
			panic(fmt.Sprintf("replay: spend %q is unknown", m.spend))
		}
		if score > best || at < 0 {
			best, at = score, i
		}
	}
	return at
}

func (m *match) tell(ctx context.Context, i int, c optimizer.Configuration) error {
	r := m.parts[i]
	row, err := r.Space.Row(c)
	if err != nil {
		return err
	}
	id, _ := r.Space.NewPool().ID(row)
	o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed, FailKind: r.Fail[id]}
	if t := r.Time[id]; !math.IsNaN(t) {
		o.Outcome, o.Value = optimizer.OutcomeMeasured, t
		if t < m.best {
			m.best, m.leader, m.leading = t, i, c
		}
		if m.told[i] == 0 || m.spend != SpendBest { // the default decides once and for all
			m.incumbents[i] = math.Min(m.incumbents[i], t)
		}
	}
	m.told[i]++
	return m.searches[i].Tell(ctx, o)
}
