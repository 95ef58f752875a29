package torch

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

func creationOps() []op {
	return []op{
		{"zeros", "size* dtype?", filled(0), false},
		{"ones", "size* dtype?", filled(1), false},
		{"full", "size fill_value dtype?", func(c *call) starlark.Value { return c.filled(c.integers("size"), c.number("fill_value", 0)) }, false},
		{"zeros_like", "input dtype?", func(c *call) starlark.Value { return c.filled(c.array("input").Shape, 0) }, false},
		{"ones_like", "input dtype?", func(c *call) starlark.Value { return c.filled(c.array("input").Shape, 1) }, false},
		{"full_like", "input fill_value dtype?", func(c *call) starlark.Value { return c.filled(c.array("input").Shape, c.number("fill_value", 0)) }, false},
		{"arange", "start end? step? dtype?", arange, false},
		{"linspace", "start end steps dtype?", linspace, false},
		{"eye", "n m? dtype?", eye, false},
		{"tensor", "data dtype?", func(c *call) starlark.Value { return c.array("data") }, false},
	}
}

func (c *call) filled(shape []int, v float64) starlark.Value {
	out, err := alloc(shape, kindFloat)
	if err == nil && v != 0 {
		parallel(len(out.Data), 1, func(low, high int) { spread(out.Data[low:high], v) })
	}
	return c.give(out, err)
}

func filled(v float64) func(*call) starlark.Value {
	return func(c *call) starlark.Value { return c.filled(c.integers("size"), v) }
}

func arange(c *call) starlark.Value {
	start, end, step := c.array("start"), c.number("start", 0), c.number("step", 1)
	from := 0.0
	if c.has("end") {
		from, end = c.number("start", 0), c.number("end", 0)
	}
	n := math.Ceil((end - from) / step)
	if c.err != nil || step == 0 || math.IsNaN(n) || n > maxElements {
		c.fail("cannot count from %v to %v by %v", from, end, step)
		return nil
	}
	kind := start.kind
	for _, name := range []string{"end", "step"} {
		if c.has(name) {
			kind = same(kind, c.array(name).kind)
		}
	}
	out, err := alloc([]int{int(max(n, 0))}, kind)
	if err != nil {
		return c.give(nil, err)
	}
	for i := range out.Data {
		out.Data[i] = from + float64(i)*step
	}
	return out
}

func linspace(c *call) starlark.Value {
	start, end, n := c.number("start", 0), c.number("end", 0), c.integer("steps", 0)
	out, err := alloc([]int{n}, kindFloat)
	if err != nil {
		return c.give(nil, fmt.Errorf("steps: %w", err))
	}
	for i := range out.Data {
		out.Data[i] = start + (end-start)*float64(i)/float64(max(n-1, 1))
	}
	return out
}

func eye(c *call) starlark.Value {
	n := c.integer("n", 0)
	m := c.integer("m", n)
	out, err := alloc([]int{n, m}, kindFloat)
	if err != nil {
		return c.give(nil, err)
	}
	for i := range min(n, m) {
		out.Data[i*m+i] = 1
	}
	return out
}
