package torch

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"
)

// folder turns a run of elements into one.
type folder struct {
	fn   func(row []float64) float64
	kind func(elemKind) elemKind
	// combine folds the results of pieces of a row; nil when a row must be folded whole.
	combine func(parts []float64) float64
	empty   bool // an empty row has a value
}

func toFloat(elemKind) elemKind { return kindFloat }
func toBool(elemKind) elemKind  { return kindBool }
func toIndex(elemKind) elemKind { return kindInt }
func keep(k elemKind) elemKind  { return k }
func summed(k elemKind) elemKind {
	if k == kindBool {
		return kindInt
	}
	return k
}

var (
	foldSum  = folder{fn: sumRow, kind: summed, combine: sumRow, empty: true}
	foldProd = folder{fn: prodRow, kind: summed, combine: prodRow, empty: true}
	foldMax  = folder{fn: maxRow, kind: keep, combine: maxRow}
	foldMin  = folder{fn: minRow, kind: keep, combine: minRow}
	foldMean = folder{fn: func(r []float64) float64 { return sumRow(r) / float64(len(r)) }, kind: toFloat, empty: true}
	foldArgm = folder{fn: argmaxRow, kind: toIndex}
	foldArgn = folder{fn: argminRow, kind: toIndex}
	foldAny  = folder{fn: func(r []float64) float64 {
		return truth(slices.ContainsFunc(r, func(x float64) bool { return x != 0 }))
	}, kind: toBool, empty: true}
	foldAll  = folder{fn: func(r []float64) float64 { return truth(!slices.Contains(r, 0)) }, kind: toBool, empty: true}
	foldLSE  = folder{fn: logSumExp, kind: toFloat}
	foldNon0 = folder{fn: func(r []float64) float64 {
		n := 0.0
		for _, x := range r {
			n += truth(x != 0)
		}
		return n
	}, kind: toIndex, combine: sumRow, empty: true}
)

// sumRow adds in eight lanes, whose rounding errors grow with an eighth of the length.
func sumRow(r []float64) float64 {
	var s [8]float64
	i := 0
	for ; i+8 <= len(r); i += 8 {
		v := r[i : i+8 : i+8]
		s[0] += v[0]
		s[1] += v[1]
		s[2] += v[2]
		s[3] += v[3]
		s[4] += v[4]
		s[5] += v[5]
		s[6] += v[6]
		s[7] += v[7]
	}
	t := ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
	for _, x := range r[i:] {
		t += x
	}
	return t
}

func prodRow(r []float64) float64 {
	p := 1.0
	for _, x := range r {
		p *= x
	}
	return p
}

func maxRow(r []float64) float64 {
	m := r[0]
	for _, x := range r[1:] {
		m = maxNaN(x, m)
	}
	return m
}

func minRow(r []float64) float64 {
	m := r[0]
	for _, x := range r[1:] {
		m = minNaN(x, m)
	}
	return m
}

func argmaxRow(r []float64) float64 {
	at := 0
	for i, x := range r {
		if x > r[at] || x != x && r[at] == r[at] {
			at = i
		}
	}
	return float64(at)
}

func argminRow(r []float64) float64 {
	at := 0
	for i, x := range r {
		if x < r[at] || x != x && r[at] == r[at] {
			at = i
		}
	}
	return float64(at)
}

func logSumExp(r []float64) float64 {
	m := maxRow(r)
	if math.IsInf(m, 0) {
		return m
	}
	s := 0.0
	for _, x := range r {
		s += math.Exp(x - m)
	}
	return m + math.Log(s)
}

// moment is the variance of a row with n - correction below the line, or its root.
func moment(correction float64, root bool) folder {
	return folder{fn: func(r []float64) float64 {
		mean := sumRow(r) / float64(len(r))
		s := 0.0
		for _, x := range r {
			s += (x - mean) * (x - mean)
		}
		s /= math.Max(0, float64(len(r))-correction)
		if root {
			return math.Sqrt(s)
		}
		return s
	}, kind: toFloat, empty: true}
}

func pNorm(p float64) folder {
	return folder{fn: func(r []float64) float64 {
		s := 0.0
		for _, x := range r {
			switch {
			case math.IsInf(p, 1):
				s = maxNaN(math.Abs(x), s)
			case p == 2:
				s += x * x
			default:
				s += math.Pow(math.Abs(x), p)
			}
		}
		switch {
		case math.IsInf(p, 1):
			return s
		case p == 2:
			return math.Sqrt(s)
		}
		return math.Pow(s, 1/p)
	}, kind: toFloat, empty: true}
}

// reduce folds the given dims of a; none means all of them.
func reduce(a *Array, dims []int, keepDims bool, f folder) (*Array, error) {
	if len(dims) == 0 {
		for d := range a.Shape {
			dims = append(dims, d)
		}
	}
	moved, shape, length, err := toRows(a, dims, keepDims)
	if err != nil {
		return nil, err
	}
	if length == 0 && !f.empty {
		return nil, fmt.Errorf("nothing to reduce in a tensor of shape %v", a.Shape)
	}
	out, err := alloc(shape, f.kind(a.kind))
	if err != nil {
		return nil, err
	}
	if len(out.Data) == 1 && f.combine != nil && length > 4*grain {
		out.Data[0] = foldPieces(moved.Data, f)
		return out, nil
	}
	parallel(len(out.Data), length, func(low, high int) {
		for i := low; i < high; i++ {
			out.Data[i] = f.fn(moved.Data[i*length : (i+1)*length])
		}
	})
	return out, nil
}

func foldPieces(data []float64, f folder) float64 {
	n := (len(data) + grain - 1) / grain
	parts := make([]float64, n)
	parallel(n, grain, func(low, high int) {
		for i := low; i < high; i++ {
			parts[i] = f.fn(data[i*grain : min((i+1)*grain, len(data))])
		}
	})
	return f.combine(parts)
}

// toRows moves the dims to the end, so that what is to be folded is a run of length elements.
func toRows(a *Array, dims []int, keepDims bool) (moved *Array, shape []int, length int, err error) {
	var order, last []int
	length = 1
	for d, n := range a.Shape {
		if slices.Contains(dims, d) {
			last = append(last, d)
			length *= n
			if keepDims {
				shape = append(shape, 1)
			}
			continue
		}
		order = append(order, d)
		shape = append(shape, n)
	}
	moved, err = permute(a, append(order, last...))
	return moved, shape, length, err
}

func reductionOps() []op {
	var rows []op
	fold := func(f folder, names ...string) {
		for _, name := range names {
			rows = append(rows, op{name, "input dim? keepdim? dtype?", func(c *call) starlark.Value {
				a := c.array("input")
				return c.give(reduce(a, c.axes("dim", a), c.flag("keepdim", false), f))
			}, true})
		}
	}
	fold(foldSum, "sum")
	fold(foldProd, "prod")
	fold(foldMean, "mean")
	fold(foldMax, "amax")
	fold(foldMin, "amin")
	fold(foldArgm, "argmax")
	fold(foldArgn, "argmin")
	fold(foldAny, "any")
	fold(foldAll, "all")
	fold(foldNon0, "count_nonzero")
	fold(foldLSE, "logsumexp")
	return append(rows,
		op{"max", "input dim? keepdim?", extreme(foldMax, foldArgm, maximum), true},
		op{"min", "input dim? keepdim?", extreme(foldMin, foldArgn, minimum), true},
		op{"var", "input dim? correction? keepdim? unbiased?", spreadOp(false), true},
		op{"std", "input dim? correction? keepdim? unbiased?", spreadOp(true), true},
		op{"norm", "input p? dim? keepdim?", norm, true},
		op{"vector_norm", "input p? dim? keepdim?", norm, false},
		op{"softmax", "input dim? dtype?", rowwise(softmaxRow), true},
		op{"log_softmax", "input dim? dtype?", rowwise(logSoftmaxRow), true},
		op{"softmin", "input dim? dtype?", rowwise(softminRow), false},
		op{"cumsum", "input dim", rowwise(cumsumRow), true},
		op{"cumprod", "input dim", rowwise(cumprodRow), true},
		op{"normalize", "input p? dim? eps?", normalize, false},
		op{"layer_norm", "input normalized_shape weight? bias? eps?", layerNorm, false},
		op{"rms_norm", "input normalized_shape weight? eps?", rmsNorm, false},
		op{"sort", "input dim? descending?", sortOp, true},
		op{"argsort", "input dim? descending?", argsortOp, true},
	)
}

// extreme is max and min: of two tensors elementwise, of one with a dim the values and their indices, else one number.
func extreme(f, arg folder, two *pointwise) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		a := c.array("input")
		if b, ok := c.values["dim"].(*Array); ok {
			return c.give(binary(a, b, two))
		}
		if !c.has("dim") {
			return c.give(reduce(a, nil, false, f))
		}
		dims, keepDims := []int{c.axis("dim", a, 0)}, c.flag("keepdim", false)
		values, err := reduce(a, dims, keepDims, f)
		if err != nil {
			return c.give(nil, err)
		}
		indices, err := reduce(a, dims, keepDims, arg)
		if err != nil {
			return c.give(nil, err)
		}
		return &pair{values, indices}
	}
}

func spreadOp(root bool) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		a := c.array("input")
		correction := 1.0
		if v, ok := c.values["correction"].(starlark.Bool); ok { // x.var(-1, False) is unbiased=False
			c.values["unbiased"], c.values["correction"] = v, starlark.None
		}
		if c.has("unbiased") && !c.flag("unbiased", true) {
			correction = 0
		}
		correction = c.number("correction", correction)
		return c.give(reduce(a, c.axes("dim", a), c.flag("keepdim", false), moment(correction, root)))
	}
}

func norm(c *call) starlark.Value {
	a := c.array("input")
	return c.give(reduce(a, c.axes("dim", a), c.flag("keepdim", false), pNorm(c.number("p", 2))))
}
