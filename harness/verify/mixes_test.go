package verify

import (
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// TestMixes wants integers to keep their places beside floats, and to change them where they are all there is.
func TestMixes(t *testing.T) {
	in := func(d harness.DType) task.Extent { return task.Extent{Role: harness.RoleIn, DType: d} }
	out := task.Extent{Role: harness.RoleOut, DType: harness.Float32}
	for _, c := range []struct {
		tensors []task.Extent
		want    []bool
	}{
		{[]task.Extent{in(harness.Float32), in(harness.Int32), out}, []bool{true, false, true}},
		{[]task.Extent{in(harness.Int32), in(harness.UInt8), out}, []bool{true, true, true}},
		{[]task.Extent{in(harness.Int64), {Role: harness.RoleInOut, DType: harness.Float16}}, []bool{false, true}},
	} {
		l := &Layout{Plan: &task.Launches{Tensors: c.tensors}}
		for i, want := range c.want {
			if got := l.Mixes(i); got != want {
				t.Errorf("%v: tensor %d mixes: %t, want %t", c.tensors, i, got, want)
			}
		}
	}
}
