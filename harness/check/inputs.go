package check

import (
	"bytes"
	"context"
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// inputs checks that input sets of other seeds differ, and that each input has a say in the outputs: otherwise an answer kept
// from the first launch would be right in all.
func (l *linter) inputs(ctx context.Context) error {
	size := l.smallest()
	extents, err := task.Shapes(l.Task, size)
	if err != nil {
		return err
	}
	get := func(seed uint64) (*verify.Set, error) {
		return l.Judge.Pool().Get(ctx, l.Task, size, verify.Spec{Distribution: verify.Plain, Seed: seed}, 0)
	}
	a, err := get(verify.Mix(l.Seed, 1))
	if err != nil {
		return err
	}
	b, err := get(verify.Mix(l.Seed, 2))
	if err != nil {
		return err
	}
	if l.same(extents, a, b.Expected) {
		l.report(Fail, "inputs", "let the reference use its inputs, or draw them otherwise", "two sets of inputs have the same outputs at %s: a kernel could answer from memory", size)
		return nil
	}
	var idle []string
	for i, e := range extents {
		if e.Role == harness.RoleOut {
			continue
		}
		if bytes.Equal(a.Inputs[i], b.Inputs[i]) {
			l.report(Fail, "inputs", "give it an init that varies", "input %s is the same in every set at %s", e.Name, size)
			return nil
		}
		mixed, err := l.mix(ctx, size, extents, a, b, i)
		if err != nil {
			return err
		}
		if l.same(extents, a, mixed) {
			idle = append(idle, e.Name)
		}
	}
	if len(idle) > 0 {
		l.report(Fail, "inputs", "drop it from the task, or let the reference use it", "the outputs do not depend on %s at %s", few(idle), size)
		return nil
	}
	l.report(Pass, "inputs", "", "vary from set to set, and each of them has a say in the outputs")
	return nil
}

// mix returns the expected outputs of a's inputs with input i from b.
func (l *linter) mix(ctx context.Context, size harness.Size, extents []task.Extent, a, b *verify.Set, i int) ([][]float64, error) {
	raw := append([][]byte(nil), a.Inputs...)
	raw[i] = b.Inputs[i]
	values := map[string][]float64{}
	for k, e := range extents {
		if raw[k] != nil {
			v := make([]float64, e.Elements)
			verify.Decode(v, raw[k], e, 0)
			values[e.Name] = v
		}
	}
	out, err := expected(ctx, l.Task, size, values)
	if err != nil {
		return nil, fmt.Errorf("expected values at %s: %w", size, err)
	}
	list := make([][]float64, len(extents))
	for k, e := range extents {
		list[k] = out[e.Name]
	}
	return list, nil
}

// same reports whether other outputs would pass for those of a set.
func (l *linter) same(extents []task.Extent, set *verify.Set, other [][]float64) bool {
	for i, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		raw := make([]byte, e.Bytes())
		verify.Encode(raw, append([]float64(nil), other[i]...), e)
		if verify.CompareHost(i, e, raw, set.Expected[i], set.Tolerances[i], poisonSeed).Mismatches > 0 {
			return false
		}
	}
	return true
}

// smallest returns the scored size with the least elements.
func (l *linter) smallest() harness.Size {
	var best harness.Size
	least := int64(-1)
	for _, s := range l.sizes() {
		extents, err := task.Shapes(l.Task, s)
		if err != nil {
			continue // the loader has checked every scored size
		}
		n := int64(0)
		for _, e := range extents {
			n += e.Elements
		}
		if least < 0 || n < least {
			best, least = s, n
		}
	}
	return best
}
