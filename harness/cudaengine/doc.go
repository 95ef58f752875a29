// Package cudaengine is a CUDA device as verification and measurement see it: verify.Engine, verify.Burster and
// verify.Grapher over harness/device. It owns the device's buffers, its stream and its own helper kernels, compiled once an
// arch from the embedded helpers.cu.
//
// One timed launch, all queued on one stream (DESIGN.md, section 6):
//
//	rp_scribble (shared memory, registers) ─> flush, begun ─> event ─> workspace zeroed, kernels ─> event ─> rp_turn: red zones,
//	inputs against masters, outputs against expected values, then inputs from masters and poison for the next launch
//
// rp_scribble runs before every verified launch and every timed one that is compared whole. Warm-ups are the kernels alone. What
// rp_turn leaves out of large inputs and of outputs whose bits were right before, turn.go and helpers.cu say.
//
// Expected values stay on the device from candidate to candidate, but only under a mask (XOR with a keyed hash of the
// index): the key lives in host memory and reaches the device as an argument of the comparing kernel, after the outputs
// of that launch are final, and the values appear in its registers alone. Findings are signed with a key of the host, so
// that a kernel that writes into them is noticed.
//
// The package decides nothing about candidates: it reports a verify.Stop or what a comparison found. After a hang or a
// sticky error the engine is lost (Engine.Lost) and its process must be replaced.
package cudaengine
