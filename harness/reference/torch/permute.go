package torch

import (
	"fmt"
	"slices"
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
