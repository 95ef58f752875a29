package torch

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"
)

// sliceKey is a:b:c within a subscript.
type sliceKey struct {
	mark
	start, end, step starlark.Value
}

func makeSlice(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	k := &sliceKey{mark: ":", start: starlark.None, end: starlark.None, step: starlark.None}
	for i, v := range args {
		switch i {
		case 0:
			k.start = v
		case 1:
			k.end = v
		case 2:
			k.step = v
		default:
			return nil, fmt.Errorf("a slice has at most start:end:step")
		}
	}
	return k, nil
}

// pick is what a subscript takes of one dim: count elements from start on, step apart. A dropped pick is an index.
type pick struct {
	start, step, count int
	dropped            bool
	fresh              bool // None: a new dim of 1
}

// index is a[key]: ints, slices, None, ... and their tuples; a bool array of a's shape; an int array over the first dim.
func index(a *Array, key starlark.Value) (*Array, error) {
	if k, ok := key.(*Array); ok && len(k.Shape) > 0 {
		if k.kind == kindBool {
			return mask(a, k)
		}
		return gatherRows(a, k)
	}
	keys := starlark.Tuple{key}
	if t, ok := key.(starlark.Tuple); ok {
		keys = t
	}
	picks, err := picksOf(a, keys)
	if err != nil {
		return nil, err
	}
	return take(a, picks)
}

// picksOf spells a subscript out, one pick a dim and one for each None.
func picksOf(a *Array, keys starlark.Tuple) ([]pick, error) {
	used := 0
	for _, k := range keys {
		if k != starlark.None && k != ellipsisMark {
			used++
		}
	}
	if used > len(a.Shape) {
		return nil, fmt.Errorf("%d indices for a tensor of %d dims", used, len(a.Shape))
	}
	var out []pick
	dim := 0
	whole := func() {
		out = append(out, pick{step: 1, count: a.Shape[dim]})
		dim++
	}
	for _, k := range keys {
		switch {
		case k == starlark.None:
			out = append(out, pick{step: 1, count: 1, fresh: true})
		case k == ellipsisMark:
			for range len(a.Shape) - used {
				whole()
			}
		default:
			p, err := pickOf(k, a.Shape[dim])
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			dim++
		}
	}
	for dim < len(a.Shape) {
		whole()
	}
	return out, nil
}

func pickOf(k starlark.Value, extent int) (pick, error) {
	if s, ok := k.(*sliceKey); ok {
		return pickSlice(s, extent)
	}
	i, err := toInt(k)
	if err != nil {
		return pick{}, fmt.Errorf("index: %w", err)
	}
	at := i
	if at < 0 {
		at += extent
	}
	if at < 0 || at >= extent {
		return pick{}, fmt.Errorf("index %d is out of range for an extent of %d", i, extent)
	}
	return pick{start: at, step: 1, count: 1, dropped: true}, nil
}

func pickSlice(s *sliceKey, extent int) (pick, error) {
	bound := func(v starlark.Value, absent int) (int, error) {
		if v == starlark.None {
			return absent, nil
		}
		i, err := toInt(v)
		if i < 0 {
			i += extent
		}
		return min(max(i, 0), extent), err
	}
	step := 1
	if s.step != starlark.None {
		var err error
		if step, err = toInt(s.step); err != nil || step < 1 {
			return pick{}, fmt.Errorf("the step of a slice must be a positive int")
		}
	}
	start, err := bound(s.start, 0)
	if err != nil {
		return pick{}, err
	}
	end, err := bound(s.end, extent)
	if err != nil {
		return pick{}, err
	}
	return pick{start: start, step: step, count: max(0, (end-start+step-1)/step)}, nil
}

// take copies the picked elements.
func take(a *Array, picks []pick) (*Array, error) {
	var shape, outer []int
	var steps []int // in elements of a
	strides := stridesOf(a.Shape)
	offset, dim := 0, 0
	for _, p := range picks {
		if p.fresh {
			shape = append(shape, 1)
			continue
		}
		offset += p.start * strides[dim]
		if !p.dropped {
			shape = append(shape, p.count)
			outer = append(outer, p.count)
			steps = append(steps, p.step*strides[dim])
		}
		dim++
	}
	out, err := alloc(shape, a.kind)
	if err != nil {
		return nil, err
	}
	gather(out.Data, a.Data, outer, steps, offset)
	return out, nil
}

// gather copies src at offset + sum(i_k * steps_k) to dst in row-major order over extents.
func gather(dst, src []float64, extents, steps []int, offset int) {
	if len(dst) == 0 {
		return
	}
	if len(extents) == 0 {
		dst[0] = src[offset]
		return
	}
	last := len(extents) - 1
	inner, step := extents[last], steps[last]
	parallel(len(dst)/inner, inner, func(low, high int) {
		for row := low; row < high; row++ {
			at, rest := offset, row
			for k := last - 1; k >= 0; k-- {
				at += rest % extents[k] * steps[k]
				rest /= extents[k]
			}
			to := dst[row*inner : (row+1)*inner]
			if step == 1 {
				copy(to, src[at:at+inner])
				continue
			}
			for i := range to {
				to[i] = src[at+i*step]
			}
		}
	})
}

func mask(a, m *Array) (*Array, error) {
	if !slices.Equal(a.Shape, m.Shape) {
		return nil, fmt.Errorf("a mask of shape %v for a tensor of shape %v", m.Shape, a.Shape)
	}
	var data []float64
	for i, keep := range m.Data {
		if keep != 0 {
			data = append(data, a.Data[i])
		}
	}
	return &Array{Shape: []int{len(data)}, Data: data, kind: a.kind}, nil
}

// gatherRows is a[k] for an int array k: the rows of a that k names.
func gatherRows(a, k *Array) (*Array, error) {
	if len(a.Shape) == 0 {
		return nil, fmt.Errorf("a scalar has no rows")
	}
	row := len(a.Data) / max(a.Shape[0], 1)
	out, err := alloc(append(slices.Clone(k.Shape), a.Shape[1:]...), a.kind)
	if err != nil {
		return nil, err
	}
	for i, v := range k.Data {
		at := int(v)
		if at < 0 {
			at += a.Shape[0]
		}
		if v != math.Trunc(v) || at < 0 || at >= a.Shape[0] {
			return nil, fmt.Errorf("index %v is out of range for an extent of %d", v, a.Shape[0])
		}
		copy(out.Data[i*row:(i+1)*row], a.Data[at*row:(at+1)*row])
	}
	return out, nil
}

// maxInt bounds the ints that stand for dims, positions, counts and steps, so that arithmetic on a few of them cannot overflow.
const maxInt = 1<<31 - 1

// toInt reads an int within maxInt, or a tensor that holds one.
func toInt(v starlark.Value) (int, error) {
	switch v := v.(type) {
	case starlark.Int:
		n, ok := v.Int64()
		if !ok || n > maxInt || n < -maxInt {
			return 0, fmt.Errorf("%s is out of range for a dim, a position or a count", v)
		}
		return int(n), nil
	case *Array:
		if len(v.Data) == 1 && v.Data[0] == math.Trunc(v.Data[0]) && math.Abs(v.Data[0]) <= maxInt {
			return int(v.Data[0]), nil
		}
	}
	return 0, fmt.Errorf("want an int, got %s", v)
}
