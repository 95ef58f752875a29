package torch

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// The operands of the cases below.
func operands(t *testing.T) Values {
	t.Helper()
	make := func(shape []int, data ...float64) *Array {
		a, err := New(shape, data)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	return Values{
		"x": make([]int{2, 3}, 1, 2, 3, 4, 5, 6), "y": make([]int{2, 3}, 6, -5, 4, -3, 2, -1), "v": make([]int{3}, 1, 2, 4), "s": 0.5, "n": int64(3),
		"img": make([]int{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9), "k": make([]int{1, 1, 2, 2}, 1, 0, 0, -1),
	}
}

var (
	e    = math.E
	exp  = math.Exp
	sqrt = math.Sqrt
)

// cases holds one case or more for every operator, with values worked out by hand.
var cases = []struct {
	text  string
	shape []int
	want  []float64
}{
	// signs
	{"x + y", []int{2, 3}, []float64{7, -3, 7, 1, 7, 5}},
	{"x + v", []int{2, 3}, []float64{2, 4, 7, 5, 7, 10}},
	{"1 - v", []int{3}, []float64{0, -1, -3}},
	{"x * x[:, 0:1]", []int{2, 3}, []float64{1, 2, 3, 16, 20, 24}},
	{"1 / v", []int{3}, []float64{1, 0.5, 0.25}},
	{"x // 2", []int{2, 3}, []float64{0, 1, 1, 2, 2, 3}},
	{"y % 4", []int{2, 3}, []float64{2, 3, 0, 1, 2, 3}},
	{"-v ** 2", []int{3}, []float64{-1, -4, -16}},
	{"2 ** 3 ** 2 + v * 0", []int{3}, []float64{512, 512, 512}},
	{"(x - 1) ** 2", []int{2, 3}, []float64{0, 1, 4, 9, 16, 25}},
	{"[1, 2, 3] ** 2", []int{3}, []float64{1, 4, 9}},
	{"2 ** [1, 2] + 0", []int{2}, []float64{2, 4}},
	{"[] ** 2", []int{0}, nil},
	{"v[0] ** -1 + v ** s", []int{3}, []float64{2, 1 + sqrt(2), 3}},
	{"x @ v", []int{2}, []float64{17, 38}},
	{"v @ v", nil, []float64{21}},
	{"x @ y.T + 1", []int{2, 2}, []float64{6 - 10 + 12 + 1, -3 + 4 - 3 + 1, 24 - 25 + 24 + 1, -12 + 10 - 6 + 1}},
	{"2 * x @ v", []int{2}, []float64{34, 76}},
	{"x.t() @ x", []int{3, 3}, []float64{17, 22, 27, 22, 29, 36, 27, 36, 45}},
	{"x > 3", []int{2, 3}, []float64{0, 0, 0, 1, 1, 1}},
	{"(x >= y) & (x != 4)", []int{2, 3}, []float64{0, 1, 0, 0, 1, 1}},
	{"~(x < 2) | (x == 1)", []int{2, 3}, []float64{1, 1, 1, 1, 1, 1}},
	{"(x > 3) ^ (x > 5)", []int{2, 3}, []float64{0, 0, 0, 1, 1, 0}},
	{"1 if n == 3 else 0", nil, []float64{1}},
	{"v if n <= 2 else v + 1", []int{3}, []float64{2, 3, 5}},
	// subscripts
	{"x[1]", []int{3}, []float64{4, 5, 6}},
	{"x[-1, -1]", nil, []float64{6}},
	{"x[:, 1]", []int{2}, []float64{2, 5}},
	{"x[0:1, ::2]", []int{1, 2}, []float64{1, 3}},
	{"x[:, -2:]", []int{2, 2}, []float64{2, 3, 5, 6}},
	{"x[..., 0]", []int{2}, []float64{1, 4}},
	{"v[None, :] * v[:, None]", []int{3, 3}, []float64{1, 2, 4, 2, 4, 8, 4, 8, 16}},
	{"v[1:]", []int{2}, []float64{2, 4}},
	{"v[::-1]", []int{3}, []float64{4, 2, 1}},
	{"x[x > 4]", []int{2}, []float64{5, 6}},
	{"v[torch.tensor([2, 0])]", []int{2}, []float64{4, 1}},
	// one operand
	{"torch.exp(v)", []int{3}, []float64{e, e * e, exp(4)}},
	{"torch.exp2(v)", []int{3}, []float64{2, 4, 16}},
	{"torch.expm1(v * 0)", []int{3}, []float64{0, 0, 0}},
	{"torch.log(v)", []int{3}, []float64{0, math.Ln2, 2 * math.Ln2}},
	{"torch.log2(v)", []int{3}, []float64{0, 1, 2}},
	{"torch.log10(v * 0 + 100)", []int{3}, []float64{2, 2, 2}},
	{"torch.log1p(v - 1)", []int{3}, []float64{0, math.Ln2, 2 * math.Ln2}},
	{"torch.sqrt(v)", []int{3}, []float64{1, sqrt(2), 2}},
	{"torch.rsqrt(v)", []int{3}, []float64{1, 1 / sqrt(2), 0.5}},
	{"torch.reciprocal(v)", []int{3}, []float64{1, 0.5, 0.25}},
	{"torch.sin(v * torch.pi / 2)", []int{3}, []float64{1, 0, 0}},
	{"torch.cos(v * math.pi)", []int{3}, []float64{-1, 1, 1}},
	{"torch.tan(v * 0)", []int{3}, []float64{0, 0, 0}},
	{"torch.asin(v / 4)", []int{3}, []float64{math.Asin(0.25), math.Pi / 6, math.Pi / 2}},
	{"torch.acos(v / 4)", []int{3}, []float64{math.Acos(0.25), math.Pi / 3, 0}},
	{"torch.atan(v - v + 1)", []int{3}, []float64{math.Pi / 4, math.Pi / 4, math.Pi / 4}},
	{"torch.sinh(v) + torch.cosh(v)", []int{3}, []float64{e, e * e, exp(4)}},
	{"torch.tanh(v)", []int{3}, []float64{(e*e - 1) / (e*e + 1), (exp(4) - 1) / (exp(4) + 1), (exp(8) - 1) / (exp(8) + 1)}},
	{"torch.asinh(torch.sinh(v))", []int{3}, []float64{1, 2, 4}},
	{"torch.acosh(torch.cosh(v))", []int{3}, []float64{1, 2, 4}},
	{"torch.atanh(v / 8)", []int{3}, []float64{math.Log(9.0/7) / 2, math.Log(10.0/6) / 2, math.Log(3) / 2}},
	{"torch.erf(v - 1)", []int{3}, []float64{0, 0.8427007929497149, 0.9999779095030014}},
	{"torch.erfc(v - 1)", []int{3}, []float64{1, 0.15729920705028513, 2.209049699858544e-05}},
	{"torch.lgamma(v)", []int{3}, []float64{0, 0, math.Log(6)}},
	{"torch.floor(y / 4)", []int{2, 3}, []float64{1, -2, 1, -1, 0, -1}},
	{"torch.ceil(y / 4)", []int{2, 3}, []float64{2, -1, 1, 0, 1, 0}},
	{"torch.trunc(y / 4)", []int{2, 3}, []float64{1, -1, 1, 0, 0, 0}},
	{"torch.round(v / 2)", []int{3}, []float64{0, 1, 2}},
	{"torch.frac(v / 4)", []int{3}, []float64{0.25, 0.5, 0}},
	{"torch.abs(y)", []int{2, 3}, []float64{6, 5, 4, 3, 2, 1}},
	{"abs(y[0, 1])", nil, []float64{5}},
	{"torch.neg(v)", []int{3}, []float64{-1, -2, -4}},
	{"v.negative()", []int{3}, []float64{-1, -2, -4}},
	{"torch.square(v)", []int{3}, []float64{1, 4, 16}},
	{"torch.sign(y)", []int{2, 3}, []float64{1, -1, 1, -1, 1, -1}},
	{"F.relu(y)", []int{2, 3}, []float64{6, 0, 4, 0, 2, 0}},
	{"F.relu6(y * 2)", []int{2, 3}, []float64{6, 0, 6, 0, 4, 0}},
	{"torch.sigmoid(v * 0)", []int{3}, []float64{0.5, 0.5, 0.5}},
	{"F.silu(v)", []int{3}, []float64{1 / (1 + exp(-1)), 2 / (1 + exp(-2)), 4 / (1 + exp(-4))}},
	{"F.logsigmoid(v)", []int{3}, []float64{-math.Log(1 + exp(-1)), -math.Log(1 + exp(-2)), -math.Log(1 + exp(-4))}},
	{"F.mish(v * 0)", []int{3}, []float64{0, 0, 0}},
	{"F.hardsigmoid(y)", []int{2, 3}, []float64{1, 0, 1, 0, 2.0/6 + 0.5, 0.5 - 1.0/6}},
	{"F.gelu(v)", []int{3}, []float64{0.8413447460685429, 1.9544997361036416, 3.9998733150326883}},
	{"torch.nn.functional.gelu(v, approximate='tanh')", []int{3}, []float64{tanhGelu(1), tanhGelu(2), tanhGelu(4)}},
	{"F.leaky_relu(y, 0.1)", []int{2, 3}, []float64{6, -0.5, 4, -0.3, 2, -0.1}},
	{"F.elu(y)", []int{2, 3}, []float64{6, exp(-5) - 1, 4, exp(-3) - 1, 2, exp(-1) - 1}},
	{"F.softplus(v * 0)", []int{3}, []float64{math.Ln2, math.Ln2, math.Ln2}},
	{"torch.isnan(v / 0 - v / 0)", []int{3}, []float64{1, 1, 1}},
	{"torch.isinf(v / 0)", []int{3}, []float64{1, 1, 1}},
	{"torch.isfinite(v)", []int{3}, []float64{1, 1, 1}},
	{"torch.logical_not(v - 1)", []int{3}, []float64{1, 0, 0}},
	// two operands
	{"torch.add(v, v, alpha=2)", []int{3}, []float64{3, 6, 12}},
	{"torch.sub(v, 1)", []int{3}, []float64{0, 1, 3}},
	{"v.mul(v)", []int{3}, []float64{1, 4, 16}},
	{"v.multiply(2)", []int{3}, []float64{2, 4, 8}},
	{"torch.div(v, 2)", []int{3}, []float64{0.5, 1, 2}},
	{"torch.divide(v, 2) + v.true_divide(2)", []int{3}, []float64{1, 2, 4}},
	{"torch.floor_divide(y, 4)", []int{2, 3}, []float64{1, -2, 1, -1, 0, -1}},
	{"torch.remainder(y, 4)", []int{2, 3}, []float64{2, 3, 0, 1, 2, 3}},
	{"torch.fmod(y, 4)", []int{2, 3}, []float64{2, -1, 0, -3, 2, -1}},
	{"torch.pow(v, 3)", []int{3}, []float64{1, 8, 64}},
	{"torch.maximum(x, y)", []int{2, 3}, []float64{6, 2, 4, 4, 5, 6}},
	{"torch.minimum(x, y)", []int{2, 3}, []float64{1, -5, 3, -3, 2, -1}},
	{"torch.fmax(x, y) - torch.fmin(x, y)", []int{2, 3}, []float64{5, 7, 1, 7, 3, 7}},
	{"torch.max(x, y)", []int{2, 3}, []float64{6, 2, 4, 4, 5, 6}},
	{"torch.atan2(v * 0, v)", []int{3}, []float64{0, 0, 0}},
	{"torch.arctan2(v, v)", []int{3}, []float64{math.Pi / 4, math.Pi / 4, math.Pi / 4}},
	{"torch.hypot(v * 3, v * 4)", []int{3}, []float64{5, 10, 20}},
	{"torch.lt(v, 2) + torch.less(v, 2)", []int{3}, []float64{2, 0, 0}},
	{"torch.le(v, 2) + torch.less_equal(v, 2)", []int{3}, []float64{2, 2, 0}},
	{"torch.gt(v, 2) + torch.greater(v, 2)", []int{3}, []float64{0, 0, 2}},
	{"torch.ge(v, 2) + torch.greater_equal(v, 2)", []int{3}, []float64{0, 2, 2}},
	{"torch.eq(v, 2) + 2 * torch.ne(v, 2) + 2 * torch.not_equal(v, 2)", []int{3}, []float64{4, 1, 4}},
	{"torch.logical_and(x > 1, x < 4)", []int{2, 3}, []float64{0, 1, 1, 0, 0, 0}},
	{"torch.logical_or(x < 2, x > 5)", []int{2, 3}, []float64{1, 0, 0, 0, 0, 1}},
	{"torch.logical_xor(x > 1, x > 4)", []int{2, 3}, []float64{0, 1, 1, 1, 0, 0}},
	{"torch.clamp(y, -2, 3)", []int{2, 3}, []float64{3, -2, 3, -2, 2, -1}},
	{"y.clamp(min=0)", []int{2, 3}, []float64{6, 0, 4, 0, 2, 0}},
	{"y.clip(max=0)", []int{2, 3}, []float64{0, -5, 0, -3, 0, -1}},
	{"torch.where(x > y, x, y)", []int{2, 3}, []float64{6, 2, 4, 4, 5, 6}},
	{"torch.where(v > 1, v, 0)", []int{3}, []float64{0, 2, 4}},
	{"y.masked_fill(y < 0, 0)", []int{2, 3}, []float64{6, 0, 4, 0, 2, 0}},
	{"torch.lerp(v, v * 3, 0.5)", []int{3}, []float64{2, 4, 8}},
	{"torch.addcmul(v, v, v, value=2)", []int{3}, []float64{3, 10, 36}},
	// dtypes
	{"(v / 3).half()", []int{3}, []float64{0.333251953125, 0.66650390625, 1.3330078125}},
	{"(v / 3).to(torch.bfloat16)", []int{3}, []float64{0.333984375, 0.66796875, 1.3359375}},
	{"(v / 3).bfloat16().float() - (v / 3).bfloat16().double()", []int{3}, []float64{0, 0, 0}},
	{"(y / 4).int()", []int{2, 3}, []float64{1, -1, 1, 0, 0, 0}},
	{"(y / 4).long() + (y / 4).type(torch.int64)", []int{2, 3}, []float64{2, -2, 2, 0, 0, 0}},
	{"v.bool()", []int{3}, []float64{1, 1, 1}},
	// reductions
	{"x.sum()", nil, []float64{21}},
	{"x.sum(-1)", []int{2}, []float64{6, 15}},
	{"torch.sum(x, dim=0, keepdim=True)", []int{1, 3}, []float64{5, 7, 9}},
	{"x.sum((0, 1))", nil, []float64{21}},
	{"x.sum(axis=1, keepdims=True)", []int{2, 1}, []float64{6, 15}},
	{"(x > 2).sum()", nil, []float64{4}},
	{"v.prod()", nil, []float64{8}},
	{"torch.mean(x, 1)", []int{2}, []float64{2, 5}},
	{"x.amax(0)", []int{3}, []float64{4, 5, 6}},
	{"y.amin(-1)", []int{2}, []float64{-5, -3}},
	{"x.max()", nil, []float64{6}},
	{"max(x)", nil, []float64{6}},
	{"min(n, 2) + max(1, 2)", nil, []float64{4}},
	{"x.max(dim=1)[0]", []int{2}, []float64{3, 6}},
	{"torch.max(y, -1).indices", []int{2}, []float64{0, 1}},
	{"y.min(0).values", []int{3}, []float64{-3, -5, -1}},
	{"y.argmax()", nil, []float64{0}},
	{"y.argmax(1)", []int{2}, []float64{0, 1}},
	{"y.argmin(dim=1, keepdim=True)", []int{2, 1}, []float64{1, 0}},
	{"(x > 5).any(1)", []int{2}, []float64{0, 1}},
	{"(x > 0).all()", nil, []float64{1}},
	{"torch.count_nonzero(x - 1)", nil, []float64{5}},
	{"torch.logsumexp(v * 0, 0)", nil, []float64{math.Log(3)}},
	{"x.var(1)", []int{2}, []float64{1, 1}},
	{"torch.var(x, dim=1, correction=0)", []int{2}, []float64{2.0 / 3, 2.0 / 3}},
	{"x.var(-1, unbiased=False)", []int{2}, []float64{2.0 / 3, 2.0 / 3}},
	{"x.std(1)", []int{2}, []float64{1, 1}},
	{"(v * 0 + 2).norm()", nil, []float64{sqrt(12)}},
	{"torch.linalg.vector_norm(v - 4, 1)", nil, []float64{5}},
	{"torch.softmax(v * 0, dim=-1)", []int{3}, []float64{1.0 / 3, 1.0 / 3, 1.0 / 3}},
	{"torch.softmax(torch.log(x), 0)", []int{2, 3}, []float64{0.2, 2.0 / 7, 3.0 / 9, 0.8, 5.0 / 7, 6.0 / 9}},
	{"torch.softmax(v * 1000, 0)", []int{3}, []float64{0, 0, 1}},
	{"torch.log_softmax(v * 0, 0)", []int{3}, []float64{-math.Log(3), -math.Log(3), -math.Log(3)}},
	{"F.softmin(-torch.log(v), 0)", []int{3}, []float64{1.0 / 7, 2.0 / 7, 4.0 / 7}},
	{"x.cumsum(1)", []int{2, 3}, []float64{1, 3, 6, 4, 9, 15}},
	{"torch.cumprod(x, 0)", []int{2, 3}, []float64{1, 2, 3, 4, 10, 18}},
	{"F.normalize(torch.tensor([[3.0, 4.0]]))", []int{1, 2}, []float64{0.6, 0.8}},
	{"F.layer_norm(x, [3], eps=0)", []int{2, 3}, []float64{-sqrt(1.5), 0, sqrt(1.5), -sqrt(1.5), 0, sqrt(1.5)}},
	{"F.layer_norm(x, (3,), v, v, 0)", []int{2, 3}, []float64{1 - sqrt(1.5), 2, 4 + 4*sqrt(1.5), 1 - sqrt(1.5), 2, 4 + 4*sqrt(1.5)}},
	{"F.rms_norm(torch.tensor([3.0, 4.0]), [2], eps=0)", []int{2}, []float64{3 / sqrt(12.5), 4 / sqrt(12.5)}},
	{"y.sort(-1).values", []int{2, 3}, []float64{-5, 4, 6, -3, -1, 2}},
	{"y.sort(-1, descending=True).indices", []int{2, 3}, []float64{0, 2, 1, 1, 2, 0}},
	{"torch.argsort(y)", []int{2, 3}, []float64{1, 2, 0, 0, 2, 1}},
	// shapes
	{"torch.transpose(x, 0, 1)", []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
	{"x.swapaxes(0, -1)", []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
	{"x.mT", []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
	{"img.permute(3, 0, 1, 2)[0, 0, 0]", []int{3}, []float64{1, 4, 7}},
	{"x.reshape(3, -1)", []int{3, 2}, []float64{1, 2, 3, 4, 5, 6}},
	{"x.view([6])", []int{6}, []float64{1, 2, 3, 4, 5, 6}},
	{"img.flatten(1)", []int{1, 9}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"img.squeeze()", []int{3, 3}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"img.squeeze(0)[0, 0]", []int{3}, []float64{1, 2, 3}},
	{"v.unsqueeze(-1)", []int{3, 1}, []float64{1, 2, 4}},
	{"v.expand(2, -1)", []int{2, 3}, []float64{1, 2, 4, 1, 2, 4}},
	{"torch.broadcast_to(v, (2, 3))", []int{2, 3}, []float64{1, 2, 4, 1, 2, 4}},
	{"v.expand_as(x)", []int{2, 3}, []float64{1, 2, 4, 1, 2, 4}},
	{"v.repeat(2)", []int{6}, []float64{1, 2, 4, 1, 2, 4}},
	{"torch.cat([x, y], dim=1)", []int{2, 6}, []float64{1, 2, 3, 6, -5, 4, 4, 5, 6, -3, 2, -1}},
	{"torch.concat((v, v))", []int{6}, []float64{1, 2, 4, 1, 2, 4}},
	{"torch.stack([v, v * 2], dim=1)", []int{3, 2}, []float64{1, 2, 2, 4, 4, 8}},
	{"torch.flip(x, (0, 1))", []int{2, 3}, []float64{6, 5, 4, 3, 2, 1}},
	{"torch.roll(v, 1, 0)", []int{3}, []float64{4, 1, 2}},
	{"torch.tril(img[0, 0])", []int{3, 3}, []float64{1, 0, 0, 4, 5, 0, 7, 8, 9}},
	{"torch.triu(img[0, 0], 1)", []int{3, 3}, []float64{0, 2, 3, 0, 0, 6, 0, 0, 0}},
	{"img[0, 0].diagonal()", []int{3}, []float64{1, 5, 9}},
	{"x.gather(1, torch.tensor([[2], [0]]))", []int{2, 1}, []float64{3, 4}},
	{"torch.take_along_dim(x, torch.tensor([[2], [0]]), 1)", []int{2, 1}, []float64{3, 4}},
	{"torch.index_select(x, 1, torch.tensor([2, 0]))", []int{2, 2}, []float64{3, 1, 6, 4}},
	{"x.chunk(2, 1)[1]", []int{2, 1}, []float64{3, 6}},
	{"torch.split(v, 2)[0]", []int{2}, []float64{1, 2}},
	{"F.pad(v, (1, 2), value=9)", []int{6}, []float64{9, 1, 2, 4, 9, 9}},
	{"F.pad(x, (0, 1, 1, 0))", []int{3, 4}, []float64{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}},
	{"x.contiguous().clone().detach()[0]", []int{3}, []float64{1, 2, 3}},
	{"v[2].item() + x.numel() + x.dim() + x.size(1) + x.size()[0] + x.shape[1] + x.ndim", nil, []float64{4 + 6 + 2 + 3 + 2 + 3 + 2}},
	// made from nothing
	{"torch.zeros(2) + torch.ones(2)", []int{2}, []float64{1, 1}},
	{"torch.full((2,), 7)", []int{2}, []float64{7, 7}},
	{"torch.zeros_like(v) + torch.ones_like(v) + torch.full_like(v, 2)", []int{3}, []float64{3, 3, 3}},
	{"torch.arange(3)", []int{3}, []float64{0, 1, 2}},
	{"torch.arange(1, 4, 2)", []int{2}, []float64{1, 3}},
	{"torch.linspace(0, 1, 3)", []int{3}, []float64{0, 0.5, 1}},
	{"torch.eye(2)", []int{2, 2}, []float64{1, 0, 0, 1}},
	{"torch.tensor([[1, 2], [3, 4]])", []int{2, 2}, []float64{1, 2, 3, 4}},
	// linear
	{"torch.matmul(x, v)", []int{2}, []float64{17, 38}},
	{"torch.mm(x, x.t())", []int{2, 2}, []float64{14, 32, 32, 77}},
	{"torch.bmm(img[0], img[0])[0, 0]", []int{3}, []float64{30, 36, 42}},
	{"x.mv(v) + x @ v", []int{2}, []float64{34, 76}},
	{"v.dot(v) + torch.inner(v, v)", nil, []float64{42}},
	{"torch.outer(v, v)", []int{3, 3}, []float64{1, 2, 4, 2, 4, 8, 4, 8, 16}},
	{"F.linear(v, x, torch.tensor([1, 2]))", []int{2}, []float64{18, 40}},
	{"torch.addmm(torch.eye(2), x, x.t(), beta=2, alpha=1)", []int{2, 2}, []float64{16, 32, 32, 79}},
	{"torch.conv2d(img, k)", []int{1, 1, 2, 2}, []float64{-4, -4, -4, -4}},
	{"torch.conv2d(img, k, padding=1)", []int{1, 1, 4, 4}, []float64{-1, -2, -3, 0, -4, -4, -4, 3, -7, -4, -4, 6, 0, 7, 8, 9}},
	{"F.conv2d(img, k, torch.tensor([1]), stride=2, padding=1)", []int{1, 1, 2, 2}, []float64{0, -2, -6, -3}},
	{"F.conv2d(img, k, dilation=2)", []int{1, 1, 1, 1}, []float64{-8}},
	{"F.conv2d(img, torch.ones(1, 1, 3, 3), padding='same')[0, 0, 0]", []int{3}, []float64{12, 21, 16}},
	{"F.conv2d(torch.cat([img, img], 1), torch.cat([k, k], 0), groups=2)[0, 1]", []int{2, 2}, []float64{-4, -4, -4, -4}},
	{"F.max_pool2d(img, 2, stride=1)", []int{1, 1, 2, 2}, []float64{5, 6, 8, 9}},
	{"F.avg_pool2d(img, 3)", []int{1, 1, 1, 1}, []float64{5}},
	{"F.scaled_dot_product_attention(torch.zeros(2, 3), x, y)", []int{2, 3}, []float64{1.5, -1.5, 1.5, 1.5, -1.5, 1.5}},
	{"F.scaled_dot_product_attention(torch.zeros(2, 3), x, y, is_causal=True)[0]", []int{3}, []float64{6, -5, 4}},
	// programs
	{"def reference(x, v):\n    y = x.sum(-1)\n    return y * v[0]", []int{2}, []float64{6, 15}},
	{"import torch\nimport torch.nn.functional as F\n\ndef helper(a):\n    return a + 1\n\ndef reference(v, s):\n    # a comment with [:, brackets\n    return F.relu(helper(v)) * s", []int{3}, []float64{1, 1.5, 2.5}},
	{"def f(x):\n    rows = []\n    for i in range(x.shape[0]):\n        rows.append(x[i] * i)\n    return torch.stack(rows)", []int{2, 3}, []float64{0, 0, 0, 4, 5, 6}},
	{"sum([row for row in x])", []int{3}, []float64{5, 7, 9}},
	{"a = x * 2\nout = a[:, 0]", []int{2}, []float64{2, 8}},
	{"def f(x):\n    m, at = x.max(1)\n    return m + at", []int{2}, []float64{5, 8}},
	{"math.sqrt(4) + v", []int{3}, []float64{3, 4, 6}},
}

// tanhGelu is the formula of torch's documentation, its tanh written by exponentials.
func tanhGelu(x float64) float64 {
	u := sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	return x * (1 - 1/(exp(2*u)+1))
}

func run(t *testing.T, text string) ([]*Array, error) {
	t.Helper()
	p, err := Parse(text, []string{"x", "y", "v", "s", "n", "img", "k"})
	if err != nil {
		return nil, err
	}
	return p.Run(context.Background(), operands(t), []string{"out"})
}

func TestOperators(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(out[0].Shape, c.shape) {
				t.Fatalf("shape %v, want %v", out[0].Shape, c.shape)
			}
			for i, w := range c.want {
				if d := math.Abs(out[0].Data[i] - w); !(d <= 1e-14+1e-13*math.Abs(w)) {
					t.Errorf("element %d is %.17g, want %.17g", i, out[0].Data[i], w)
				}
			}
		})
	}
}

// Every row of the table stands in some case.
func TestEveryOperatorHasACase(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, c := range cases {
		all.WriteString(c.text + "\n")
	}
	for _, o := range table {
		if !strings.Contains(all.String(), "."+o.name+"(") {
			t.Errorf("operator %s has no case", o.name)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want   string
		line, column int
	}{
		{"torch.sofmax(x, -1)", `did you mean "softmax"`, 1, 7},
		{"x.summ(-1)", `did you mean "sum"`, 1, 3},
		{"x + z", "undefined: z", 1, 5},
		{"x[:, 0] + z", "undefined: z", 1, 11},
		{"def f(x, w):\n    return x", `parameter "w" names no input`, 1, 10},
		{"def f(x):\n    return x.sum(dim=7)", "dim 7 is out of range", 2, 17},
		{"x @ y", "cannot be multiplied", 1, 3},
		{"x + img[0, 0]", "do not fit together", 1, 3},
		{"torch.softmax(x, dims=1)", `did you mean "dim"`, 1, 14},
		{"x +", "ends too early", 1, 3},
		{"torch.sum(x", "is not closed", 1, 10},
		{"x ** ", "** has no right side", 1, 3},
		{"x[5]", "out of range", 1, 2},
		{"torch.zeros(1 << 20, 1 << 20)", "over the limit", 1, 12},
		{"def f(x):\n    while True:\n        x = x\n    return x", "too many steps", 0, 0},
		{"(x, y)", "gives 2 values", 0, 0},
		{"def f(x):\n    l = []\n    l.append(l)\n    return x + torch.tensor(l)", "nested more than", 0, 0},
		{"'text'", "want a tensor", 0, 0},
		{"torch.nn.functional.rellu(x)", `did you mean "relu"`, 1, 21},
	} {
		_, err := run(t, c.text)
		var te *Error
		if !errors.As(err, &te) || !strings.Contains(te.Reason, c.want) || c.line > 0 && (te.Line != c.line || te.Column != c.column) {
			t.Errorf("%q: %v; want %q at %d:%d", c.text, err, c.want, c.line, c.column)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, err := Parse("def f(x):\n    while True:\n        x = x\n    return x", []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(ctx, operands(t), []string{"out"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range cases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || strings.Contains(text, "while") || strings.Count(text, "for") > 1 || strings.Contains(text, "repeat") {
			return
		}
		p, err := Parse(text, []string{"x", "y", "v", "s", "n", "img", "k"})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, _ = p.Run(ctx, operands(t), []string{"out"}) // any error will do; a panic will not
	})
}

func BenchmarkSoftmax4096(b *testing.B) {
	a := &Array{Shape: []int{4096, 4096}, Data: make([]float64, 4096*4096)}
	for i := range a.Data {
		a.Data[i] = float64(i%1000) / 100
	}
	p, err := Parse("torch.softmax(x, dim=-1)", []string{"x"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Run(context.Background(), Values{"x": a}, []string{"out"}); err != nil {
			b.Fatal(err)
		}
	}
}
