// Package reference computes the expected outputs of a task in float64: by its Starlark text (package torch), or by a program
// that reads and writes .npy files. Results are cached on disk by content.
package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/reference/torch"
	"ridgepoint/harness/task"
)

// Reference computes expected outputs of one task. It is safe for concurrent use.
type Reference struct {
	task    *harness.Task
	program *torch.Program // nil when the task names a command
	outputs []string
	cache   *Cache
	// cheap remembers that the last computation was quicker than reading its result back would be: inputs are then not even
	// hashed. A reference that is cheap at small sizes is so at large ones, or is found out at the next size.
	cheap atomic.Bool
}

// New prepares a task's reference. cache may be nil: nothing is kept. A wrong reference is a *task.Error.
func New(t *harness.Task, cache *Cache) (*Reference, error) {
	r := &Reference{task: t, cache: cache}
	for _, tensor := range t.Tensors {
		if tensor.Role != harness.RoleIn {
			r.outputs = append(r.outputs, tensor.Name)
		}
	}
	if len(t.Reference.Command) > 0 {
		return r, nil
	}
	p, err := torch.Parse(t.Reference.Expr, task.ReferenceNames(t))
	if err != nil {
		return nil, r.fault(err, nil)
	}
	r.program = p
	return r, nil
}

// Inputs are the operands of one evaluation. For each tensor of role in or inout either Values holds its elements in row-major
// order, or Raw holds its whole buffer in the tensor's dtype and strides.
type Inputs struct {
	Values map[string][]float64
	Raw    map[string][]byte
	// Key names the contents, e.g. generator version, distribution and seed; empty: they are hashed.
	Key string
}

// Outputs are expected values by tensor, in row-major order whatever the tensor's strides.
type Outputs map[string][]float64

// Expected returns the expected outputs at a size, from the cache when they are there. A wrong reference (an operator that
// refuses its operands, another shape than the output's) is a *task.Error; a command that fails is one too.
func (r *Reference) Expected(ctx context.Context, size harness.Size, in Inputs) (Outputs, error) {
	extents, err := task.Shapes(r.task, size)
	if err != nil {
		return nil, err
	}
	key := ""
	if r.cache != nil && !r.cheap.Load() {
		if key, err = r.key(size, in); err != nil {
			return nil, err
		}
		if out, ok := r.cache.get(key, r.lengths(extents)); ok {
			return out, nil
		}
	}
	start := time.Now()
	out, err := r.compute(ctx, size, extents, in)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	r.cheap.Store(quick(out, took))
	if key != "" {
		r.cache.put(key, out, took)
	}
	return out, nil
}

func (r *Reference) lengths(extents []task.Extent) map[string]int64 {
	out := map[string]int64{}
	for _, e := range extents {
		if e.Role != harness.RoleIn {
			out[e.Name] = e.Elements
		}
	}
	return out
}

func (r *Reference) compute(ctx context.Context, size harness.Size, extents []task.Extent, in Inputs) (Outputs, error) {
	values := map[string][]float64{}
	for _, e := range extents {
		if e.Role == harness.RoleOut {
			continue
		}
		v, err := operand(e, in)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", e.Name, err)
		}
		values[e.Name] = v
	}
	if r.program == nil {
		return r.command(ctx, size, extents, values)
	}
	env := torch.Values{}
	for _, e := range extents {
		if v, ok := values[e.Name]; ok {
			a, err := torch.New(ints(e.Shape), v)
			if err != nil {
				return nil, fmt.Errorf("input %s: %w", e.Name, err)
			}
			env[e.Name] = a
		}
	}
	for _, s := range r.task.Scalars {
		env[s.Name] = codec.Round(s.Value, s.DType) // the value that the kernel is given
	}
	for _, d := range size {
		env[d.Name] = d.Value
	}
	results, err := r.program.Run(ctx, env, r.outputs)
	if err != nil {
		return nil, r.fault(err, size)
	}
	out := Outputs{}
	for i, name := range r.outputs {
		e := extents[slices.IndexFunc(extents, func(e task.Extent) bool { return e.Name == name })]
		want := ints(e.Shape)
		if len(results[i].Data) != int(e.Elements) || !slices.Equal(dropOnes(results[i].Shape), dropOnes(want)) {
			return nil, r.fault(fmt.Errorf("gives the shape %v for %s, which has %v", results[i].Shape, name, want), size)
		}
		out[name] = results[i].Data
	}
	return out, nil
}

// fault makes what is wrong with a reference an error of the task file.
func (r *Reference) fault(err error, size harness.Size) error {
	var te *torch.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason := err.Error()
	if errors.As(err, &te) {
		reason = te.Error()
	}
	at := ""
	if size != nil {
		at = fmt.Sprintf("at size %s ", size)
	}
	return &task.Error{File: r.task.File, Reason: "reference: " + at + reason, Remedy: "correct the reference"}
}

// operand returns a tensor's elements in row-major order.
func operand(e task.Extent, in Inputs) ([]float64, error) {
	if v, ok := in.Values[e.Name]; ok {
		if int64(len(v)) != e.Elements {
			return nil, fmt.Errorf("got %d elements, want %d", len(v), e.Elements)
		}
		return v, nil
	}
	raw, ok := in.Raw[e.Name]
	if !ok {
		return nil, errors.New("no values are given")
	}
	return Unpack(e, raw)
}

// Unpack decodes a tensor's whole buffer and returns its elements in row-major order.
func Unpack(e task.Extent, raw []byte) ([]float64, error) {
	all := make([]float64, e.Span)
	if err := codec.Decode(all, raw, e.DType); err != nil {
		return nil, err
	}
	if e.Elements == e.Span {
		contiguous, step := true, int64(1)
		for i := len(e.Shape) - 1; i >= 0; i-- {
			contiguous = contiguous && (e.Strides[i] == step || e.Shape[i] == 1)
			step *= e.Shape[i]
		}
		if contiguous {
			return all, nil
		}
	}
	out := make([]float64, e.Elements)
	index := make([]int64, len(e.Shape))
	at := int64(0)
	for i := range out {
		out[i] = all[at]
		for d := len(index) - 1; d >= 0; d-- {
			index[d]++
			at += e.Strides[d]
			if index[d] < e.Shape[d] {
				break
			}
			at -= e.Strides[d] * e.Shape[d]
			index[d] = 0
		}
	}
	return out, nil
}

func ints(list []int64) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

func dropOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

// CommandLine returns the reference's program as a person would type it, "" when the reference is an expression.
func (r *Reference) CommandLine() string { return strings.Join(r.task.Reference.Command, " ") }
