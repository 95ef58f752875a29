package torch

import (
	"fmt"
	"math"
	"slices"
)

// pointwise is a binary operation on elements. fill computes a run of elements; it and fn must agree. kind is of the result.
type pointwise struct {
	fn   func(x, y float64) float64
	fill func(dst, a, b []float64)
	kind func(a, b elemKind) elemKind
}

func widest(a, b elemKind) elemKind {
	if a == kindBool && b == kindBool {
		return kindInt
	}
	return min(a, b)
}
func always(k elemKind) func(a, b elemKind) elemKind {
	return func(elemKind, elemKind) elemKind { return k }
}
func same(a, b elemKind) elemKind { return min(a, b) }

func pythonMod(x, y float64) float64 {
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func powFast(x, y float64) float64 {
	switch y {
	case 2:
		return x * x
	case 0.5:
		return math.Sqrt(x)
	}
	return math.Pow(x, y)
}

// maxNaN and minNaN pass a NaN on, as torch does.
func maxNaN(x, y float64) float64 {
	if x > y || x != x {
		return x
	}
	return y
}

func minNaN(x, y float64) float64 {
	if x < y || x != x {
		return x
	}
	return y
}

// broadcastShape is the shape that two operands take together.
func broadcastShape(a, b []int) ([]int, error) {
	n := max(len(a), len(b))
	out := make([]int, n)
	for i := range n {
		x, y := 1, 1
		if j := i - n + len(a); j >= 0 {
			x = a[j]
		}
		if j := i - n + len(b); j >= 0 {
			y = b[j]
		}
		switch {
		case x == y || y == 1:
			out[i] = x
		case x == 1:
			out[i] = y
		default:
			return nil, fmt.Errorf("shapes %v and %v do not fit together", a, b)
		}
	}
	return out, nil
}

// broadcastSteps are the steps in a for each dim of shape: 0 where a is repeated.
func broadcastSteps(a *Array, shape []int) []int {
	own := stridesOf(a.Shape)
	out := make([]int, len(shape))
	for i := range own {
		if a.Shape[i] != 1 {
			out[i+len(shape)-len(own)] = own[i]
		}
	}
	return out
}

// chunk is how many elements of a repeated operand are spread out at a time.
const chunk = 1024

// binary applies f to two arrays, each broadcast to their common shape.
func binary(a, b *Array, f *pointwise) (*Array, error) {
	shape, err := broadcastShape(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	out, err := alloc(shape, f.kind(a.kind, b.kind))
	if err != nil || len(out.Data) == 0 {
		return out, err
	}
	fill := f.fill
	if fill == nil {
		fill = func(dst, x, y []float64) {
			for i := range dst {
				dst[i] = f.fn(x[i], y[i])
			}
		}
	}
	if slices.Equal(a.Shape, shape) && slices.Equal(b.Shape, shape) {
		parallel(len(out.Data), 1, func(low, high int) { fill(out.Data[low:high], a.Data[low:high], b.Data[low:high]) })
		return out, nil
	}
	if len(shape) == 0 {
		fill(out.Data, a.Data, b.Data)
		return out, nil
	}
	rows, cols := out.lastDim()
	x, y := newReader(a, shape), newReader(b, shape)
	if rows == 1 { // split along the row instead
		parallel(cols, 1, func(low, high int) { fillRow(out.Data, low, high, x, y, 0, fill) })
		return out, nil
	}
	parallel(rows, cols, func(low, high int) {
		for r := low; r < high; r++ {
			fillRow(out.Data[r*cols:(r+1)*cols], 0, cols, x, y, r, fill)
		}
	})
	return out, nil
}

// reader finds the rows of a broadcast operand.
type reader struct {
	data  []float64
	shape []int // of the result, without its last dim
	steps []int
	inner int // step of the last dim: 0 or 1
}

func newReader(a *Array, shape []int) reader {
	steps := broadcastSteps(a, shape)
	last := len(shape) - 1
	return reader{data: a.Data, shape: shape[:last], steps: steps[:last], inner: steps[last]}
}

func (r reader) offset(row int) int {
	at := 0
	for k := len(r.shape) - 1; k >= 0; k-- {
		at += row % r.shape[k] * r.steps[k]
		row /= r.shape[k]
	}
	return at
}

// run returns n elements from column c of a row, spread into scratch where one element is repeated.
func (r reader) run(base, c, n int, scratch []float64) []float64 {
	if r.inner == 1 {
		return r.data[base+c : base+c+n]
	}
	return scratch[:n]
}

func fillRow(dst []float64, low, high int, x, y reader, row int, fill func(dst, a, b []float64)) {
	var xs, ys [chunk]float64
	bx, by := x.offset(row), y.offset(row)
	if x.inner == 0 {
		spread(xs[:min(chunk, high-low)], x.data[bx])
	}
	if y.inner == 0 {
		spread(ys[:min(chunk, high-low)], y.data[by])
	}
	for c := low; c < high; c += chunk {
		n := min(chunk, high-c)
		fill(dst[c:c+n], x.run(bx, c, n, xs[:]), y.run(by, c, n, ys[:]))
	}
}

func spread(dst []float64, v float64) {
	for i := range dst {
		dst[i] = v
	}
}

// unary applies fn to every element.
func unary(a *Array, fn func(float64) float64, kind elemKind) (*Array, error) {
	out, err := alloc(a.Shape, kind)
	if err != nil {
		return nil, err
	}
	parallel(len(a.Data), 8, func(low, high int) {
		dst, src := out.Data[low:high], a.Data[low:high]
		for i := range dst {
			dst[i] = fn(src[i])
		}
	})
	return out, nil
}
