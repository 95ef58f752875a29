package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// cheap is a way of saving work that makes a kernel wrong: the same computation of spoiled inputs, or a spoiled output.
type cheap struct {
	name string
	// precision is set where the kernel is only coarser than the task's dtype; it then must be coarser than the output's.
	precision harness.DType
	// inputFunc spoils the values of one input in place; outputFunc those of one output. Either may be nil.
	inputFunc, outputFunc func(values []float64, e task.Extent)
}

// cheaps are the cheap wrong kernels, the loosest first.
func cheaps() []cheap {
	rounds := func(d harness.DType) func([]float64, task.Extent) {
		return func(v []float64, e task.Extent) {
			if !e.DType.IsFloat() {
				return
			}
			raw := make([]byte, len(v)*d.SizeBytes())
			if codec.Encode(raw, v, d) == nil { // every float dtype can be encoded and decoded
				_ = codec.Decode(v, raw, d)
			}
		}
	}
	precise := func(name string, d harness.DType) cheap {
		return cheap{name: name, precision: d, inputFunc: rounds(d), outputFunc: rounds(d)}
	}
	return []cheap{
		{name: "one that looks at every second element", inputFunc: func(v []float64, _ task.Extent) {
			for i := 1; i < len(v); i += 2 {
				v[i] = v[i-1]
			}
		}},
		{name: "one that takes the first row for all", inputFunc: func(v []float64, e task.Extent) {
			if n := lastDim(e); n > 0 {
				for i := n; i < len(v); i++ {
					v[i] = v[i%n]
				}
			}
		}},
		{name: "one that leaves out the last column", inputFunc: func(v []float64, e task.Extent) {
			if n := lastDim(e); n > 1 {
				for i := n - 1; i < len(v); i += n {
					v[i] = 0
				}
			}
		}},
		{name: "one that leaves the last element out", outputFunc: func(v []float64, _ task.Extent) { v[len(v)-1] = 0 }},
		precise("one that computes in float8_e4m3", harness.Float8E4M3), precise("one that computes in bfloat16", harness.BFloat16),
		precise("one that computes in float16", harness.Float16),
		{name: "one that computes in TF32", precision: harness.Float32, inputFunc: truncated, outputFunc: nil},
	}
}

// truncated keeps ten bits of the mantissa, as tensor cores do of float32.
func truncated(v []float64, e task.Extent) {
	if e.DType != harness.Float32 {
		return
	}
	for i := range v {
		v[i] = float64(math.Float32frombits(math.Float32bits(float32(v[i])) &^ 0x1fff))
	}
}

func lastDim(e task.Extent) int {
	if len(e.Shape) == 0 {
		return 0
	}
	return int(e.Shape[len(e.Shape)-1])
}

// cheapKernels checks that no kernel that saves work by being wrong is within tolerance, and names the loosest that is. One that is
// only coarser is a warning: the person may mean to allow it.
func (l *linter) cheapKernels(ctx context.Context) error {
	size := l.smallest()
	l.progress("cheap wrong kernels at %s", size)
	extents, err := task.Shapes(l.Task, size)
	if err != nil {
		return err
	}
	set, err := l.Judge.Pool().Get(ctx, l.Task, size, verify.ScaleSpec, 0)
	if err != nil {
		return err
	}
	tried := 0
	for _, c := range cheaps() {
		if c.precision != harness.DTypeInvalid && !coarser(c.precision, extents) {
			continue
		}
		answer, changed, err := l.answer(ctx, c, size, extents, set)
		var wrong *task.Error
		if errors.As(err, &wrong) || err == nil && !changed {
			continue // the spoiled inputs are none, or are the same
		}
		if err != nil {
			return err
		}
		tried++
		if !l.same(extents, set, answer) {
			continue
		}
		verdict, remedy := Fail, "tighten the tolerances (`ridgepoint calibrate` proposes them), or draw inputs on which it matters"
		if c.precision != harness.DTypeInvalid {
			verdict, remedy = Warn, "tighten the tolerances, unless you mean to allow it"
		}
		l.report(verdict, "cheap", remedy, "the loosest cheap wrong kernel that would pass at %s: %s", size, c.name)
		return nil
	}
	l.report(Pass, "cheap", "", "none of %d cheap wrong kernels would pass at %s", tried, size)
	return nil
}

// coarser reports whether a dtype resolves less than every float input does: computing in it is no rounding that the task asks for.
func coarser(d harness.DType, extents []task.Extent) bool {
	found := false
	for _, e := range extents {
		if !e.DType.IsFloat() {
			continue
		}
		found = true
		if d != harness.Float32 && verify.Unit(e.DType) >= verify.Unit(d) || d == harness.Float32 && e.DType != harness.Float32 {
			return false
		}
	}
	return found
}

// answer is what a cheap kernel gives for a set, and whether it spoils anything at all.
func (l *linter) answer(ctx context.Context, c cheap, size harness.Size, extents []task.Extent, set *verify.Set) (list [][]float64, changed bool, err error) {
	values := map[string][]float64{}
	for i, e := range extents {
		if set.Inputs[i] == nil {
			continue
		}
		v := make([]float64, e.Elements)
		verify.Decode(v, set.Inputs[i], e, 0)
		if values[e.Name] = v; c.inputFunc != nil {
			was := slices.Clone(v)
			c.inputFunc(v, e)
			changed = changed || !slices.Equal(was, v)
		}
	}
	out, err := expected(ctx, l.Task, size, values)
	if err != nil {
		return nil, false, err
	}
	list = make([][]float64, len(extents))
	for i, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		list[i] = slices.Clone(out[e.Name])
		if len(list[i]) != int(e.Elements) {
			return nil, false, fmt.Errorf("expected values at %s: %d of %s, want %d", size, len(list[i]), e.Name, e.Elements)
		}
		if c.outputFunc != nil && len(list[i]) > 0 {
			was := slices.Clone(list[i])
			c.outputFunc(list[i], e)
			changed = changed || !slices.Equal(was, list[i])
		}
	}
	return list, changed, nil
}
