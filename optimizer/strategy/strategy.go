// Package strategy makes optimizers by name: it wraps a strategy with the history of one space. It does no I/O and reads no
// clock.
package strategy

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/gp"
	"ridgepoint/optimizer/local"
	"ridgepoint/optimizer/portfolio"
	"ridgepoint/optimizer/random"
	"ridgepoint/optimizer/tpe"
	"ridgepoint/optimizer/transfer"
)

// Options are what an optimizer needs besides its space.
type Options struct {
	Seed uint64
	// Prior is what was measured of the space elsewhere; nil: nothing. Only gp and portfolio use it.
	Prior *transfer.Prior
	// Without is a part of gp and portfolio that an ablation leaves out: one of gp.Parts, or "arms", portfolio's minor arms; empty:
	// none.
	Without string
}

// makers are the strategies by name.
var makers = map[string]func(*optimizer.Space, Options) (optimizer.Strategy, error){
	"random": func(_ *optimizer.Space, o Options) (optimizer.Strategy, error) { return random.New(o.Seed), nil },
	"tpe": func(s *optimizer.Space, o Options) (optimizer.Strategy, error) {
		return tpe.New(s, o.Seed)
	},
	"gp": func(_ *optimizer.Space, o Options) (optimizer.Strategy, error) {
		return newGP(o)
	},
	"local":     func(_ *optimizer.Space, o Options) (optimizer.Strategy, error) { return local.New(o.Seed), nil },
	"portfolio": newPortfolio,
	"goptuna-tpe": func(s *optimizer.Space, o Options) (optimizer.Strategy, error) {
		return tpe.Shipped(s, o.Seed)
	},
}

// How many proposals the portfolio's lead has alone. A model of what was seen here alone pays off from the start, and up to 80
// evaluations nothing is better; with records that mislead, the other arms are what finds the optimum within 80.
const (
	aloneCold = 80
	aloneWarm = 40
)

// WithoutArms leaves a portfolio its lead alone.
const WithoutArms = "arms"

func newGP(o Options) (optimizer.Strategy, error) {
	g := gp.Options{Seed: o.Seed}
	if o.Without != "" && o.Without != WithoutArms {
		var err error
		if g.Without, err = gp.ParsePart(o.Without); err != nil {
			return nil, err
		}
	}
	if o.Prior != nil {
		return gp.NewWarm(g, o.Prior), nil
	}
	return gp.New(g), nil
}

func newPortfolio(space *optimizer.Space, o Options) (optimizer.Strategy, error) {
	lead, err := newGP(o)
	if err != nil || o.Without == WithoutArms {
		return lead, err
	}
	estimator, err := tpe.New(space, o.Seed)
	if err != nil {
		return nil, err
	}
	alone := aloneCold
	if o.Prior != nil {
		alone = aloneWarm
	}
	return portfolio.New(alone, portfolio.Arm{Name: "gp", Strategy: lead}, portfolio.Arm{Name: "local", Strategy: local.New(o.Seed)},
		portfolio.Arm{Name: "tpe", Strategy: estimator}), nil
}

// Names returns the strategies that New knows, sorted.
func Names() []string {
	names := make([]string, 0, len(makers))
	for name := range makers {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Search is an optimizer of one space with one strategy.
type Search struct {
	name     string
	options  Options
	history  *optimizer.History
	strategy optimizer.Strategy
}

var _ optimizer.Optimizer = (*Search)(nil)

// New returns the optimizer of a space with the named strategy.
func New(name string, space *optimizer.Space, o Options) (*Search, error) {
	maker, ok := makers[name]
	if !ok {
		return nil, fmt.Errorf("strategy %q is unknown: use one of %s", name, strings.Join(Names(), ", "))
	}
	s, err := maker(space, o)
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", name, err)
	}
	return &Search{name: name, options: o, history: optimizer.NewHistory(space), strategy: s}, nil
}

// takesRecords are the strategies whose model reads records.
var takesRecords = map[string]bool{"gp": true, "portfolio": true}

// ReadsRecords reports whether the named strategy has a use for records: Options.Prior and Inform.
func ReadsRecords(name string) bool { return takesRecords[name] }

// Inform gives a search that was asked and told nothing yet what was measured of the same structure elsewhere, as a prior. It
// returns the names of the sources that share a measured configuration with the space; optimizer.ErrNoRecords says that the
// strategy reads none.
func (s *Search) Inform(sources []optimizer.Source) ([]string, error) {
	if !takesRecords[s.name] {
		return nil, fmt.Errorf("strategy %s: %w", s.name, optimizer.ErrNoRecords)
	}
	if s.history.Asks+s.history.Tells > 0 {
		return nil, fmt.Errorf("strategy %s: records came after %d asks and %d tells: give them first", s.name, s.history.Asks, s.history.Tells)
	}
	prior, err := transfer.New(s.history.Pool.Space(), sources)
	if err != nil || prior == nil {
		return nil, err
	}
	o := s.options
	o.Prior = prior
	informed, err := makers[s.name](s.history.Pool.Space(), o)
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", s.name, err)
	}
	s.options, s.strategy = o, informed
	return prior.Sources(), nil
}

// Ask returns the next configuration to try and holds it pending.
func (s *Search) Ask(ctx context.Context) (optimizer.Configuration, error) {
	id, err := s.strategy.Propose(ctx, s.history)
	if err != nil {
		return nil, err
	}
	if !s.history.Open(id) {
		panic(fmt.Sprintf("strategy: %T proposed configuration %d, which is not open", s.strategy, id))
	}
	s.hold(id)
	return s.history.Pool.Space().Configuration(s.history.Pool.Row(id)), nil
}

// Tell adds an observation; see optimizer.History.
func (s *Search) Tell(_ context.Context, o optimizer.Observation) error {
	_, err := s.history.Tell(o)
	return err
}

// Resume holds a configuration pending as Ask would, without proposing: for rebuilding an optimizer from the log of asks and
// tells, after which it proposes what the optimizer that wrote the log would have.
func (s *Search) Resume(c optimizer.Configuration) error {
	row, err := s.history.Pool.Space().Row(c)
	if err != nil {
		return err
	}
	id, ok := s.history.Pool.ID(row)
	if !ok {
		return fmt.Errorf("resume: %w", optimizer.ErrInfeasible)
	}
	if !s.history.Open(id) {
		return fmt.Errorf("resume: configuration %v was asked or told before", c)
	}
	s.hold(id)
	return nil
}

// Adopt holds pending what a configuration of another structure's space becomes in this one, and returns it; ok is false when
// it does not carry over or was tried here before. The incumbent of a campaign, adopted, tells more of a structure than its
// own first draws do.
func (s *Search) Adopt(c optimizer.Configuration) (adopted optimizer.Configuration, ok bool) {
	space := s.history.Pool.Space()
	adopted, ok = space.Project(c)
	if !ok {
		return nil, false
	}
	row, err := space.Row(adopted)
	if err != nil {
		return nil, false
	}
	id, ok := s.history.Pool.ID(row)
	if !ok || !s.history.Open(id) {
		return nil, false
	}
	s.hold(id)
	return adopted, true
}

// hold marks an asked configuration as pending.
func (s *Search) hold(id int) {
	if a, ok := s.strategy.(interface{ Asked(*optimizer.History, int) }); ok {
		a.Asked(s.history, id)
	}
	s.history.Ask(id)
}

// Join makes the search one of several of a campaign, one for each structure: its model reads what the others were told, as far
// as their parameters carry over. It must not have been told anything yet.
func (s *Search) Join(f *optimizer.Family) { s.history.Join(f) }

// History returns what was asked and told. The caller must not change it.
func (s *Search) History() *optimizer.History { return s.history }
