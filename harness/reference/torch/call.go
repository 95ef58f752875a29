package torch

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"ridgepoint/harness"
)

// call holds the bound arguments of one operator. Its readers keep the first fault, so an operator reads straight through
// and returns; the fault is reported after it.
type call struct {
	values map[string]starlark.Value
	err    error
}

func (c *call) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *call) has(name string) bool {
	v := c.values[name]
	return v != nil && v != starlark.None
}

func (c *call) array(name string) *Array {
	if c.values[name] == nil {
		c.fail("%s is missing", name)
		return &Array{Shape: []int{0}}
	}
	a, err := toArray(c.values[name])
	if err != nil {
		c.fail("%s: %v", name, err)
		return &Array{Shape: []int{0}}
	}
	return a
}

func (c *call) arrays(name string) []*Array {
	list, ok := c.values[name].(starlark.Indexable)
	if !ok || list.Len() == 0 {
		c.fail("%s: want a list of tensors", name)
		return nil
	}
	var out []*Array
	for i := range list.Len() {
		a, err := toArray(list.Index(i))
		if err != nil {
			c.fail("%s: %v", name, err)
			return nil
		}
		out = append(out, a)
	}
	return out
}

func (c *call) integer(name string, absent int) int {
	if !c.has(name) {
		return absent
	}
	n, err := toInt(c.values[name])
	if err != nil {
		c.fail("%s: %v", name, err)
	}
	return n
}

func (c *call) number(name string, absent float64) float64 {
	if !c.has(name) {
		return absent
	}
	a := c.array(name)
	if len(a.Data) != 1 {
		c.fail("%s: want a number", name)
		return absent
	}
	return a.Data[0]
}

func (c *call) flag(name string, absent bool) bool {
	if !c.has(name) {
		return absent
	}
	return bool(c.values[name].Truth())
}

func (c *call) text(name, absent string) string {
	if s, ok := c.values[name].(starlark.String); ok {
		return string(s)
	}
	return absent
}

// integers reads ints given as several arguments, as one list, or as a single int.
func (c *call) integers(name string) []int {
	var out []int
	v := c.values[name]
	list, ok := v.(starlark.Indexable)
	if _, isArray := v.(*Array); isArray || !ok {
		if v == nil || v == starlark.None {
			return nil
		}
		list = starlark.Tuple{v}
	}
	if list.Len() == 1 {
		if inner, ok := list.Index(0).(starlark.Indexable); ok {
			if _, isArray := inner.(*Array); !isArray {
				list = inner
			}
		}
	}
	for i := range list.Len() {
		n, err := toInt(list.Index(i))
		if err != nil {
			c.fail("%s: %v", name, err)
			return nil
		}
		out = append(out, n)
	}
	return out
}

// twice reads an int or a pair of ints, such as a stride or a padding.
func (c *call) twice(name string, absent int) [2]int {
	list := c.integers(name)
	switch len(list) {
	case 0:
		return [2]int{absent, absent}
	case 1:
		return [2]int{list[0], list[0]}
	case 2:
		return [2]int{list[0], list[1]}
	}
	c.fail("%s: want one or two ints", name)
	return [2]int{absent, absent}
}

func (c *call) axis(name string, a *Array, absent int) int {
	d, err := axis(c.integer(name, absent), len(a.Shape))
	if err != nil {
		c.fail("%s: %v", name, err)
	}
	return d
}

// axes reads the dims of a reduction; none means all.
func (c *call) axes(name string, a *Array) []int {
	if !c.has(name) {
		return nil
	}
	var out []int
	for _, d := range c.integers(name) {
		d, err := axis(d, len(a.Shape))
		if err != nil {
			c.fail("%s: %v", name, err)
		}
		if slices.Contains(out, d) {
			c.fail("%s: dim %d stands twice", name, d)
		}
		out = append(out, d)
	}
	return out
}

// give returns what an operator made.
func (c *call) give(a *Array, err error) starlark.Value {
	if err != nil {
		c.fail("%v", err)
	}
	return a
}

// dtypeName is torch.float32 and its like.
type dtypeName struct {
	mark
	dtype harness.DType
}

// op is one row of the table: the name, its parameters ("name?" is optional, "name*" takes the rest), what it does, and
// whether it is a method of tensors too, its first parameter then being the tensor.
type op struct {
	name   string
	params string
	fn     func(c *call) starlark.Value
	method bool
}

// aliases are other names of parameters, as numpy has them.
var aliases = map[string]string{"axis": "dim", "keepdims": "keepdim", "a": "input", "x": "input", "self": "input", "b": "other", "ddof": "correction"}

func (o op) builtin(method bool) *starlark.Builtin {
	params := strings.Fields(o.params)
	return starlark.NewBuiltin(o.name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if method {
			args = append(starlark.Tuple{b.Receiver()}, args...)
		}
		c := &call{values: map[string]starlark.Value{}}
		c.bind(params, args, kwargs)
		if c.err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, c.err)
		}
		out := o.fn(c)
		if c.err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, c.err)
		}
		return out, nil
	})
}

func (c *call) bind(params []string, args starlark.Tuple, kwargs []starlark.Tuple) {
	var names []string
	for i, p := range params {
		name := strings.TrimRight(p, "?*")
		names = append(names, name)
		switch {
		case strings.HasSuffix(p, "*"):
			if i < len(args) {
				c.values[name] = args[i:]
				args = args[:i]
			}
		case i < len(args):
			c.values[name] = args[i]
		}
	}
	if len(args) > len(names) {
		c.fail("got %d arguments, takes at most %d (%s)", len(args), len(names), strings.Join(names, ", "))
	}
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		if other, ok := aliases[name]; ok && !slices.Contains(names, name) {
			name = other
		}
		if ignored[name] {
			continue
		}
		if !slices.Contains(names, name) {
			c.fail("has no parameter %q; %s", name, suggest(name, names))
			return
		}
		if c.values[name] != nil {
			c.fail("parameter %q is given twice", name)
		}
		c.values[name] = kw[1]
	}
	for _, p := range params {
		if !strings.ContainsAny(p, "?*") && c.values[p] == nil {
			c.fail("parameter %q is missing", p)
		}
	}
}

// ignored are parameters of torch that mean nothing in float64 on a processor.
var ignored = map[string]bool{"device": true, "requires_grad": true, "memory_format": true, "non_blocking": true, "inplace": true, "generator": true}
