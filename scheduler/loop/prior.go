package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/replay"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

// Limits of what earlier campaigns give: the newest ones, and few enough places that a model can weigh each.
const (
	priorCampaigns = 12
	priorSources   = 6
	priorRows      = 20_000 // of one source
)

// informer is an optimizer that reads what was measured elsewhere.
type informer interface {
	Inform(sources []optimizer.Source) (used []string, err error)
}

// offer looks for earlier measurements of a structure that has just joined, gives them to its search and writes them down.
func (l *Loop) offer(number int) error {
	search, from := l.searches[number-1], l.campaign.Settings.Transfer
	if search.optimizer == nil || !from.Auto && len(l.cfg.Records) == 0 {
		return nil
	}
	st := l.structures[number-1]
	sources := recorded(st, l.cfg.Records)
	if from.Auto {
		found, err := l.earlier(context.Background(), st) // reads the store's own disk; a stop is noticed after it
		if err != nil {
			return fmt.Errorf("structure %s: look for earlier campaigns: %w", st.Name, err)
		}
		sources = append(sources, found...)
	}
	if len(sources) == 0 {
		return nil
	}
	p := &scheduler.Prior{Structure: number, Sources: sources}
	if err := l.inform(p); err != nil {
		return err
	}
	return l.emit(scheduler.EventPrior, 0, p)
}

// inform gives a prior to its structure's search, and marks what is used.
func (l *Loop) inform(p *scheduler.Prior) error {
	if p.Structure < 1 || p.Structure > len(l.searches) {
		return fmt.Errorf("a prior names structure %d of %d: restore a copy of the store", p.Structure, len(l.searches))
	}
	blind := "the optimizer " + l.campaign.Settings.Optimizer + " reads no earlier measurements; portfolio and gp do"
	i, ok := l.searches[p.Structure-1].optimizer.(informer)
	if !ok {
		p.Ignored = blind
		return nil
	}
	given := make([]optimizer.Source, len(p.Sources))
	for k := range p.Sources {
		s := &p.Sources[k]
		if err := s.Check(); err != nil {
			return fmt.Errorf("prior of structure %d: %w", p.Structure, err)
		}
		given[k] = sourceOf(s)
	}
	used, err := i.Inform(given)
	if errors.Is(err, optimizer.ErrNoRecords) {
		p.Ignored = blind
		return nil
	}
	if err != nil {
		return fmt.Errorf("structure %s: %w", l.structures[p.Structure-1].Name, err)
	}
	for k := range p.Sources {
		p.Sources[k].Used = slices.Contains(used, p.Sources[k].Name)
	}
	if len(used) == 0 {
		p.Ignored = "they measured no configuration of this space"
	}
	return nil
}

func sourceOf(s *scheduler.PriorSource) optimizer.Source {
	out := optimizer.Source{Name: s.Name, Observations: make([]optimizer.Observation, len(s.Rows))}
	for i, row := range s.Rows {
		c := make(optimizer.Configuration, len(row))
		for k, v := range row {
			c[s.Params[k]] = v
		}
		o := optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed}
		if s.Values[i] > 0 {
			o.Outcome, o.Value = optimizer.OutcomeMeasured, s.Values[i]
		}
		out.Observations[i] = o
	}
	return out
}

// recorded returns the recordings whose parameters are the structure's.
func recorded(st *harness.Structure, records []*replay.Record) []scheduler.PriorSource {
	var out []scheduler.PriorSource
	for _, r := range records {
		if !SameParams(st, r) {
			continue
		}
		s := scheduler.PriorSource{Name: r.Name, Arch: r.GPU, File: r.Path, Params: paramNames(st)}
		pool := r.Space.NewPool()
		for id, t := range r.Time {
			if len(s.Rows) == priorRows {
				break
			}
			if math.IsNaN(t) {
				t = 0
			}
			s.Add(r.Space.Configuration(pool.Row(id)), t)
		}
		out = append(out, s)
	}
	return out
}

// SameParams reports whether a recording has exactly the parameters of a structure.
func SameParams(st *harness.Structure, r *replay.Record) bool {
	if len(st.Params) != r.Space.Dims() {
		return false
	}
	for _, p := range st.Params {
		if r.Space.Index(p.Name) < 0 {
			return false
		}
	}
	return true
}

func paramNames(st *harness.Structure) []string {
	out := make([]string, len(st.Params))
	for i, p := range st.Params {
		out[i] = p.Name
	}
	return out
}

// earlier returns what other campaigns of the store measured of the same structure file: one source for each arch, task and
// reward, whose values can be compared.
func (l *Loop) earlier(ctx context.Context, st *harness.Structure) ([]scheduler.PriorSource, error) {
	uses, err := l.cfg.Store.Uses(ctx, st.Digest, l.campaign.ID, priorCampaigns)
	if err != nil {
		return nil, err
	}
	groups, order := map[string]*gathered{}, []string{}
	for _, u := range uses {
		row, err := l.cfg.Store.Campaign(ctx, u.Campaign)
		if err != nil {
			return nil, err
		}
		c := &row.Campaign
		key := fmt.Sprintf("%s|%s|%v", c.Baseline.Options.Arch, c.Task.Digest, c.Reward)
		g := groups[key]
		if g == nil {
			if len(groups) == priorSources {
				continue
			}
			g = &gathered{arch: c.Baseline.Options.Arch, task: c.Task.Name, values: map[string]*seen{}}
			groups[key], order = g, append(order, key)
		}
		if err := l.gather(ctx, u.Campaign, u.Number, g); err != nil {
			return nil, fmt.Errorf("campaign %s: %w", u.Campaign, err)
		}
	}
	var out []scheduler.PriorSource
	for _, key := range order {
		if s := groups[key].source(st); len(s.Rows) > 0 {
			s.Name = fmt.Sprintf("%s (%d)", s.Name, len(out)+1)
			out = append(out, s)
		}
	}
	return out, nil
}

// gathered is what the campaigns of one group measured, by configuration.
type gathered struct {
	arch, task string
	campaigns  []string // newest first
	values     map[string]*seen
}

// seen is one configuration: the sum of ln(objective) over its measurements.
type seen struct {
	config harness.Configuration
	sum    float64
	n      int // 0: it failed
}

// gather reads the log of one campaign: the outcomes of its suggestions for one structure.
func (l *Loop) gather(ctx context.Context, campaign string, number int, g *gathered) error {
	flying := map[int64]harness.Configuration{}
	before := len(g.values)
	err := l.cfg.Store.Events(ctx, campaign, 0, func(e *scheduler.Event) error {
		if e.Kind != scheduler.EventPlanned && (e.Kind != scheduler.EventOutcome || flying[e.Trial] == nil) || len(g.values) >= priorRows {
			return nil
		}
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		switch d := data.(type) {
		case *scheduler.Trial:
			if d.Purpose == scheduler.PurposeSearch && d.Point.Structure == number && d.Point.Configuration != nil {
				flying[e.Trial] = d.Point.Configuration
			}
		case *scheduler.Summary:
			if c := flying[e.Trial]; !d.Cached {
				g.add(c, observation(&scheduler.Trial{Point: scheduler.Point{Configuration: c}}, d))
			}
			delete(flying, e.Trial)
		default:
		}
		return nil
	})
	if len(g.values) > before {
		g.campaigns = append(g.campaigns, campaign)
	}
	return err
}

func (g *gathered) add(c harness.Configuration, o optimizer.Observation) {
	measured := o.Outcome == optimizer.OutcomeMeasured || o.Outcome == optimizer.OutcomeNoisy
	if !measured && o.Outcome != optimizer.OutcomeFailed {
		return // a bound, or nothing learned
	}
	key := optimizer.Hash(c)
	s := g.values[key]
	if s == nil {
		s = &seen{config: c}
		g.values[key] = s
	}
	if measured {
		s.sum += math.Log(o.Value)
		s.n++
	}
}

// source returns the group as it is written down, in a fixed order.
func (g *gathered) source(st *harness.Structure) scheduler.PriorSource {
	s := scheduler.PriorSource{Name: g.task + " on " + g.arch, Arch: g.arch, Campaigns: slices.Clone(g.campaigns), Params: paramNames(st)}
	slices.Reverse(s.Campaigns)
	keys := make([]string, 0, len(g.values))
	for k := range g.values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		v := g.values[k]
		value := 0.0
		if v.n > 0 {
			value = math.Exp(v.sum / float64(v.n))
		}
		if whole(v.config, s.Params) {
			s.Add(v.config, value)
		}
	}
	return s
}

// whole reports whether a configuration has a value for each parameter.
func whole(c harness.Configuration, params []string) bool {
	for _, p := range params {
		if v, ok := c[p]; !ok || v == (expr.Value{}) {
			return false
		}
	}
	return true
}
