package torch

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"go.starlark.net/starlark"
)

// rowwise applies fn to every run along a dim; fn reads src and writes dst.
func rowwise(fn func(dst, src []float64)) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		a := c.array("input")
		return c.give(alongDim(a, c.axis("dim", a, -1), kindFloat, fn))
	}
}

func alongDim(a *Array, dim int, kind elemKind, fn func(dst, src []float64)) (*Array, error) {
	if len(a.Shape) == 0 {
		a = a.view([]int{1})
		out, err := alongDim(a, 0, kind, fn)
		if err != nil {
			return nil, err
		}
		return out.view(nil), nil
	}
	order := make([]int, 0, len(a.Shape))
	for d := range a.Shape {
		if d != dim {
			order = append(order, d)
		}
	}
	order = append(order, dim)
	moved, err := permute(a, order)
	if err != nil {
		return nil, err
	}
	out, err := alloc(moved.Shape, kind)
	if err != nil || len(out.Data) == 0 {
		return out, err
	}
	rows, cols := out.lastDim()
	parallel(rows, 8*cols, func(low, high int) {
		for r := low; r < high; r++ {
			fn(out.Data[r*cols:(r+1)*cols], moved.Data[r*cols:(r+1)*cols])
		}
	})
	back := make([]int, len(order))
	for i, d := range order {
		back[d] = i
	}
	return permute(out, back)
}

func softmaxRow(dst, src []float64) {
	m := maxRow(src)
	s := 0.0
	for i, x := range src {
		e := math.Exp(x - m)
		dst[i] = e
		s += e
	}
	s = 1 / s
	for i := range dst {
		dst[i] *= s
	}
}

func softminRow(dst, src []float64) {
	for i, x := range src {
		dst[i] = -x
	}
	softmaxRow(dst, dst)
}

func logSoftmaxRow(dst, src []float64) {
	m := maxRow(src)
	s := 0.0
	for _, x := range src {
		s += math.Exp(x - m)
	}
	s = math.Log(s)
	for i, x := range src {
		dst[i] = x - m - s
	}
}

func cumsumRow(dst, src []float64) {
	s := 0.0
	for i, x := range src {
		s += x
		dst[i] = s
	}
}

func cumprodRow(dst, src []float64) {
	p := 1.0
	for i, x := range src {
		p *= x
		dst[i] = p
	}
}

func normalize(c *call) starlark.Value {
	a := c.array("input")
	n, err := reduce(a, []int{c.axis("dim", a, min(1, len(a.Shape)-1))}, true, pNorm(c.number("p", 2)))
	if err == nil {
		n, err = binary(n, scalar(c.number("eps", 1e-12), kindFloat), maximum)
	}
	if err == nil {
		n, err = binary(a, n, div)
	}
	return c.give(n, err)
}

// layerNorm normalises over the last dims, as many as normalized_shape has.
func layerNorm(c *call) starlark.Value {
	a := c.array("input")
	eps := c.number("eps", 1e-5)
	out, err := overLast(a, len(c.integers("normalized_shape")), func(dst, src []float64) {
		mean := sumRow(src) / float64(len(src))
		v := 0.0
		for _, x := range src {
			v += (x - mean) * (x - mean)
		}
		scale := 1 / math.Sqrt(v/float64(len(src))+eps)
		for i, x := range src {
			dst[i] = (x - mean) * scale
		}
	})
	return c.affine(out, err)
}

func rmsNorm(c *call) starlark.Value {
	a := c.array("input")
	eps := c.number("eps", 0x1p-23)
	out, err := overLast(a, len(c.integers("normalized_shape")), func(dst, src []float64) {
		v := 0.0
		for _, x := range src {
			v += x * x
		}
		scale := 1 / math.Sqrt(v/float64(len(src))+eps)
		for i, x := range src {
			dst[i] = x * scale
		}
	})
	return c.affine(out, err)
}

func overLast(a *Array, dims int, fn func(dst, src []float64)) (*Array, error) {
	if dims < 1 || dims > len(a.Shape) {
		return nil, fmt.Errorf("normalized_shape has %d dims, the tensor %d", dims, len(a.Shape))
	}
	length := 1
	for _, n := range a.Shape[len(a.Shape)-dims:] {
		length *= n
	}
	flat := append(slices.Clone(a.Shape[:len(a.Shape)-dims]), length)
	out, err := alongDim(a.view(flat), len(flat)-1, kindFloat, fn)
	if err != nil {
		return nil, err
	}
	return out.view(a.Shape), nil
}

// affine applies the optional weight and bias.
func (c *call) affine(a *Array, err error) starlark.Value {
	if err == nil && c.has("weight") {
		a, err = binary(a, c.array("weight"), mul)
	}
	if err == nil && c.has("bias") {
		a, err = binary(a, c.array("bias"), add)
	}
	return c.give(a, err)
}

// order returns the stable order of a row's elements.
func order(src []float64, descending bool) []int {
	out := make([]int, len(src))
	for i := range out {
		out[i] = i
	}
	sort.SliceStable(out, func(i, j int) bool {
		if descending {
			return src[out[i]] > src[out[j]]
		}
		return src[out[i]] < src[out[j]]
	})
	return out
}

func argsortOp(c *call) starlark.Value {
	a, descending := c.array("input"), c.flag("descending", false)
	return c.give(alongDim(a, c.axis("dim", a, -1), kindInt, func(dst, src []float64) {
		for i, at := range order(src, descending) {
			dst[i] = float64(at)
		}
	}))
}

func sortOp(c *call) starlark.Value {
	a, descending := c.array("input"), c.flag("descending", false)
	values, err := alongDim(a, c.axis("dim", a, -1), a.kind, func(dst, src []float64) {
		for i, at := range order(src, descending) {
			dst[i] = src[at]
		}
	})
	if err != nil {
		return c.give(nil, err)
	}
	indices, ok := argsortOp(c).(*Array)
	if !ok {
		return nil
	}
	return &pair{values, indices}
}
