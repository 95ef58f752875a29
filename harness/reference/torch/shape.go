package torch

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// permute reorders the dims; the identity shares the data.
func permute(a *Array, order []int) (*Array, error) {
	seen := make([]bool, len(a.Shape))
	shape := make([]int, len(order))
	identity := true
	if len(order) != len(a.Shape) {
		return nil, fmt.Errorf("%d dims for a tensor of %d", len(order), len(a.Shape))
	}
	for i, d := range order {
		if d < 0 || d >= len(seen) || seen[d] {
			return nil, fmt.Errorf("%v is not an order of %d dims", order, len(a.Shape))
		}
		seen[d] = true
		shape[i] = a.Shape[d]
		identity = identity && i == d
	}
	if identity {
		return a, nil
	}
	out, err := alloc(shape, a.kind)
	if err != nil {
		return nil, err
	}
	if swapsLast(order) {
		transposeTiles(out.Data, a)
		return out, nil
	}
	own := stridesOf(a.Shape)
	steps := make([]int, len(order))
	for i, d := range order {
		steps[i] = own[d]
	}
	gather(out.Data, a.Data, shape, steps, 0)
	return out, nil
}

func swapsLast(order []int) bool {
	n := len(order)
	for i := range n - 2 {
		if order[i] != i {
			return false
		}
	}
	return n >= 2 && order[n-1] == n-2
}

// transposeTiles swaps the last two dims in tiles that stay in the cache.
func transposeTiles(dst []float64, a *Array) {
	const tile = 32
	rows, cols := a.Shape[len(a.Shape)-2], a.Shape[len(a.Shape)-1]
	if len(dst) == 0 {
		return
	}
	bands := (rows + tile - 1) / tile
	parallel(len(dst)/(rows*cols)*bands, tile*cols, func(low, high int) {
		for b := low; b < high; b++ {
			base := b / bands * rows * cols
			r0 := b % bands * tile
			for c0 := 0; c0 < cols; c0 += tile {
				for c := c0; c < min(c0+tile, cols); c++ {
					for r := r0; r < min(r0+tile, rows); r++ {
						dst[base+c*rows+r] = a.Data[base+r*cols+c]
					}
				}
			}
		}
	})
}

// transposeLast is .T (all dims reversed) or .mT (the last two swapped).
func transposeLast(a *Array, all bool) (*Array, error) {
	n := len(a.Shape)
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if all {
			order[i] = n - 1 - i
		}
	}
	if !all {
		if n < 2 {
			return nil, fmt.Errorf("a tensor of %d dims has no last two", n)
		}
		order[n-1], order[n-2] = n-2, n-1
	}
	return permute(a, order)
}

// expand repeats a to a shape.
func expand(a *Array, shape []int) (*Array, error) {
	if slices.Equal(a.Shape, shape) {
		return a, nil
	}
	got, err := broadcastShape(a.Shape, shape)
	if err != nil || !slices.Equal(got, shape) {
		return nil, fmt.Errorf("shape %v cannot be expanded to %v", a.Shape, shape)
	}
	out, err := alloc(shape, a.kind)
	if err != nil {
		return nil, err
	}
	gather(out.Data, a.Data, shape, broadcastSteps(a, shape), 0)
	return out, nil
}

// reshape fills in one -1 and returns the same elements.
func reshape(a *Array, shape []int) (*Array, error) {
	shape = slices.Clone(shape)
	free, known := -1, 1
	for i, d := range shape {
		switch {
		case d == -1 && free < 0:
			free = i
		case d < 0:
			return nil, fmt.Errorf("shape %v: want at most one -1", shape)
		default:
			known *= d
		}
	}
	if free >= 0 {
		if known == 0 || len(a.Data)%known != 0 {
			return nil, fmt.Errorf("%d elements do not fit the shape %v", len(a.Data), shape)
		}
		shape[free] = len(a.Data) / known
		known = len(a.Data)
	}
	if known != len(a.Data) {
		return nil, fmt.Errorf("%d elements do not fit the shape %v", len(a.Data), shape)
	}
	return a.view(shape), nil
}

// concat joins arrays along a dim.
func concat(parts []*Array, dim int) (*Array, error) {
	shape := slices.Clone(parts[0].Shape)
	shape[dim] = 0
	kind := parts[0].kind
	for _, p := range parts {
		if len(p.Shape) != len(shape) {
			return nil, fmt.Errorf("cannot join tensors of %d and %d dims", len(shape), len(p.Shape))
		}
		for d := range shape {
			if d != dim && p.Shape[d] != shape[d] {
				return nil, fmt.Errorf("cannot join shapes %v and %v along dim %d", parts[0].Shape, p.Shape, dim)
			}
		}
		shape[dim] += p.Shape[dim]
		kind = same(kind, p.kind)
	}
	out, err := alloc(shape, kind)
	if err != nil {
		return nil, err
	}
	outer, inner := 1, 1
	for d, n := range shape {
		if d < dim {
			outer *= n
		} else if d > dim {
			inner *= n
		}
	}
	at := 0
	for _, p := range parts {
		run := p.Shape[dim] * inner
		for o := range outer {
			copy(out.Data[o*shape[dim]*inner+at:], p.Data[o*run:(o+1)*run])
		}
		at += run
	}
	return out, nil
}

// stack joins arrays of one shape along a new dim.
func stack(parts []*Array, dim int) (*Array, error) {
	views := make([]*Array, len(parts))
	for i, p := range parts {
		if !slices.Equal(p.Shape, parts[0].Shape) {
			return nil, fmt.Errorf("cannot stack shapes %v and %v", parts[0].Shape, p.Shape)
		}
		views[i] = p.view(slices.Insert(slices.Clone(p.Shape), dim, 1))
	}
	return concat(views, dim)
}

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
		var err error
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

func flip(c *call) starlark.Value {
	a := c.array("input")
	steps := stridesOf(a.Shape)
	offset := 0
	for _, d := range c.integers("dims") {
		d, err := axis(d, len(a.Shape))
		if err != nil {
			return c.give(nil, err)
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
	if c.err != nil || len(a.Data) == 0 {
		return a
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
