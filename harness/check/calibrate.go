package check

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"ridgepoint/harness"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Calibration is what a kernel that is known to be right says about a task's tolerances.
type Calibration struct {
	Kernel string          `json:"kernel"`
	Report *harness.Report `json:"report"` // its Survey holds the distributions
	ATol   float64         `json:"atol"`   // proposed
	RTol   float64         `json:"rtol"`   // proposed
	Reason string          `json:"reason"`
	Notes  []string        `json:"notes,omitempty"`
}

// margin is how far above the largest error the proposal lies: between 2 and 3 times, as REQUIREMENTS asks.
const margin = 2.5

// cancels is from where a relative error tells of cancellation, not of rounding: outputs near zero that are sums of large
// terms. Such outputs need an absolute tolerance.
const cancels = 1e-3

// Calibrate runs a candidate at every scored size and proposes tolerances: 2 to 3 times the upper bound of its errors. It says
// where the written tolerances would let a null answer pass, and where they would refuse this kernel. progress, unless it is nil, is told
// what is being done.
func Calibrate(ctx context.Context, j *judge.Judge, t *harness.Task, c *harness.Candidate, seed uint64, progress func(what string)) (*Calibration, error) {
	if progress == nil {
		progress = func(string) {}
	}
	progress(fmt.Sprintf("%s against the reference at every size", c.Structure.Name))
	q := &harness.Request{Task: t, Candidate: c, Plan: harness.Plan{Stage: harness.StageCalibrate, Seed: seed}}
	p := &Calibration{Kernel: c.Structure.Name}
	b, r, err := j.Compile(ctx, q)
	if err != nil {
		return nil, err
	}
	if b != nil {
		if r, err = j.Benchmark(ctx, q, b); err != nil {
			return nil, err
		}
	}
	p.Report = r
	if r.Fault != harness.FaultNone || len(r.Survey) == 0 {
		return p, nil
	}
	p.propose(t)
	p.complain(t)
	return p, p.nulls(ctx, j, t, c.Target, progress)
}

// propose fits atol and rtol to the plain sets; the sets of larger values have atol scaled by verification.
func (p *Calibration) propose(t *harness.Task) {
	var maxAbs, maxRel, least float64
	unit, exact := 0.0, true
	for _, s := range p.plain() {
		maxAbs = max(maxAbs, float64(s.MaxAbs))
		exact = exact && s.MaxAbs == 0
		unit = max(unit, verify.Unit(s.DType))
		if s.RMS > 0 && (least == 0 || s.RMS < least) {
			least = s.RMS
		}
	}
	for _, s := range p.Report.Survey {
		maxRel = max(maxRel, s.MaxRel)
	}
	switch {
	case exact:
		p.ATol, p.RTol, p.Reason = 0, figures(unit/4), "every element is exact; rtol is below half a unit of the last place"
	case maxRel <= cancels:
		p.ATol, p.RTol, p.Reason = figures(margin*unit*least), figures(margin*max(maxRel, unit)), fmt.Sprintf("%.1f x the largest relative error; atol is a rounding of the smallest output scale", margin)
	default:
		p.ATol, p.RTol, p.Reason = figures(margin*maxAbs), figures(16*unit), fmt.Sprintf("outputs cancel: atol is %.1f x the largest error, rtol 16 roundings", margin)
	}
}

// plain returns the spectra of the task's own input set.
func (p *Calibration) plain() []harness.Spectrum {
	var out []harness.Spectrum
	for _, s := range p.Report.Survey {
		if s.Distribution == p.Report.Survey[0].Distribution {
			out = append(out, s)
		}
	}
	return out
}

// complain says where the written tolerances refuse the kernel, or are far wider than it needs.
func (p *Calibration) complain(t *harness.Task) {
	need := 0.0
	for _, s := range p.plain() {
		tol := verify.ToleranceFor(t.Eval, s.DType, s.RMS, s.RMS)
		if s.NonFinite > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %d elements are not finite: this kernel is not right there", s.Size, s.NonFinite))
		}
		if float64(s.MaxAbs) > tol.Abs && s.MaxRel > tol.Rel {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: the written tolerances may refuse this kernel: it errs by up to %.2g, and %.2g of the value", s.Size, float64(s.MaxAbs), s.MaxRel))
		}
		if tol.Abs > 0 || tol.Rel > 0 {
			need = max(need, min(float64(s.MaxAbs)/max(tol.Abs, math.SmallestNonzeroFloat64), s.MaxRel/max(tol.Rel, math.SmallestNonzeroFloat64)))
		}
	}
	if need > 0 && need < 0.01 {
		p.Notes = append(p.Notes, fmt.Sprintf("the written tolerances are over a hundred times what this kernel needs (it uses %.2g of them)", need))
	}
}

// nulls says where the written tolerances, taken by themselves, would let a null answer pass.
func (p *Calibration) nulls(ctx context.Context, j *judge.Judge, t *harness.Task, target harness.Target, progress func(what string)) error {
	written := verify.Tolerance{Abs: t.Eval.ATol, Rel: t.Eval.RTol}
	any := false
	for _, size := range t.ScoredSizes(target) {
		progress(fmt.Sprintf("null answers at %s", size))
		extents, err := task.Shapes(t, size)
		if err != nil {
			return err
		}
		set, err := j.Pool().Get(ctx, t, size, verify.ScaleSpec, 0)
		if err != nil {
			return err
		}
		for _, n := range Nulls() {
			if through, _ := Passes(n, extents, set, func(int) verify.Tolerance { return written }); through {
				any = true
				p.Notes = append(p.Notes, fmt.Sprintf("%s: the written atol and rtol would let %s pass", size, n.Name))
			}
		}
	}
	if !any {
		p.Notes = append(p.Notes, "the written tolerances let no null answer pass")
	}
	return nil
}

// figures rounds to two figures.
func figures(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 1, 64), 64)
	if err != nil {
		return v
	}
	return out
}

// Quantile returns an upper bound of the errors of a share of the elements, to a factor of two: the least step of the spectrum
// that at most the rest exceed.
func Quantile(s harness.Spectrum, share float64) float64 {
	out := float64(s.MaxAbs)
	for k, over := range s.Over {
		if float64(over) > (1-share)*float64(s.Elements) {
			break
		}
		out = math.Ldexp(float64(s.MaxAbs), -k-1)
	}
	return out
}
