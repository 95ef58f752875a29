package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// Order asks for the verification of one module.
type Order struct {
	Task   *harness.Task
	Module Module
	Cases  []Case
	Pool   *Pool
	Seed   uint64
	// LimitFunc bounds one launch at a size; past it the candidate has hung.
	LimitFunc func(size harness.Size) time.Duration
}

// Result is what verification found. Stop is nil for a candidate that passed.
type Result struct {
	Stop   *Stop
	Errors *harness.Errors
	Split  harness.Split // Load, Inputs, Verify and Device are filled
}

// Run verifies a module on an engine. An error means broken infrastructure; a wrong candidate is a Result with Stop set.
func Run(ctx context.Context, engine Engine, o Order) (*Result, error) {
	r := &Result{}
	start := time.Now()
	o.Module.Verifying = true
	program, err := engine.Open(ctx, o.Module)
	r.Split.Load = time.Since(start).Seconds()
	if err != nil {
		return r.end(err)
	}
	v := &verifier{Order: o, engine: engine, program: program, result: r}
	err = v.cases(ctx)
	r.Split.Verify = time.Since(start).Seconds() - r.Split.Load - r.Split.Inputs
	if r.Errors == nil {
		r.Errors = v.tally.Errors()
	}
	return r.end(errors.Join(err, program.Close()))
}

// end moves a candidate's fault from the error into the result.
func (r *Result) end(err error) (*Result, error) {
	if errors.As(err, &r.Stop) {
		return r, nil
	}
	return r, err
}

type verifier struct {
	Order
	engine  Engine
	program Program
	tally   Tally
	result  *Result
}

func (v *verifier) cases(ctx context.Context) error {
	for i, c := range v.Cases {
		if err := v.size(ctx, c, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// size verifies one size. At the first, smallest size the inputs are also write-protected for one launch, so that a kernel
// that changes them and restores them is seen, and where the task asks, one launch is repeated for the same bits.
func (v *verifier) size(ctx context.Context, c Case, first bool) error {
	l, err := NewLayout(v.Task, v.Module.Candidate, c.Size, len(c.Specs))
	if err != nil {
		return &Stop{Fault: harness.FaultLaunch, Reason: err.Error(), Evidence: harness.Evidence{Kind: KindLaunch, Size: c.Size, Hidden: c.Hidden}}
	}
	l.Hidden = c.Hidden
	b, err := v.program.Bind(ctx, l)
	if err != nil {
		return blame(err, l, &Set{}, Aim{})
	}
	err = v.sets(ctx, b, l, c, first)
	return errors.Join(err, b.Close())
}

func (v *verifier) sets(ctx context.Context, b Bench, l *Layout, c Case, first bool) error {
	for i, spec := range c.Specs {
		begin := time.Now()
		set, err := v.Pool.Get(ctx, v.Task, c.Size, spec, i)
		v.result.Split.Inputs += time.Since(begin).Seconds()
		if err != nil {
			return err
		}
		aim := Aim{Shot: Shot{Limit: v.LimitFunc(c.Size)}, Whole: true, Poison: Mix(v.Seed, uint64(i), 0x7e51f)}
		if err := v.shoot(ctx, b, l, set, aim); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if v.Task.Eval.Deterministic {
			if err := v.repeat(ctx, b, l, set, aim); err != nil {
				return err
			}
		}
		if first && v.engine.Traits().HidesInputs {
			if err := v.protected(ctx, b, l, set, aim); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) shoot(ctx context.Context, b Bench, l *Layout, set *Set, aim Aim) error {
	lap, found, err := Shoot(ctx, b, l, set, aim)
	v.result.Split.Device += lap.Kernels.Seconds()
	for _, c := range found {
		v.tally.Add(c)
	}
	if err != nil && found != nil {
		v.result.Errors = Failed(found)
	}
	return err
}

// protected repeats a launch that was right with its inputs write-protected: a kernel that dies of it writes to them and puts
// them back before it returns.
func (v *verifier) protected(ctx context.Context, b Bench, l *Layout, set *Set, aim Aim) error {
	aim.Protect = true
	err := v.shoot(ctx, b, l, set, aim)
	var stop *Stop
	if errors.As(err, &stop) && stop.Fault == harness.FaultCrash && stop.Evidence.Signal != "" {
		stop.Fault, stop.Evidence.Kind = harness.FaultIncorrect, KindInputsChanged
		stop.Reason = "writes to an input during the launch and restores it: a launch with write-protected inputs dies of " + stop.Evidence.Signal
	}
	return err
}

// Digester is a Bench that can sum up its outputs' bits; it is asked where a task demands the same bits for the same inputs.
type Digester interface {
	Digest(ctx context.Context) (uint64, error)
}

func (v *verifier) repeat(ctx context.Context, b Bench, l *Layout, set *Set, aim Aim) error {
	d, ok := b.(Digester)
	if !ok {
		return fmt.Errorf("task %s asks for deterministic results, which this device cannot check", v.Task.Name)
	}
	before, err := d.Digest(ctx)
	if err != nil {
		return blame(err, l, set, aim)
	}
	for n := range 3 {
		aim.Poison = Mix(aim.Poison, uint64(n))
		if err := v.shoot(ctx, b, l, set, aim); err != nil {
			return err
		}
		after, err := d.Digest(ctx)
		if err != nil {
			return blame(err, l, set, aim)
		}
		if after != before {
			return blame(&Stop{Fault: harness.FaultIncorrect, Reason: "gives other bits for the same inputs, and the task asks for the same",
				Evidence: harness.Evidence{Kind: KindNotRepeatable}}, l, set, aim)
		}
	}
	return nil
}

// NewLayout lays a candidate's launches out at a size.
func NewLayout(t *harness.Task, c *harness.Candidate, size harness.Size, sets int) (*Layout, error) {
	plan, err := task.Plan(t, c.Structure, c.Configuration, size)
	if err != nil {
		return nil, err
	}
	return &Layout{Size: size, Plan: plan, Task: t, Source: c.Structure, Config: c.Configuration, SetCount: sets}, nil
}
