// Package study keeps a goptuna study (in memory) equal to an optimizer.History and proposes configurations through goptuna's
// samplers. Parameters are goptuna distributions over value indices: IntUniform for ordered ones, Categorical for the rest.
// goptuna v0.9 has no Ask and Tell; this is the way round (CreateNewTrial, CallRelativeSampler, SuggestX, SetTrialValue).
package study

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/c-bata/goptuna"

	"ridgepoint/optimizer"
)

// Strategy proposes through a goptuna study.
type Strategy struct {
	study  *goptuna.Study
	space  *optimizer.Space
	dists  map[string]any
	open   map[int]int // configuration id to running goptuna trial
	synced int         // trials of the history that the study has
	tries  int
	repair func(h *optimizer.History, row optimizer.Row) (int, error)
}

// Options says which samplers a study uses.
type Options struct {
	Sampler  goptuna.Sampler         // for parameters one by one
	Relative goptuna.RelativeSampler // for all parameters together; nil: none
	Tries    int                     // suggestions until an open feasible one is found; then Repair decides
	// Repair returns an open configuration near a suggested row that is infeasible or not open.
	Repair func(h *optimizer.History, row optimizer.Row) (int, error)
}

// New returns a strategy over a fresh study of the space.
func New(space *optimizer.Space, o Options) (*Strategy, error) {
	s := &Strategy{space: space, dists: Distributions(space), open: map[int]int{}, tries: o.Tries, repair: o.Repair}
	options := []goptuna.StudyOption{
		goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionStorage(goptuna.NewInMemoryStorage()),
		goptuna.StudyOptionDefineSearchSpace(s.dists),
		goptuna.StudyOptionSampler(o.Sampler),
	}
	if o.Relative != nil {
		options = append(options, goptuna.StudyOptionRelativeSampler(o.Relative))
	}
	var err error
	s.study, err = goptuna.CreateStudy("ridgepoint", options...)
	if err != nil {
		return nil, fmt.Errorf("create a goptuna study: %w", err)
	}
	return s, nil
}

// Distributions returns the goptuna distribution of each parameter with more than one value, over value indices. A single
// value is left out: goptuna's TPE hangs on low == high.
func Distributions(space *optimizer.Space) map[string]any {
	out := map[string]any{}
	for i, name := range space.Names() {
		n := len(space.Values(i))
		switch {
		case n == 1:
		case space.Ordered(i):
			out[name] = goptuna.IntUniformDistribution{Low: 0, High: n - 1}
		default:
			out[name] = goptuna.CategoricalDistribution{Choices: choices(n)}
		}
	}
	return out
}

func choices(n int) []string {
	out := make([]string, n)
	for k := range out {
		out[k] = strconv.Itoa(k)
	}
	return out
}

// Propose brings the study up to the history and suggests one configuration.
func (s *Strategy) Propose(ctx context.Context, h *optimizer.History) (int, error) {
	if h.Remaining() <= 0 {
		return 0, optimizer.ErrExhausted
	}
	if err := s.sync(h); err != nil {
		return 0, err
	}
	var row optimizer.Row
	for range max(1, s.tries) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		trialID, suggested, err := s.suggest()
		if err != nil {
			return 0, err
		}
		row = suggested
		if id, ok := h.Pool.ID(row); ok && h.Open(id) {
			s.open[id] = trialID
			return id, nil
		}
		if err := s.discard(trialID); err != nil {
			return 0, err
		}
	}
	if s.repair == nil {
		return 0, fmt.Errorf("goptuna's sampler gave no open feasible configuration in %d tries", s.tries)
	}
	return s.repair(h, row)
}

func (s *Strategy) suggest() (int, optimizer.Row, error) {
	trialID, err := s.study.Storage.CreateNewTrial(s.study.ID)
	if err != nil {
		return 0, nil, fmt.Errorf("create a goptuna trial: %w", err)
	}
	trial := goptuna.Trial{Study: s.study, ID: trialID}
	if err := trial.CallRelativeSampler(); err != nil {
		return 0, nil, err
	}
	row := make(optimizer.Row, s.space.Dims())
	for i, name := range s.space.Names() {
		k, err := s.suggestIndex(&trial, name)
		if err != nil {
			return 0, nil, fmt.Errorf("goptuna's suggestion for %s: %w", name, err)
		}
		row[i] = uint16(k)
	}
	return trialID, row, nil
}

func (s *Strategy) suggestIndex(trial *goptuna.Trial, name string) (int, error) {
	switch d := s.dists[name].(type) {
	case nil:
		return 0, nil
	case goptuna.IntUniformDistribution:
		k, err := trial.SuggestInt(name, d.Low, d.High)
		return min(max(k, d.Low), d.High), err // the shipped TPE leaves its bounds
	case goptuna.CategoricalDistribution:
		text, err := trial.SuggestCategorical(name, d.Choices)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	default:
		return 0, fmt.Errorf("distribution %T is unknown", d)
	}
}

// sync tells the study what the history has and the study has not.
func (s *Strategy) sync(h *optimizer.History) error {
	for _, id := range h.Pending() {
		if _, ok := s.open[id]; !ok {
			trialID, err := s.inject(h.Pool.Row(id))
			if err != nil {
				return err
			}
			s.open[id] = trialID
		}
	}
	for ; s.synced < len(h.Trials); s.synced++ {
		if err := s.finish(h, h.Trials[s.synced]); err != nil {
			return err
		}
	}
	var errs []error
	for id, trialID := range s.open {
		if h.Status(id) != optimizer.StatusPending {
			errs = append(errs, s.discard(trialID))
			delete(s.open, id)
		}
	}
	return errors.Join(errs...)
}

func (s *Strategy) inject(row optimizer.Row) (int, error) {
	trialID, err := s.study.Storage.CreateNewTrial(s.study.ID)
	if err != nil {
		return 0, fmt.Errorf("create a goptuna trial: %w", err)
	}
	for i, name := range s.space.Names() {
		if d, ok := s.dists[name]; ok {
			if err := s.study.Storage.SetTrialParam(trialID, name, float64(row[i]), d); err != nil {
				return 0, fmt.Errorf("set a goptuna parameter: %w", err)
			}
		}
	}
	return trialID, nil
}

func (s *Strategy) finish(h *optimizer.History, t optimizer.Trial) error {
	trialID, ok := s.open[t.ID]
	if !ok {
		var err error
		if trialID, err = s.inject(h.Pool.Row(t.ID)); err != nil {
			return err
		}
	}
	delete(s.open, t.ID)
	state := goptuna.TrialStateComplete
	switch {
	case t.Failed:
		state = goptuna.TrialStateFail
	case t.Censored:
		state = goptuna.TrialStatePruned
	}
	if err := s.study.Storage.SetTrialValue(trialID, t.Log); err != nil {
		return fmt.Errorf("set a goptuna value: %w", err)
	}
	return s.study.Storage.SetTrialState(trialID, state)
}

// discard ends a goptuna trial of which nothing was learned.
func (s *Strategy) discard(trialID int) error {
	return s.study.Storage.SetTrialState(trialID, goptuna.TrialStateFail)
}
