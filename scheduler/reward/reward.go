// Package reward turns the per-size runtimes of one candidate into a score: DESIGN.md, section 7. It is pure.
//
// Two numbers come of every candidate: the score, which the optimizer within a structure, the confirmation and the crown
// see, and the priority score, which also carries the failures of the candidate's direction and only orders directions and
// structures.
package reward

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// The kinds of reward.
const (
	MeanStdFail = "mean_std_fail" // -(mean + std_weight*std) of t
	Literal     = "literal"       // the same in milliseconds, failures inside the score itself
	Expr        = "expr"          // a Starlark expression
)

// ErrTimes says that a candidate's runtimes cannot be scored.
var ErrTimes = errors.New("runtimes cannot be scored")

// Input is what a reward is computed from. All slices are over the scored sizes, in order.
type Input struct {
	TimesUS    []float64 // medians of the candidate
	BaselineUS []float64 // medians of the baseline, under the same protocol
	BestUS     []float64 // per size the best confirmed; empty: the baseline's
	Fails      int       // failures of the candidate's direction
}

// Score is what a reward says of a candidate.
type Score struct {
	Value     float64 // larger is better
	Priority  float64 // with the direction's failures
	Objective float64 // for optimizers: positive, smaller is better, a decreasing function of Value
}

// Reward is a compiled reward. It is safe for concurrent use.
type Reward struct {
	spec harness.Reward
	expr *expr.Expr // kind expr
}

// New checks a reward as written and compiles it.
func New(spec harness.Reward) (*Reward, error) {
	switch spec.Kind {
	case MeanStdFail:
		if spec.Per != "ratio_to_baseline" && spec.Per != "milliseconds" {
			return nil, fmt.Errorf("reward.per %q: want ratio_to_baseline or milliseconds", spec.Per)
		}
	case Literal:
	case Expr:
		return compile(spec)
	default:
		return nil, fmt.Errorf("reward.kind %q is not known: want %s, %s or %s", spec.Kind, MeanStdFail, Literal, Expr)
	}
	for name, w := range map[string]float64{"std_weight": spec.StdWeight, "fail_weight": spec.FailWeight} {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("reward.%s is %v: want a finite number, 0 or more", name, w)
		}
	}
	return &Reward{spec: spec}, nil
}

func compile(spec harness.Reward) (*Reward, error) {
	if strings.TrimSpace(spec.Expr) == "" {
		return nil, errors.New("reward.expr is empty: want an expression over t, baseline, best (lists over sizes, µs) and fails")
	}
	e, err := expr.Parse(spec.Expr)
	if err != nil {
		return nil, fmt.Errorf("reward.expr: %w", err)
	}
	for _, name := range e.Names() {
		if name != "fails" && name != "t" && name != "baseline" && name != "best" {
			return nil, fmt.Errorf("reward.expr: name %q is not known: want t, baseline, best (lists over sizes, µs) or fails", name)
		}
	}
	return &Reward{spec: spec, expr: e}, nil
}

// Kind returns the reward's kind.
func (r *Reward) Kind() string { return r.spec.Kind }

// Score computes the score of one candidate. Times must be positive and finite and as many as the baseline's.
func (r *Reward) Score(in Input) (Score, error) {
	if err := in.check(); err != nil {
		return Score{}, err
	}
	switch r.spec.Kind {
	case MeanStdFail:
		v := r.meanStd(in)
		return Score{Value: v, Priority: v - r.spec.FailWeight*float64(in.Fails), Objective: -v}, nil
	case Literal:
		v := -(mean(in.milliseconds()) + r.spec.StdWeight*std(in.milliseconds())) - r.spec.FailWeight*float64(in.Fails)
		return Score{Value: v, Priority: v, Objective: -v}, nil
	case Expr:
		return r.eval(in)
	default:
		return Score{}, fmt.Errorf("reward.kind %q is not known", r.spec.Kind)
	}
}

func (in *Input) check() error {
	if len(in.TimesUS) == 0 || len(in.TimesUS) != len(in.BaselineUS) || len(in.BestUS) != 0 && len(in.BestUS) != len(in.TimesUS) {
		return fmt.Errorf("%w: %d times, %d of the baseline, %d best: want one each per scored size", ErrTimes, len(in.TimesUS), len(in.BaselineUS), len(in.BestUS))
	}
	for _, list := range [][]float64{in.TimesUS, in.BaselineUS, in.BestUS} {
		for i, t := range list {
			if !(t > 0) || math.IsInf(t, 0) {
				return fmt.Errorf("%w: size %d took %v µs: want a positive finite time", ErrTimes, i, t)
			}
		}
	}
	return nil
}

func (in *Input) milliseconds() []float64 {
	out := make([]float64, len(in.TimesUS))
	for i, t := range in.TimesUS {
		out[i] = t / 1000
	}
	return out
}

func (r *Reward) meanStd(in Input) float64 {
	t := in.milliseconds()
	if r.spec.Per == "ratio_to_baseline" {
		for i := range t {
			t[i] = in.TimesUS[i] / in.BaselineUS[i]
		}
	}
	return -(mean(t) + r.spec.StdWeight*std(t))
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// std is the population standard deviation.
func std(x []float64) float64 {
	m := mean(x)
	var sum float64
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)))
}

// eval computes an expression's score. The expression sees the failures itself, so its priority is its value.
func (r *Reward) eval(in Input) (Score, error) {
	best := in.BestUS
	if len(best) == 0 {
		best = in.BaselineUS
	}
	v, err := r.expr.EvalLists(expr.Env{"fails": expr.Int(int64(in.Fails))}, expr.Lists{"t": in.TimesUS, "baseline": in.BaselineUS, "best": best})
	if err != nil {
		return Score{}, fmt.Errorf("reward.expr: %w", err)
	}
	f, ok := v.AsFloat()
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return Score{}, fmt.Errorf("reward.expr gives %s: want a finite number", v)
	}
	return Score{Value: f, Priority: f, Objective: objective(f)}, nil
}

// objective maps any real score to a positive number that falls as the score rises: about -v for v far below zero and 1/v
// far above it, so that ratios of objectives mean what ratios of times or of speedups mean.
func objective(v float64) float64 {
	h := math.Hypot(v, 2)
	if v > 0 {
		return 2 / (h + v)
	}
	return (h - v) / 2
}
