package torch

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

func linearOps() []op {
	product := func(c *call) starlark.Value { return c.give(matmul(c.array("input"), c.array("other"))) }
	return []op{
		{"matmul", "input other", product, true},
		{"mm", "input other", product, true},
		{"bmm", "input other", product, true},
		{"mv", "input other", product, true},
		{"dot", "input other", product, true},
		{"inner", "input other", product, true},
		{"outer", "input other", outer, true},
		{"linear", "input weight bias?", linear, false},
		{"addmm", "input mat1 mat2 beta? alpha?", addmm, true},
		{"conv2d", "input weight bias? stride? padding? dilation? groups?", conv2d, false},
		{"max_pool2d", "input kernel_size stride? padding?", pool(foldMax, false), false},
		{"avg_pool2d", "input kernel_size stride? padding?", pool(foldSum, true), false},
		{"scaled_dot_product_attention", "query key value attn_mask? dropout_p? is_causal? scale?", attention, false},
	}
}

// matmul is a @ b as torch has it: vectors, matrices, and batches of matrices that broadcast.
func matmul(a, b *Array) (*Array, error) {
	if len(a.Shape) == 0 || len(b.Shape) == 0 {
		return nil, fmt.Errorf("@ takes vectors and matrices, got shapes %v and %v", a.Shape, b.Shape)
	}
	x, y := a, b
	if len(a.Shape) == 1 {
		x = a.view([]int{1, a.Shape[0]})
	}
	if len(b.Shape) == 1 {
		y = b.view([]int{b.Shape[0], 1})
	}
	m, k := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	n := y.Shape[len(y.Shape)-1]
	if y.Shape[len(y.Shape)-2] != k {
		return nil, fmt.Errorf("shapes %v and %v cannot be multiplied: %d is not %d", a.Shape, b.Shape, k, y.Shape[len(y.Shape)-2])
	}
	batch, err := broadcastShape(x.Shape[:len(x.Shape)-2], y.Shape[:len(y.Shape)-2])
	if err != nil {
		return nil, err
	}
	if x, err = expand(x, slices.Concat(batch, []int{m, k})); err != nil {
		return nil, err
	}
	if y, err = expand(y, slices.Concat(batch, []int{k, n})); err != nil {
		return nil, err
	}
	out, err := alloc(slices.Concat(batch, []int{m, n}), same(a.kind, b.kind))
	if err != nil {
		return nil, err
	}
	if len(out.Data) > 0 && k > 0 {
		for i := range len(out.Data) / (m * n) {
			gemm(out.Data[i*m*n:(i+1)*m*n], x.Data[i*m*k:(i+1)*m*k], y.Data[i*k*n:(i+1)*k*n], m, k, n)
		}
	}
	shape := slices.Clone(batch)
	if len(a.Shape) > 1 {
		shape = append(shape, m)
	}
	if len(b.Shape) > 1 {
		shape = append(shape, n)
	}
	return out.view(shape), nil
}

// gemm writes the product of two matrices; gonum's works in blocks on all processors.
func gemm(dst, a, b []float64, m, k, n int) {
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, blas64.General{Rows: m, Cols: k, Stride: k, Data: a},
		blas64.General{Rows: k, Cols: n, Stride: n, Data: b}, 0, blas64.General{Rows: m, Cols: n, Stride: n, Data: dst})
}

func outer(c *call) starlark.Value {
	a, b := c.array("input"), c.array("other")
	if len(a.Shape) != 1 || len(b.Shape) != 1 {
		c.fail("want two vectors, got shapes %v and %v", a.Shape, b.Shape)
		return nil
	}
	return c.give(binary(a.view([]int{a.Shape[0], 1}), b, mul))
}

func linear(c *call) starlark.Value {
	w, err := transposeLast(c.array("weight"), true)
	if err == nil {
		w, err = matmul(c.array("input"), w)
	}
	if err == nil && c.has("bias") {
		w, err = binary(w, c.array("bias"), add)
	}
	return c.give(w, err)
}

func addmm(c *call) starlark.Value {
	p, err := matmul(c.array("mat1"), c.array("mat2"))
	if err == nil {
		p, err = binary(p, scalar(c.number("alpha", 1), kindFloat), mul)
	}
	var d *Array
	if err == nil {
		d, err = binary(c.array("input"), scalar(c.number("beta", 1), kindFloat), mul)
	}
	if err == nil {
		p, err = binary(p, d, add)
	}
	return c.give(p, err)
}

// attention is softmax(q @ k.mT * scale) @ v; is_causal masks what comes later.
func attention(c *call) starlark.Value {
	q, k, v := c.array("query"), c.array("key"), c.array("value")
	if c.number("dropout_p", 0) != 0 || len(q.Shape) < 2 {
		c.fail("dropout_p must be 0, and query have at least 2 dims")
		return nil
	}
	kt, err := transposeLast(k, false)
	if err != nil {
		return c.give(nil, err)
	}
	s, err := matmul(q, kt)
	if err == nil {
		s, err = binary(s, scalar(c.number("scale", powFast(float64(q.Shape[len(q.Shape)-1]), -0.5)), kindFloat), mul)
	}
	if err == nil && c.flag("is_causal", false) {
		s, err = causal(s)
	}
	if err == nil && c.has("attn_mask") {
		s, err = masked(s, c.array("attn_mask"))
	}
	if err == nil {
		s, err = alongDim(s, len(s.Shape)-1, kindFloat, softmaxRow)
	}
	if err == nil {
		s, err = matmul(s, v)
	}
	return c.give(s, err)
}
