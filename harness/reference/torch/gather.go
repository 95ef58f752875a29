package torch

import (
	"slices"

	"go.starlark.net/starlark"
)

func flip(c *call) starlark.Value {
	a := c.array("input")
	steps := stridesOf(a.Shape)
	offset := 0
	for _, d := range c.integers("dims") {
		d, err := axis(d, len(a.Shape))
		if err != nil {
			return c.give(nil, err)
		}
		if len(a.Shape) == 0 {
			continue // -1 and 0 name the only way round of a scalar
		}
		offset += (a.Shape[d] - 1) * steps[d]
		steps[d] = -steps[d]
	}
	out, err := alloc(a.Shape, a.kind)
	if err == nil {
		gather(out.Data, a.Data, a.Shape, steps, offset)
	}
	return c.give(out, err)
}

func roll(c *call) starlark.Value {
	a := c.array("input")
	d := c.axis("dim", a, 0)
	if c.err != nil || len(a.Data) == 0 || len(a.Shape) == 0 {
		return a // a scalar and an empty tensor have nothing to roll
	}
	n := a.Shape[d]
	k := ((-c.integer("shifts", 0))%n + n) % n
	whole := func(from, to int) (*Array, error) {
		picks := make([]pick, len(a.Shape))
		for i := range picks {
			picks[i] = pick{step: 1, count: a.Shape[i]}
		}
		picks[d] = pick{start: from, step: 1, count: to - from}
		return take(a, picks)
	}
	head, err := whole(k, n)
	if err != nil {
		return c.give(nil, err)
	}
	tail, err := whole(0, k)
	if err != nil {
		return c.give(nil, err)
	}
	return c.give(concat([]*Array{head, tail}, d))
}

// triangle keeps the lower or the upper triangle of the last two dims.
func triangle(lower bool) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		a, k := c.array("input"), c.integer("diagonal", 0)
		if len(a.Shape) < 2 {
			c.fail("want at least 2 dims, got %d", len(a.Shape))
			return nil
		}
		out, err := alloc(a.Shape, a.kind)
		if err != nil {
			return c.give(nil, err)
		}
		rows, cols := a.Shape[len(a.Shape)-2], a.Shape[len(a.Shape)-1]
		for i, v := range a.Data {
			row, col := i/cols%rows, i%cols
			if lower && col-row <= k || !lower && col-row >= k {
				out.Data[i] = v
			}
		}
		return out
	}
}

func diagonal(c *call) starlark.Value {
	a := c.array("input")
	if len(a.Shape) != 2 {
		c.fail("want 2 dims, got %d", len(a.Shape))
		return nil
	}
	n := min(a.Shape[0], a.Shape[1])
	out, err := alloc([]int{n}, a.kind)
	if err != nil {
		return c.give(nil, err)
	}
	for i := range n {
		out.Data[i] = a.Data[i*a.Shape[1]+i]
	}
	return out
}

// gatherOp is out[i][j] = input[i][index[i][j]] along a dim.
func gatherOp(c *call) starlark.Value {
	a, k := c.array("input"), c.array("index")
	d := c.axis("dim", a, -1)
	if c.err != nil || len(k.Shape) != len(a.Shape) {
		c.fail("index has %d dims, the tensor %d", len(k.Shape), len(a.Shape))
		return nil
	}
	out, err := alloc(k.Shape, a.kind)
	if err != nil {
		return c.give(nil, err)
	}
	own := stridesOf(a.Shape)
	for i, v := range k.Data {
		rest, at := i, 0
		for dim := len(k.Shape) - 1; dim >= 0; dim-- {
			pos := rest % k.Shape[dim]
			rest /= k.Shape[dim]
			if dim == d {
				pos = int(v)
			}
			if pos < 0 || pos >= a.Shape[dim] {
				c.fail("index %d is out of range for an extent of %d", pos, a.Shape[dim])
				return nil
			}
			at += pos * own[dim]
		}
		out.Data[i] = a.Data[at]
	}
	return out
}

func indexSelect(c *call) starlark.Value {
	a, k := c.array("input"), c.array("index")
	d := c.axis("dim", a, 0)
	if c.err != nil {
		return nil
	}
	order := []int{d}
	for i := range a.Shape {
		if i != d {
			order = append(order, i)
		}
	}
	moved, err := permute(a, order)
	if err == nil {
		moved, err = gatherRows(moved, k)
	}
	if err != nil {
		return c.give(nil, err)
	}
	back := make([]int, len(order))
	for i, o := range order {
		back[o] = i
	}
	return c.give(permute(moved, back))
}

func (c *call) pieces(a *Array, d, length int) starlark.Value {
	if c.err != nil || length < 1 {
		c.fail("pieces must hold at least 1 row")
		return nil
	}
	var out []starlark.Value
	for from := 0; from < a.Shape[d]; from += length {
		picks := make([]pick, len(a.Shape))
		for i := range picks {
			picks[i] = pick{step: 1, count: a.Shape[i]}
		}
		picks[d] = pick{start: from, step: 1, count: min(length, a.Shape[d]-from)}
		p, err := take(a, picks)
		if err != nil {
			return c.give(nil, err)
		}
		out = append(out, p)
	}
	return starlark.Tuple(out)
}

func chunkOp(c *call) starlark.Value {
	a := c.array("input")
	d, n := c.axis("dim", a, 0), c.integer("chunks", 1)
	if n < 1 || len(a.Shape) == 0 {
		c.fail("want at least 1 chunk of at least 1 dim")
		return nil
	}
	return c.pieces(a, d, (a.Shape[d]+n-1)/n)
}

func splitOp(c *call) starlark.Value {
	a := c.array("input")
	d := c.axis("dim", a, 0)
	if len(a.Shape) == 0 {
		c.fail("a scalar cannot be split")
		return nil
	}
	return c.pieces(a, d, c.integer("split_size", 0))
}

// padOp pads with a constant; pad counts from the last dim: (left, right, top, bottom, ...).
func padOp(c *call) starlark.Value {
	a, widths := c.array("input"), c.integers("pad")
	if mode := c.text("mode", "constant"); mode != "constant" || len(widths)%2 != 0 || len(widths) > 2*len(a.Shape) {
		c.fail("want mode constant and a pair of widths a dim, got %q and %v", mode, widths)
		return nil
	}
	shape := slices.Clone(a.Shape)
	starts := make([]int, len(shape))
	for i := 0; i < len(widths); i += 2 {
		d := len(shape) - 1 - i/2
		if widths[i] < 0 || widths[i+1] < 0 {
			c.fail("widths must not be negative")
			return nil
		}
		starts[d] = widths[i]
		shape[d] += widths[i] + widths[i+1]
	}
	out, err := alloc(shape, a.kind)
	if err != nil {
		return c.give(nil, err)
	}
	if v := c.number("value", 0); v != 0 {
		spread(out.Data, v)
	}
	rows, cols := a.lastDim()
	steps := stridesOf(shape)
	for r := range rows {
		at, rest := 0, r
		for d := len(shape) - 2; d >= 0; d-- {
			at += (rest%a.Shape[d] + starts[d]) * steps[d]
			rest /= a.Shape[d]
		}
		if len(shape) > 0 {
			at += starts[len(shape)-1]
		}
		copy(out.Data[at:at+cols], a.Data[r*cols:(r+1)*cols])
	}
	return out
}
