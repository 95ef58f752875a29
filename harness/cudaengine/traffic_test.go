package cudaengine

import (
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// TestTraffic wants the flush to read where a launch fills the cache by reading and hardly writes, and nowhere else.
func TestTraffic(t *testing.T) {
	t.Parallel()
	const l2 = 60 << 20
	buffer := func(role harness.Role, mb int64) task.Extent {
		return task.Extent{Role: role, DType: harness.UInt8, Span: mb << 20, Elements: mb << 20}
	}
	for _, c := range []struct {
		name    string
		extents []task.Extent
		inputs  int64
		reads   bool
	}{
		{"a sum", []task.Extent{buffer(harness.RoleIn, 64), buffer(harness.RoleOut, 1)}, 64, true},
		{"a small sum", []task.Extent{buffer(harness.RoleIn, 8), buffer(harness.RoleOut, 1)}, 8, false},
		{"a softmax", []task.Extent{buffer(harness.RoleIn, 64), buffer(harness.RoleOut, 64)}, 64, false},
		{"in place", []task.Extent{buffer(harness.RoleInOut, 64)}, 64, false},
		{"a sum with scratch", []task.Extent{buffer(harness.RoleIn, 64), buffer(harness.RoleOut, 1), buffer(harness.RoleInvalid, 16)}, 64, false},
	} {
		if inputs, reads := traffic(c.extents, l2); inputs != c.inputs<<20 || reads != c.reads {
			t.Errorf("%s: %d MB, %v; want %d, %v", c.name, inputs>>20, reads, c.inputs, c.reads)
		}
	}
}
