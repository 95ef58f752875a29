package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Null is an answer that needs no work: a constant, or the input as it came.
type Null struct {
	Name string
	// FillFunc returns the answer for an output; nil: it cannot be given (no input has that many elements).
	FillFunc func(e task.Extent, want []float64, inputs [][]float64) []float64
}

func constant(v func(want []float64) float64) func(task.Extent, []float64, [][]float64) []float64 {
	return func(_ task.Extent, want []float64, _ [][]float64) []float64 {
		return slices.Repeat([]float64{v(want)}, len(want))
	}
}

// Nulls returns the null answers.
func Nulls() []Null {
	return []Null{
		{"zeros", constant(func([]float64) float64 { return 0 })},
		{"ones", constant(func([]float64) float64 { return 1 })},
		{"the mean", constant(mean)},
		{"a copy of the input", func(_ task.Extent, want []float64, inputs [][]float64) []float64 {
			for _, in := range inputs {
				if len(in) >= len(want) {
					return slices.Clone(in[:len(want)])
				}
			}
			return nil
		}},
		{"NaN", constant(func([]float64) float64 { return math.NaN() })},
	}
}

func mean(want []float64) float64 {
	s := 0.0
	for _, v := range want {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s += v
		}
	}
	return s / float64(max(len(want), 1))
}

// poisonSeed is what outputs are compared under; the null answers are written over it, and none leaves it.
const poisonSeed = 0x6e756c6c

// Passes reports whether a null answer is within tolerance in every element of every output of a set; known is false when it
// cannot be given.
func Passes(n Null, extents []task.Extent, set *verify.Set, tol func(i int) verify.Tolerance) (passes, known bool) {
	var inputs [][]float64
	for i, e := range extents {
		if e.Role != harness.RoleOut && set.Inputs[i] != nil {
			v := make([]float64, e.Elements)
			verify.Decode(v, set.Inputs[i], e, 0)
			inputs = append(inputs, v)
		}
	}
	for i, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		answer := n.FillFunc(e, set.Expected[i], inputs)
		if answer == nil {
			return false, false
		}
		raw := make([]byte, e.Bytes())
		verify.Encode(raw, answer, e)
		if c := verify.CompareHost(i, e, raw, set.Expected[i], tol(i), poisonSeed); c.Mismatches > 0 {
			return false, true
		}
	}
	return true, true
}

// nulls checks that every null answer fails at every scored size, and says where only the harness's own limits on tolerances
// make it fail.
func (l *linter) nulls(ctx context.Context) error {
	sizes := l.sizes()
	var passed, loose []string
	for i, size := range sizes {
		l.progress("null answers at %s (%d of %d sizes)", size, i+1, len(sizes))
		extents, err := task.Shapes(l.Task, size)
		if err != nil {
			return err
		}
		set, err := l.Judge.Pool().Get(ctx, l.Task, size, verify.ScaleSpec, 0)
		if err != nil {
			return err
		}
		for _, n := range Nulls() {
			through, known := Passes(n, extents, set, func(i int) verify.Tolerance { return set.Tolerances[i] })
			if !known {
				continue
			}
			if through {
				if through, err = l.elsewhere(ctx, n, size, extents); err != nil {
					return err
				}
			}
			if through {
				passed = append(passed, fmt.Sprintf("%s at %s", n.Name, size))
				continue
			}
			written := verify.Tolerance{Abs: l.Task.Eval.ATol, Rel: l.Task.Eval.RTol}
			if through, _ := Passes(n, extents, set, func(int) verify.Tolerance { return written }); through {
				loose = append(loose, fmt.Sprintf("%s at %s", n.Name, size))
			}
		}
	}
	if len(passed) > 0 {
		l.report(Fail, "nulls", "tighten atol and rtol (`ridgepoint calibrate` proposes them), or draw inputs on which the answer is not that", "null answers pass: %s", few(passed))
	} else {
		l.report(Pass, "nulls", "", "zeros, ones, the mean, a copy of the input and NaN fail at all %d sizes", len(sizes))
	}
	if len(loose) > 0 {
		l.report(Warn, "tolerance", "write what `ridgepoint calibrate` proposes", "by the written atol %g and rtol %g alone these would pass: %s; verification holds outputs to %g of their scale",
			l.Task.Eval.ATol, l.Task.Eval.RTol, few(loose), verify.ScaleShare(l.outputDType()))
	}
	return nil
}

// elsewhere reports whether a null answer passes under every other distribution too.
func (l *linter) elsewhere(ctx context.Context, n Null, size harness.Size, extents []task.Extent) (bool, error) {
	for i, d := range verify.Distributions(l.Task) {
		set, err := l.Judge.Pool().Get(ctx, l.Task, size, verify.Spec{Distribution: d, Seed: verify.Mix(l.Seed, uint64(i), 7)}, i)
		if err != nil {
			return false, err
		}
		if through, _ := Passes(n, extents, set, func(i int) verify.Tolerance { return set.Tolerances[i] }); !through {
			return false, nil
		}
	}
	return true, nil
}

func (l *linter) outputDType() harness.DType {
	for _, t := range l.Task.Tensors {
		if t.Role != harness.RoleIn {
			return t.DType
		}
	}
	return harness.Float32
}

func few(list []string) string {
	const most = 4
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
