package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/verify"
)

// octaves is how finely a Spectrum tells errors apart: down to 1/4096 of the largest.
const octaves = 12

// survey measures the errors of a candidate at every scored size under the plain set and one of larger values, without holding
// them against the task's tolerances.
func (b *Bout) survey(ctx context.Context, r *harness.Report, limit func(harness.Size) time.Duration) error {
	q := b.Request
	program, err := b.Engine.Open(ctx, b.Module)
	if err == nil {
		for _, size := range q.Task.ScoredSizes(q.Candidate.Target) {
			if err = b.surveySize(ctx, r, program, size, limit(size)); err != nil {
				break
			}
		}
		err = errors.Join(err, program.Close())
	}
	var stop *verify.Stop
	if errors.As(err, &stop) {
		apply(r, stop)
		return nil
	}
	if err != nil {
		return fmt.Errorf("survey %s: %w", q.Candidate.Structure.Name, err)
	}
	r.Fault, r.Runtime = harness.FaultNone, harness.StatusPass
	return nil
}

func (b *Bout) surveySize(ctx context.Context, r *harness.Report, program verify.Program, size harness.Size, limit time.Duration) error {
	q := b.Request
	l, err := verify.NewLayout(q.Task, q.Candidate, size, 2)
	if err != nil {
		return &verify.Stop{Fault: harness.FaultLaunch, Reason: err.Error(), Evidence: harness.Evidence{Kind: verify.KindLaunch, Size: size}}
	}
	bench, err := program.Bind(ctx, l)
	if err != nil {
		return verify.Blame(err, l, &verify.Set{}, verify.Aim{})
	}
	defer func() { _ = bench.Close() }() // the program is closed next, and says what went wrong
	for i, d := range surveyed(q.Task) {
		set, err := b.Pool.Get(ctx, q.Task, size, verify.Spec{Distribution: d, Seed: verify.Mix(q.Plan.Seed, uint64(i))}, i)
		if err != nil {
			return err
		}
		spectra, err := b.surveySet(ctx, bench, l, set, verify.Aim{Shot: verify.Shot{Limit: limit}, Whole: true, Poison: verify.Mix(q.Plan.Seed, uint64(i), 0x5a4e)})
		if err != nil {
			return err
		}
		r.Survey = append(r.Survey, spectra...)
	}
	return nil
}

// surveyed are the distributions of a survey: the task's own, and one under which errors are larger.
func surveyed(t *harness.Task) []string {
	all := verify.Distributions(t)
	if slices.Contains(all, harness.DistTimes100) {
		return []string{all[0], harness.DistTimes100}
	}
	return all[:min(2, len(all))]
}

// surveySet launches once and compares again and again under other tolerances: how many elements miss each gives the
// distribution without bringing the outputs here.
func (b *Bout) surveySet(ctx context.Context, bench verify.Bench, l *verify.Layout, set *verify.Set, aim verify.Aim) ([]harness.Spectrum, error) {
	open := *set
	open.Tolerances = tolerances(l, func(int) verify.Tolerance { return verify.Tolerance{Abs: math.MaxFloat64} })
	_, found, err := verify.Shoot(ctx, bench, l, &open, aim)
	if err != nil {
		return nil, err
	}
	out := make([]harness.Spectrum, len(found))
	for i, c := range found {
		e := l.Plan.Tensors[c.Tensor]
		rms := verify.RMS(set.Expected[c.Tensor])
		out[i] = harness.Spectrum{Size: l.Size, Distribution: set.Distribution, Tensor: e.Name, DType: e.DType, Elements: c.Elements, RMS: rms,
			MaxAbs: harness.Number(c.MaxAbs), MeanAbs: harness.Number(c.SumAbs / float64(max(c.Elements, 1))), NonFinite: c.NonFinite, Floor: verify.Unit(e.DType) * rms}
	}
	misses := func(tol func(i int) verify.Tolerance) ([]verify.Comparison, error) {
		at := *set
		at.Tolerances = tolerances(l, tol)
		return bench.Compare(ctx, &at, aim.Poison, true)
	}
	for k := range octaves {
		found, err := misses(func(i int) verify.Tolerance { return verify.Tolerance{Abs: math.Ldexp(float64(out[i].MaxAbs), -k-1)} })
		if err != nil {
			return nil, err
		}
		for i, c := range found {
			out[i].Over = append(out[i].Over, c.Mismatches-c.NonFinite)
		}
	}
	return out, relative(out, misses)
}

// relative finds MaxRel of every output by halving the range of its logarithm.
func relative(out []harness.Spectrum, misses func(func(int) verify.Tolerance) ([]verify.Comparison, error)) error {
	low, high := make([]float64, len(out)), make([]float64, len(out))
	for i := range out {
		low[i], high[i] = math.Log(0x1p-60), math.Log(2)
	}
	for range 9 { // 42 in logarithms, halved nine times: a twelfth
		found, err := misses(func(i int) verify.Tolerance {
			return verify.Tolerance{Abs: out[i].Floor, Rel: math.Exp((low[i] + high[i]) / 2)}
		})
		if err != nil {
			return err
		}
		for i, c := range found {
			if c.Mismatches > c.NonFinite {
				low[i] = (low[i] + high[i]) / 2
			} else {
				high[i] = (low[i] + high[i]) / 2
			}
		}
	}
	for i := range out {
		out[i].MaxRel = math.Exp(high[i])
	}
	return nil
}

// tolerances gives every output its own; of is asked with the output's place among the outputs.
func tolerances(l *verify.Layout, of func(i int) verify.Tolerance) []verify.Tolerance {
	out := make([]verify.Tolerance, len(l.Plan.Tensors))
	for i, tensor := range l.Outputs() {
		out[tensor] = of(i)
	}
	return out
}
