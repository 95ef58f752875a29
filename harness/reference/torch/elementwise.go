package torch

import (
	"math"

	"go.starlark.net/starlark"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
)

var (
	add = &pointwise{func(x, y float64) float64 { return x + y }, func(dst, a, b []float64) {
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	}, widest}
	sub = &pointwise{func(x, y float64) float64 { return x - y }, func(dst, a, b []float64) {
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	}, widest}
	mul = &pointwise{func(x, y float64) float64 { return x * y }, func(dst, a, b []float64) {
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	}, widest}
	div = &pointwise{func(x, y float64) float64 { return x / y }, func(dst, a, b []float64) {
		for i := range dst {
			dst[i] = a[i] / b[i]
		}
	}, always(kindFloat)}
	floorDiv     = &pointwise{fn: func(x, y float64) float64 { return math.Floor(x / y) }, kind: widest}
	remainder    = &pointwise{fn: pythonMod, kind: widest}
	power        = &pointwise{fn: powFast, kind: widest}
	maximum      = &pointwise{fn: maxNaN, kind: same}
	minimum      = &pointwise{fn: minNaN, kind: same}
	less         = &pointwise{fn: func(x, y float64) float64 { return truth(x < y) }, kind: always(kindBool)}
	lessEqual    = &pointwise{fn: func(x, y float64) float64 { return truth(x <= y) }, kind: always(kindBool)}
	greater      = &pointwise{fn: func(x, y float64) float64 { return truth(x > y) }, kind: always(kindBool)}
	greaterEqual = &pointwise{fn: func(x, y float64) float64 { return truth(x >= y) }, kind: always(kindBool)}
	equal        = &pointwise{fn: func(x, y float64) float64 { return truth(x == y) }, kind: always(kindBool)}
	notEqual     = &pointwise{fn: func(x, y float64) float64 { return truth(x != y) }, kind: always(kindBool)}
	bitAnd       = &pointwise{fn: func(x, y float64) float64 { return float64(int64(x) & int64(y)) }, kind: same}
	bitOr        = &pointwise{fn: func(x, y float64) float64 { return float64(int64(x) | int64(y)) }, kind: same}
	bitXor       = &pointwise{fn: func(x, y float64) float64 { return float64(int64(x) ^ int64(y)) }, kind: same}
	logicalAnd   = &pointwise{fn: func(x, y float64) float64 { return truth(x != 0 && y != 0) }, kind: always(kindBool)}
	logicalOr    = &pointwise{fn: func(x, y float64) float64 { return truth(x != 0 || y != 0) }, kind: always(kindBool)}
	logicalXor   = &pointwise{fn: func(x, y float64) float64 { return truth((x != 0) != (y != 0)) }, kind: always(kindBool)}
)

// scalarFunctions are the functions of one number, in torch and in math.
var scalarFunctions = map[string]func(float64) float64{
	"exp": math.Exp, "exp2": math.Exp2, "expm1": math.Expm1, "log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p, "sqrt": math.Sqrt,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh,
	"asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh, "erf": math.Erf, "erfc": math.Erfc, "floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc, "lgamma": lgamma,
}

// tensorFunctions are those of tensors alone.
var tensorFunctions = map[string]func(float64) float64{
	"abs": math.Abs, "neg": func(x float64) float64 { return -x }, "negative": func(x float64) float64 { return -x }, "square": func(x float64) float64 { return x * x },
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }, "reciprocal": func(x float64) float64 { return 1 / x }, "round": math.RoundToEven, "frac": func(x float64) float64 { return x - math.Trunc(x) },
	"sign": sign, "relu": func(x float64) float64 { return maxNaN(x, 0) }, "sigmoid": sigmoid, "silu": func(x float64) float64 { return x * sigmoid(x) },
	"relu6": func(x float64) float64 { return minNaN(maxNaN(x, 0), 6) }, "logsigmoid": func(x float64) float64 { return -softplus(-x) },
	"mish": func(x float64) float64 { return x * math.Tanh(softplus(x)) }, "hardsigmoid": func(x float64) float64 { return minNaN(maxNaN(x/6+0.5, 0), 1) },
}

var predicates = map[string]func(float64) float64{
	"isnan": func(x float64) float64 { return truth(x != x) }, "isinf": func(x float64) float64 { return truth(math.IsInf(x, 0)) },
	"isfinite": func(x float64) float64 { return truth(x-x == 0) }, "logical_not": func(x float64) float64 { return truth(x == 0) },
}

func lgamma(x float64) float64 { v, _ := math.Lgamma(x); return v }

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func softplus(x float64) float64 { return maxNaN(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func gelu(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }

func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func elementwiseOps() []op {
	var rows []op
	one := func(name string, fn func(float64) float64, kind func(elemKind) elemKind) {
		rows = append(rows, op{name, "input", func(c *call) starlark.Value {
			a := c.array("input")
			return c.give(unary(a, fn, kind(a.kind)))
		}, true})
	}
	for name, fn := range scalarFunctions {
		one(name, fn, func(elemKind) elemKind { return kindFloat })
	}
	for name, fn := range tensorFunctions {
		one(name, fn, func(k elemKind) elemKind { return k })
	}
	for name, fn := range predicates {
		one(name, fn, func(elemKind) elemKind { return kindBool })
	}
	two := func(f *pointwise, names ...string) {
		for _, name := range names {
			rows = append(rows, op{name, "input other", func(c *call) starlark.Value { return c.give(binary(c.array("input"), c.array("other"), f)) }, true})
		}
	}
	two(mul, "mul", "multiply")
	two(div, "div", "divide", "true_divide")
	two(floorDiv, "floor_divide")
	two(remainder, "remainder")
	two(power, "pow")
	two(maximum, "maximum", "fmax")
	two(minimum, "minimum", "fmin")
	two(less, "lt", "less")
	two(lessEqual, "le", "less_equal")
	two(greater, "gt", "greater")
	two(greaterEqual, "ge", "greater_equal")
	two(equal, "eq")
	two(notEqual, "ne", "not_equal")
	two(logicalAnd, "logical_and")
	two(logicalOr, "logical_or")
	two(logicalXor, "logical_xor")
	two(&pointwise{fn: math.Mod, kind: widest}, "fmod")
	two(&pointwise{fn: math.Atan2, kind: always(kindFloat)}, "atan2", "arctan2")
	two(&pointwise{fn: math.Hypot, kind: always(kindFloat)}, "hypot")
	return append(rows,
		op{"add", "input other alpha?", scaled(add), true},
		op{"sub", "input other alpha?", scaled(sub), true},
		op{"clamp", "input min? max?", clamp, true},
		op{"clip", "input min? max?", clamp, true},
		op{"gelu", "input approximate?", geluOp, false},
		op{"leaky_relu", "input negative_slope?", leaky, false},
		op{"elu", "input alpha?", elu, false},
		op{"softplus", "input beta?", softplusOp, false},
		op{"where", "condition input other", where, false},
		op{"masked_fill", "input mask value", maskedFill, true},
		op{"lerp", "input end weight", lerp, true},
		op{"addcmul", "input tensor1 tensor2 value?", addcmul, true},
		op{"to", "input dtype?", toDType, true},
		op{"type", "input dtype", toDType, true},
		op{"float", "input", asIs, true},
		op{"double", "input", asIs, true},
		op{"half", "input", rounded(harness.Float16), true},
		op{"bfloat16", "input", rounded(harness.BFloat16), true},
		op{"int", "input", rounded(harness.Int32), true},
		op{"long", "input", rounded(harness.Int64), true},
		op{"bool", "input", rounded(harness.BoolType), true},
	)
}

func scaled(f *pointwise) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		b := c.array("other")
		if alpha := c.number("alpha", 1); alpha != 1 {
			scaledB, err := binary(b, scalar(alpha, kindFloat), mul)
			if err != nil {
				c.fail("%v", err)
				return b
			}
			b = scaledB
		}
		return c.give(binary(c.array("input"), b, f))
	}
}

func clamp(c *call) starlark.Value {
	a := c.array("input")
	var err error
	if c.has("min") {
		if a, err = binary(a, c.array("min"), maximum); err != nil {
			return c.give(a, err)
		}
	}
	if c.has("max") {
		a, err = binary(a, c.array("max"), minimum)
	}
	return c.give(a, err)
}

func geluOp(c *call) starlark.Value {
	switch how := c.text("approximate", "none"); how {
	case "none":
		return c.give(unary(c.array("input"), gelu, kindFloat))
	case "tanh":
		return c.give(unary(c.array("input"), geluTanh, kindFloat))
	default:
		c.fail("approximate: %q is not known; write none or tanh", how)
		return nil
	}
}

func leaky(c *call) starlark.Value {
	slope := c.number("negative_slope", 0.01)
	return c.give(unary(c.array("input"), func(x float64) float64 {
		if x < 0 {
			return slope * x
		}
		return x
	}, kindFloat))
}

func elu(c *call) starlark.Value {
	alpha := c.number("alpha", 1)
	return c.give(unary(c.array("input"), func(x float64) float64 {
		if x < 0 {
			return alpha * math.Expm1(x)
		}
		return x
	}, kindFloat))
}

func softplusOp(c *call) starlark.Value {
	beta := c.number("beta", 1)
	return c.give(unary(c.array("input"), func(x float64) float64 { return softplus(beta*x) / beta }, kindFloat))
}

func where(c *call) starlark.Value {
	return c.give(choose(c.array("condition"), c.array("input"), c.array("other")))
}

func maskedFill(c *call) starlark.Value {
	return c.give(choose(c.array("mask"), c.array("value"), c.array("input")))
}

// choose takes elements of a where the condition is not 0, else of b.
func choose(condition, a, b *Array) (*Array, error) {
	shape, err := broadcastShape(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	if shape, err = broadcastShape(shape, condition.Shape); err != nil {
		return nil, err
	}
	parts := []*Array{condition, a, b}
	for i, p := range parts {
		if parts[i], err = expand(p, shape); err != nil {
			return nil, err
		}
	}
	out, err := alloc(shape, same(a.kind, b.kind))
	if err != nil {
		return nil, err
	}
	parallel(len(out.Data), 2, func(low, high int) {
		for i := low; i < high; i++ {
			if parts[0].Data[i] != 0 {
				out.Data[i] = parts[1].Data[i]
			} else {
				out.Data[i] = parts[2].Data[i]
			}
		}
	})
	return out, nil
}

func lerp(c *call) starlark.Value {
	a := c.array("input")
	d, err := binary(c.array("end"), a, sub)
	if err == nil {
		d, err = binary(d, c.array("weight"), mul)
	}
	if err == nil {
		d, err = binary(a, d, add)
	}
	return c.give(d, err)
}

func addcmul(c *call) starlark.Value {
	p, err := binary(c.array("tensor1"), c.array("tensor2"), mul)
	if err == nil {
		p, err = binary(p, scalar(c.number("value", 1), kindFloat), mul)
	}
	if err == nil {
		p, err = binary(c.array("input"), p, add)
	}
	return c.give(p, err)
}

// asIs is .float() and .double(): the reference is float64 throughout, so widening changes nothing.
func asIs(c *call) starlark.Value { return c.array("input").as(kindFloat) }

// rounded keeps what a dtype would keep of every element.
func rounded(dt harness.DType) func(*call) starlark.Value {
	return func(c *call) starlark.Value { return c.give(roundTo(c.array("input"), dt)) }
}

func roundTo(a *Array, dt harness.DType) (*Array, error) {
	switch dt {
	case harness.Float64, harness.Float32:
		return a.as(kindFloat), nil
	case harness.BoolType:
		return unary(a, func(x float64) float64 { return truth(x != 0) }, kindBool)
	case harness.Float16, harness.BFloat16, harness.Float8E4M3, harness.Float8E5M2:
		return unary(a, func(x float64) float64 { return codec.Round(x, dt) }, kindFloat)
	default:
		return unary(a, func(x float64) float64 { return codec.Round(math.Trunc(x), dt) }, kindInt)
	}
}

func toDType(c *call) starlark.Value {
	a := c.array("input")
	if !c.has("dtype") {
		return a
	}
	switch d := c.values["dtype"].(type) {
	case *dtypeName:
		return c.give(roundTo(a, d.dtype))
	case starlark.String: // a device such as "cuda"
		return a
	default:
		c.fail("dtype: want torch.float16 or the like, got a %s", d.Type())
		return nil
	}
}
