package loop

import (
	"context"
	"fmt"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/optimizer"
	"ridgepoint/scheduler"
)

// resumer is an optimizer that can be rebuilt from its log without repeating the work of its asks: Resume notes that the
// next ask was answered so.
type resumer interface {
	Resume(c optimizer.Configuration) error
}

// gainer is an optimizer that says what it expects of its best next configuration: the expected improvement over objective.
type gainer interface {
	Gain(objective float64) float64
}

// joiner is an optimizer that reads what the optimizers of a campaign's other structures are told.
type joiner interface {
	Join(f *optimizer.Family)
}

// search is the parameter search of one structure.
type search struct {
	optimizer optimizer.Optimizer // nil: the structure has no parameters
}

// newSearch builds the space of a structure and its optimizer.
func (l *Loop) newSearch(number int) (*search, error) {
	st := l.structures[number-1]
	if len(st.Params) == 0 {
		return &search{}, nil
	}
	space, err := SpaceOf(l.campaign.Task, st)
	if err != nil {
		return nil, fmt.Errorf("structure %s: %w", st.Name, err)
	}
	o, err := l.cfg.OptimizerFunc(space, mix(l.campaign.Seed^0x6f7074, uint64(number)))
	if err != nil {
		return nil, fmt.Errorf("structure %s: %w", st.Name, err)
	}
	if j, ok := o.(joiner); ok {
		j.Join(l.family)
	}
	return &search{optimizer: o}, nil
}

// SpaceOf builds the optimizer's space from a structure's declarations. Constraints hold at every scored size.
func SpaceOf(t *harness.Task, st *harness.Structure) (*optimizer.Space, error) {
	d := optimizer.Declaration{Constraints: st.Constraints, Default: st.Default}
	for _, p := range st.Params {
		d.Params = append(d.Params, optimizer.Param{Name: p.Name, Type: p.Type, Values: p.Values, Min: p.Min, Max: p.Max, Step: p.Step, Log: p.Log, When: p.When})
	}
	for _, size := range t.ScoredSizes(st.Target) {
		d.Cases = append(d.Cases, map[string]expr.Value(size.Env(nil)))
	}
	d.Threads = threads(st)
	return optimizer.New(d)
}

// threads is an expression for the threads of a block of a structure's only launch; "" when it has several, or no blocks.
func threads(st *harness.Structure) string {
	if len(st.Launches) != 1 || len(st.Launches[0].Block) == 0 {
		return ""
	}
	out := ""
	for i, b := range st.Launches[0].Block {
		if i > 0 {
			out += " * "
		}
		out += "(" + b + ")"
	}
	return out
}

func (s *search) ask(ctx context.Context) (optimizer.Configuration, error) {
	if s.optimizer == nil {
		return nil, optimizer.ErrExhausted // the default is all there is
	}
	return s.optimizer.Ask(ctx)
}

// resume notes a planned point with the optimizer: a default, which it was not asked for, or an ask of a stored log.
func (s *search) resume(ctx context.Context, t *scheduler.Trial) error {
	if s.optimizer == nil {
		return nil
	}
	if r, ok := s.optimizer.(resumer); ok {
		return r.Resume(t.Point.Configuration)
	}
	if !t.Asked {
		return nil // it learns of the default when it is told
	}
	c, err := s.optimizer.Ask(ctx)
	if err != nil {
		return fmt.Errorf("ask again: %w", err)
	}
	if !equal(c, t.Point.Configuration) {
		return fmt.Errorf("the optimizer now proposes %v where it proposed %v: it is not reproducible, so the campaign cannot be resumed; use another optimizer", c, t.Point.Configuration)
	}
	return nil
}

func equal(a, b optimizer.Configuration) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !v.Equal(w) {
			return false
		}
	}
	return true
}

// tell reports an outcome to the optimizer.
func (s *search) tell(ctx context.Context, t *scheduler.Trial, o *scheduler.Summary) error {
	if s.optimizer == nil {
		return nil
	}
	if t.Purpose == scheduler.PurposeRemeasure && (!o.Fault.Measured() || o.Censored || o.Quarantined) {
		return nil // it has a value; that it failed later is the contender's affair
	}
	return s.optimizer.Tell(ctx, observation(t, o))
}

func observation(t *scheduler.Trial, o *scheduler.Summary) optimizer.Observation {
	out := optimizer.Observation{Configuration: t.Point.Configuration, Value: o.Objective, Variance: o.Variance, CostSeconds: o.DeviceSeconds}
	switch {
	case o.Fault == harness.FaultInfra:
		out.Outcome, out.Value = optimizer.OutcomeLost, 0
	case o.Quarantined:
		out.Outcome, out.Value, out.FailKind = optimizer.OutcomeFailed, 0, harness.FaultIncorrect.String()
	case o.Censored:
		out.Outcome = optimizer.OutcomeCensored
	case o.Fault == harness.FaultNoisy:
		out.Outcome = optimizer.OutcomeNoisy
	case o.Fault == harness.FaultNone:
		out.Outcome = optimizer.OutcomeMeasured
	default:
		out.Outcome, out.FailKind = optimizer.OutcomeFailed, o.Fault.String()
	}
	return out
}

// gain asks a structure's optimizer for its expected improvement.
func (l *Loop) gain(structure int, objective float64) (float64, bool) {
	g, ok := l.searches[structure-1].optimizer.(gainer)
	if !ok {
		return 0, false
	}
	return g.Gain(objective), true
}
