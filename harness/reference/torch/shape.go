package torch

import (
	"slices"

	"go.starlark.net/starlark"
)

func shapeOps() []op {
	return []op{
		{"t", "input", func(c *call) starlark.Value {
			a := c.array("input")
			if len(a.Shape) > 2 {
				c.fail("t takes at most 2 dims, got %d; use transpose", len(a.Shape))
			}
			return c.give(transposeLast(a, true))
		}, true},
		{"transpose", "input dim0 dim1", transposeOp, true},
		{"swapaxes", "input dim0 dim1", transposeOp, true},
		{"permute", "input dims*", permuteOp, true},
		{"reshape", "input shape*", func(c *call) starlark.Value { return c.give(reshape(c.array("input"), c.integers("shape"))) }, true},
		{"view", "input shape*", func(c *call) starlark.Value { return c.give(reshape(c.array("input"), c.integers("shape"))) }, true},
		{"flatten", "input start_dim? end_dim?", flatten, true},
		{"squeeze", "input dim?", squeeze, true},
		{"unsqueeze", "input dim", unsqueeze, true},
		{"expand", "input shape*", expandOp, true},
		{"broadcast_to", "input shape*", expandOp, true},
		{"expand_as", "input other", func(c *call) starlark.Value { return c.give(expand(c.array("input"), c.array("other").Shape)) }, true},
		{"repeat", "input sizes*", repeat, true},
		{"cat", "tensors dim?", catOp, false},
		{"concat", "tensors dim?", catOp, false},
		{"stack", "tensors dim?", stackOp, false},
		{"flip", "input dims*", flip, true},
		{"roll", "input shifts dim", roll, true},
		{"tril", "input diagonal?", triangle(true), true},
		{"triu", "input diagonal?", triangle(false), true},
		{"diagonal", "input", diagonal, true},
		{"gather", "input dim index", gatherOp, true},
		{"index_select", "input dim index", indexSelect, true},
		{"take_along_dim", "input index dim", gatherOp, true},
		{"chunk", "input chunks dim?", chunkOp, true},
		{"split", "input split_size dim?", splitOp, true},
		{"pad", "input pad mode? value?", padOp, false},
		{"contiguous", "input", func(c *call) starlark.Value { return c.array("input") }, true},
		{"clone", "input", func(c *call) starlark.Value { return c.array("input") }, true},
		{"detach", "input", func(c *call) starlark.Value { return c.array("input") }, true},
		{"item", "input", item, true},
		{"numel", "input", func(c *call) starlark.Value { return starlark.MakeInt(len(c.array("input").Data)) }, true},
		{"dim", "input", func(c *call) starlark.Value { return starlark.MakeInt(len(c.array("input").Shape)) }, true},
		{"size", "input dim?", sizeOp, true},
	}
}

func transposeOp(c *call) starlark.Value {
	a := c.array("input")
	i, j := c.axis("dim0", a, 0), c.axis("dim1", a, 1)
	order := make([]int, len(a.Shape))
	for d := range order {
		order[d] = d
	}
	if len(order) > 0 && c.err == nil {
		order[i], order[j] = order[j], order[i]
	}
	return c.give(permute(a, order))
}

func permuteOp(c *call) starlark.Value {
	a := c.array("input")
	order := c.integers("dims")
	for i, d := range order {
		var err error
		if order[i], err = axis(d, len(a.Shape)); err != nil {
			c.fail("%v", err)
		}
	}
	return c.give(permute(a, order))
}

func flatten(c *call) starlark.Value {
	a := c.array("input")
	if len(a.Shape) == 0 {
		return a.view([]int{1})
	}
	start, end := c.axis("start_dim", a, 0), c.axis("end_dim", a, -1)
	if start > end || c.err != nil {
		c.fail("start_dim %d comes after end_dim %d", start, end)
		return a
	}
	n := 1
	for _, d := range a.Shape[start : end+1] {
		n *= d
	}
	return a.view(slices.Concat(a.Shape[:start], []int{n}, a.Shape[end+1:]))
}

func squeeze(c *call) starlark.Value {
	a := c.array("input")
	dims := c.axes("dim", a)
	var shape []int
	for d, n := range a.Shape {
		if n != 1 || c.has("dim") && !slices.Contains(dims, d) {
			shape = append(shape, n)
		}
	}
	return a.view(shape)
}

func unsqueeze(c *call) starlark.Value {
	a := c.array("input")
	d, err := axis(c.integer("dim", 0), len(a.Shape)+1)
	if err != nil {
		return c.give(nil, err)
	}
	return a.view(slices.Insert(slices.Clone(a.Shape), d, 1))
}

func expandOp(c *call) starlark.Value {
	a := c.array("input")
	shape := c.integers("shape")
	for i := range shape { // -1 keeps the extent
		if j := i - len(shape) + len(a.Shape); shape[i] == -1 && j >= 0 {
			shape[i] = a.Shape[j]
		}
	}
	return c.give(expand(a, shape))
}

func repeat(c *call) starlark.Value {
	a := c.array("input")
	times := c.integers("sizes")
	if len(times) < len(a.Shape) {
		c.fail("want at least %d counts, got %d", len(a.Shape), len(times))
		return a
	}
	a = a.view(append(slices.Repeat([]int{1}, len(times)-len(a.Shape)), a.Shape...))
	for d, n := range times {
		if n < 1 {
			c.fail("counts must be at least 1, got %d", n)
			return a
		}
		_, err := count([]int{n, max(len(a.Data), 1)})
		if err != nil {
			return c.give(nil, err)
		}
		if a, err = concat(slices.Repeat([]*Array{a}, n), d); err != nil {
			return c.give(nil, err)
		}
	}
	return a
}

func catOp(c *call) starlark.Value {
	parts := c.arrays("tensors")
	if c.err != nil {
		return nil
	}
	if len(parts[0].Shape) == 0 {
		c.fail("cannot join scalars; use stack")
		return nil
	}
	d := c.axis("dim", parts[0], 0)
	if c.err != nil {
		return nil
	}
	return c.give(concat(parts, d))
}

func stackOp(c *call) starlark.Value {
	parts := c.arrays("tensors")
	if c.err != nil {
		return nil
	}
	d, err := axis(c.integer("dim", 0), len(parts[0].Shape)+1)
	if err != nil {
		return c.give(nil, err)
	}
	return c.give(stack(parts, d))
}

func item(c *call) starlark.Value {
	a := c.array("input")
	if len(a.Data) != 1 {
		c.fail("item wants one element, got %d", len(a.Data))
		return nil
	}
	if a.kind == kindInt {
		return starlark.MakeInt64(int64(a.Data[0]))
	}
	return starlark.Float(a.Data[0])
}

func sizeOp(c *call) starlark.Value {
	a := c.array("input")
	if c.has("dim") {
		if d := c.axis("dim", a, 0); c.err == nil && len(a.Shape) > 0 {
			return starlark.MakeInt(a.Shape[d])
		}
		return nil
	}
	out := make(starlark.Tuple, len(a.Shape))
	for i, n := range a.Shape {
		out[i] = starlark.MakeInt(n)
	}
	return out
}
