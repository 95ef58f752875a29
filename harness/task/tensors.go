package task

import (
	"fmt"
	"math"
	"slices"

	"ridgepoint/harness"
)

// defaultAlignmentBytes is what cudaMalloc guarantees; the cpu target keeps it too.
const defaultAlignmentBytes = 256

func (d *taskDecoder) tensors(n *node) {
	if d.err != nil {
		return
	}
	if n == nil {
		for _, t := range []harness.Tensor{{Name: "input", Role: harness.RoleIn, Init: harness.DistNormal}, {Name: "output", Role: harness.RoleOut}} {
			t.Shape, t.DType, t.AlignmentBytes = slices.Clone(d.task.Dims), d.dtype, defaultAlignmentBytes
			d.task.Tensors = append(d.task.Tensors, t)
		}
		return
	}
	if !d.is(n, kindMap, "tensors") {
		return
	}
	outputs := 0
	for _, k := range n.keys {
		d.newName(k, "tensors")
		t := d.tensor(k)
		if t.Role != harness.RoleIn {
			outputs++
		}
		d.task.Tensors = append(d.task.Tensors, t)
	}
	if d.err == nil && outputs == 0 {
		d.fail(n, "give one tensor the role out or inout", "tensors: there is no output")
	}
}

// newName checks that a tensor, scalar or the like does not take a name that is in use.
func (d *taskDecoder) newName(k key, what string) {
	d.checkName(k.place, k.name, what)
	taken := slices.Contains(d.task.Dims, k.name)
	for _, t := range d.task.Tensors {
		taken = taken || t.Name == k.name
	}
	for _, s := range d.task.Scalars {
		taken = taken || s.Name == k.name
	}
	if d.err == nil && taken {
		d.fail(k.place, "give dims, tensors and scalars different names", "%s: the name %q is taken", what, k.name)
	}
}

func (d *taskDecoder) tensor(k key) harness.Tensor {
	what := "tensors." + k.name
	t := harness.Tensor{Name: k.name, DType: d.dtype, AlignmentBytes: defaultAlignmentBytes}
	var init *node
	shapeSeen := false
	d.fields(k.value, what, []string{"shape", "dtype", "role", "init", "strides", "alignment"}, func(name string, v *node) {
		switch name {
		case "shape":
			t.Shape, shapeSeen = d.dimExprs(v, what+".shape"), true
		case "dtype":
			t.DType = d.readDType(v, what+".dtype")
		case "role":
			word := d.oneOf(v, what+".role", "in", "out", "inout")
			t.Role, _ = harness.ParseRole(word) // oneOf has checked the word
		case "init":
			init = v
			t.Init = d.oneOf(v, what+".init", harness.Inits()...)
		case "strides":
			t.Strides = d.dimExprs(v, what+".strides")
		case "alignment":
			t.AlignmentBytes = int(d.integer(v, what+".alignment", 1, 4096))
			if d.err == nil && t.AlignmentBytes&(t.AlignmentBytes-1) != 0 {
				d.fail(v, "write a power of two", "%s.alignment: %d is not a power of two", what, t.AlignmentBytes)
			}
		}
	})
	if d.err != nil {
		return t
	}
	switch {
	case !shapeSeen:
		d.fail(k.value, "add `shape: [...]`", "%s: has no shape", what)
	case t.Role == harness.RoleInvalid:
		d.fail(k.value, "add `role: in`, `role: out` or `role: inout`", "%s: has no role", what)
	case t.Role == harness.RoleOut && t.Init != "":
		d.fail(init, "leave init out: outputs are poisoned before each launch", "%s: an output has no init", what)
	case t.Strides != nil && len(t.Strides) != len(t.Shape):
		d.fail(k.value, "write one stride a dim, in elements", "%s: has %d dims and %d strides", what, len(t.Shape), len(t.Strides))
	case t.Role != harness.RoleOut && t.Init == "":
		t.Init = harness.DistNormal
	}
	return t
}

// dimExprs reads a list of expressions over the dims.
func (d *taskDecoder) dimExprs(n *node, what string) []string {
	list := d.exprs(n, what)
	for _, e := range list {
		d.parse(e, what, d.task.Dims)
	}
	if d.err == nil && len(list) > 8 {
		d.fail(n, "use at most 8 dims", "%s: has %d dims", what, len(list))
	}
	return exprTexts(list)
}

func (d *taskDecoder) scalars(n *node) {
	if n == nil || !d.is(n, kindMap, "scalars") {
		return
	}
	for _, k := range n.keys {
		d.newName(k, "scalars")
		what := "scalars." + k.name
		s := harness.Scalar{Name: k.name, DType: d.dtype}
		value := k.value
		if value.kind == kindMap {
			value = nil
			d.fields(k.value, what, []string{"value", "dtype"}, func(name string, v *node) {
				if name == "dtype" {
					s.DType = d.readDType(v, what+".dtype")
				} else {
					value = v
				}
			})
			if d.err == nil && value == nil {
				d.fail(k.value, "add `value: ...`", "%s: has no value", what)
			}
		}
		s.Value = d.float(value, what, -math.MaxFloat64, math.MaxFloat64)
		if d.err == nil && !s.DType.IsFloat() && s.Value != math.Trunc(s.Value) {
			d.fail(value, "write an int, or give the scalar a float dtype", "%s: %g is no %s", what, s.Value, s.DType)
		}
		d.task.Scalars = append(d.task.Scalars, s)
	}
}

// Extent is a tensor or workspace at one size. Shape and Strides are in elements.
type Extent struct {
	Name           string
	Shape          []int64
	Strides        []int64
	DType          harness.DType
	Role           harness.Role // RoleInvalid for a workspace
	Init           string
	Elements       int64 // product of the shape
	Span           int64 // elements from the first to past the last, which strides may widen; the buffer's length
	AlignmentBytes int
}

// Bytes returns the length of the buffer in bytes.
func (e Extent) Bytes() int64 { return e.Span * int64(e.DType.SizeBytes()) }

// maxTensorBytes bounds one tensor: larger than any card's memory today.
const maxTensorBytes = 1 << 40

// Shapes evaluates the tensors of a task at a size, in the task's order. A dim that is not a positive int, a stride that is
// negative, or a tensor too large to address is an error that names the tensor.
func Shapes(t *harness.Task, size harness.Size) ([]Extent, error) {
	env := size.Env(nil)
	var out []Extent
	for _, tensor := range t.Tensors {
		shape, err := evalInts(tensor.Shape, env, 1)
		if err != nil {
			return nil, fmt.Errorf("%s: shape: %w", tensor.Name, err)
		}
		strides := contiguous(shape)
		if tensor.Strides != nil {
			if strides, err = evalInts(tensor.Strides, env, 0); err != nil {
				return nil, fmt.Errorf("%s: strides: %w", tensor.Name, err)
			}
		}
		e := Extent{Name: tensor.Name, Shape: shape, Strides: strides, DType: tensor.DType, Role: tensor.Role, Init: tensor.Init, AlignmentBytes: tensor.AlignmentBytes}
		if err := e.measure(); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// measure fills Elements and Span from Shape and Strides.
func (e *Extent) measure() error {
	limit := maxTensorBytes / float64(e.DType.SizeBytes())
	elements, span := 1.0, 1.0
	for i, n := range e.Shape {
		elements *= float64(n)
		span += float64(n-1) * float64(e.Strides[i])
	}
	if elements > limit || span > limit {
		return fmt.Errorf("%s: shape %v of %s is over %d GiB", e.Name, e.Shape, e.DType, maxTensorBytes>>30)
	}
	e.Elements, e.Span = int64(elements), int64(span)
	return nil
}

func contiguous(shape []int64) []int64 {
	out := make([]int64, len(shape))
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		out[i] = step
		step *= shape[i]
	}
	return out
}
