package verify

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ridgepoint/harness"
)

// Aim says what one launch is for.
type Aim struct {
	Shot
	Launch int  // 0: verification; n: the n-th launch of its size
	Timed  bool // a warm-up or timed launch
	Flush  bool // flush the caches before it
	Whole  bool // compare outputs whole even where projections would do
	Poison uint64
}

// Shoot runs one launch in the order that the package comment states and judges it. A candidate's fault is a *Stop with its
// evidence complete.
func Shoot(ctx context.Context, b Bench, l *Layout, s *Set, aim Aim) (Lap, []Comparison, error) {
	if err := b.Write(ctx, s); err != nil {
		return Lap{}, nil, fmt.Errorf("write inputs of %s: %w", l.Size, err)
	}
	if err := b.Poison(ctx, aim.Poison); err != nil {
		return Lap{}, nil, fmt.Errorf("poison outputs of %s: %w", l.Size, err)
	}
	if aim.Flush {
		if err := b.Flush(ctx); err != nil {
			return Lap{}, nil, fmt.Errorf("flush caches: %w", err)
		}
	}
	aim.Shot.Seed = aim.Poison
	lap, err := b.Launch(ctx, aim.Shot)
	if err != nil {
		return lap, nil, blame(err, l, s, aim)
	}
	breach, err := b.Breach(ctx, s)
	if err != nil {
		return lap, nil, blame(err, l, s, aim)
	}
	var found []Comparison
	if breach == nil && lap.Late == nil {
		if found, err = b.Compare(ctx, s, aim.Poison, aim.Whole); err != nil {
			return lap, nil, blame(err, l, s, aim)
		}
	}
	if stop := Judge(lap, breach, found, l, s, aim); stop != nil {
		return lap, found, stop
	}
	return lap, found, nil
}

// Judge returns what is wrong with a launch that has ended, or nil: damaged memory first, then late writes, then the first
// output that is out of tolerance.
func Judge(lap Lap, breach *Breach, found []Comparison, l *Layout, s *Set, aim Aim) *Stop {
	var stop *Stop
	switch {
	case breach != nil:
		stop = breach.stop()
	case lap.Late != nil:
		stop = lap.Late.stop(l)
	default:
		for i := range found {
			if found[i].Mismatches > 0 {
				stop = found[i].stop(l)
				break
			}
		}
	}
	if stop != nil {
		_ = blame(stop, l, s, aim) // fills the evidence in place
	}
	return stop
}

// Blame completes a *Stop's evidence with where it was found; other errors pass unchanged.
func Blame(err error, l *Layout, s *Set, aim Aim) error { return blame(err, l, s, aim) }

// blame is Blame.
func blame(err error, l *Layout, s *Set, aim Aim) error {
	var stop *Stop
	if !errors.As(err, &stop) {
		return err
	}
	e := &stop.Evidence
	e.Size, e.Hidden, e.Distribution, e.InputSet, e.Launch, e.Timed = l.Size, l.Hidden, s.Distribution, s.Index, aim.Launch, aim.Timed
	return stop
}

func (b *Breach) stop() *Stop {
	st := &Stop{Fault: harness.FaultIncorrect, Evidence: harness.Evidence{Kind: b.Kind, Tensor: b.Tensor}}
	if b.Kind == KindInputsChanged {
		st.Reason = fmt.Sprintf("changed its input %s at element %d; inputs are read only", b.Tensor, b.Index)
		st.Evidence.Index = []int64{b.Index}
		return st
	}
	where := fmt.Sprintf("%d bytes past its end", b.Offset)
	if b.Offset < 0 {
		where = fmt.Sprintf("%d bytes before its start", -b.Offset)
	}
	st.Reason = fmt.Sprintf("wrote outside %s, %s; guard the last block", b.Tensor, where)
	st.Evidence.Index = []int64{b.Offset}
	return st
}

func (l *Late) stop(layout *Layout) *Stop {
	e := layout.Plan.Tensors[l.Tensor]
	return &Stop{Fault: harness.FaultIncorrect,
		Reason:   fmt.Sprintf("%s changed after the kernel had returned: all work must be done when it returns", e.Name),
		Evidence: harness.Evidence{Kind: KindLateWrite, Tensor: e.Name, Index: []int64{l.Offset / int64(e.DType.SizeBytes())}}}
}

// stop turns a failed comparison into the candidate's fault.
func (c *Comparison) stop(l *Layout) *Stop {
	e := l.Plan.Tensors[c.Tensor]
	st := &Stop{Fault: harness.FaultIncorrect, Evidence: harness.Evidence{Kind: c.FirstKind, Tensor: e.Name, Got: harness.Number(c.Got), Want: harness.Number(c.Want), Pattern: c.Pattern}}
	if c.Projected {
		st.Evidence.Kind = KindProjection
		st.Reason = fmt.Sprintf("%s: a ±1 projection is %.3g times its bound from the expected one", e.Name, c.MaxAbs)
		return st
	}
	st.Evidence.Index = Index(e, c.First)
	what := map[string]string{KindNonFinite: "not finite", KindUnwritten: "never written"}[c.FirstKind]
	if what == "" {
		what = fmt.Sprintf("%.9g, want %.9g", c.Got, c.Want)
	}
	st.Reason = fmt.Sprintf("%s%v is %s; %d of %d elements are wrong (%s)", e.Name, st.Evidence.Index, what, c.Mismatches, c.Elements, c.Pattern)
	if c.NonFinite > 0 && c.FirstKind != KindNonFinite {
		st.Reason += fmt.Sprintf(", %d not finite", c.NonFinite)
	}
	return st
}

// Tally adds up errors over comparisons.
type Tally struct {
	maxAbs, sumAbs                  float64
	mismatches, nonFinite, compared int64
}

// Add counts a comparison. Projections count as compared elements without errors of their own.
func (t *Tally) Add(c Comparison) {
	t.compared += c.Elements
	if c.Projected {
		return
	}
	if c.MaxAbs > t.maxAbs || math.IsNaN(c.MaxAbs) {
		t.maxAbs = c.MaxAbs
	}
	t.sumAbs += c.SumAbs
	t.mismatches += c.Mismatches
	t.nonFinite += c.NonFinite
}

// Errors returns the report's form; nil when nothing was compared.
func (t *Tally) Errors() *harness.Errors {
	if t.compared == 0 {
		return nil
	}
	n := float64(t.compared)
	e := &harness.Errors{MaxAbs: harness.Number(t.maxAbs), MeanAbs: harness.Number(t.sumAbs / n), MismatchRatio: float64(t.mismatches) / n, NonFinite: t.nonFinite, Compared: t.compared}
	if t.nonFinite > 0 {
		e.MaxAbs, e.MeanAbs = harness.Number(math.Inf(1)), harness.Number(math.Inf(1))
	}
	return e
}

// Failed returns the errors of the failing comparisons alone, which is what feedback shows of a wrong kernel: a share over
// everything ever compared would say nothing.
func Failed(found []Comparison) *harness.Errors {
	var t Tally
	for _, c := range found {
		t.Add(c)
	}
	return t.Errors()
}
