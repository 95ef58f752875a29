package torch

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"ridgepoint/harness"
)

// table holds every operator. To add one, write its function and its row, and a case in ops_test.go.
var table = slices.Concat(elementwiseOps(), reductionOps(), shapeOps(), creationOps(), linearOps())

// operators are those that the language writes as signs.
var operators = map[syntax.Token]*pointwise{
	syntax.PLUS: add, syntax.MINUS: sub, syntax.STAR: mul, syntax.SLASH: div, syntax.SLASHSLASH: floorDiv, syntax.PERCENT: remainder,
	syntax.AMP: bitAnd, syntax.PIPE: bitOr, syntax.CIRCUMFLEX: bitXor,
}

// comparisons are those that become calls before Starlark sees them.
var comparisons = map[string]*pointwise{"<": less, "<=": lessEqual, ">": greater, ">=": greaterEqual, "==": equal, "!=": notEqual}

// module is a namespace of the text: torch, F, math.
type module struct {
	name    string
	members starlark.StringDict
}

func (m *module) String() string        { return m.name }
func (m *module) Type() string          { return "module" }
func (m *module) Freeze()               {}
func (m *module) Truth() starlark.Bool  { return true }
func (m *module) Hash() (uint32, error) { return 0, fmt.Errorf("a module cannot be a key") }
func (m *module) AttrNames() []string   { return m.names() }
func (m *module) names() []string       { return sortedNames(m.members) }

func (m *module) Attr(name string) (starlark.Value, error) {
	if v, ok := m.members[name]; ok {
		return v, nil
	}
	return nil, nil
}

var (
	modules     = map[string]*module{}
	methods     = map[string]*starlark.Builtin{}
	methodNames []string
	globals     = starlark.StringDict{}
)

// listMethods are the methods of lists, dicts and strings that a text may call; Starlark itself looks them up.
var listMethods = []string{"append", "extend", "insert", "pop", "remove", "clear", "keys", "values", "items", "get", "update", "setdefault", "format", "join",
	"split", "startswith", "endswith", "replace", "strip", "lower", "upper", "count", "find", "index", "indices"}

func init() {
	functions := starlark.StringDict{}
	for _, o := range table {
		functions[o.name] = o.builtin(false)
		if o.method {
			methods[o.name] = o.builtin(true)
		}
	}
	constants := starlark.StringDict{"pi": starlark.Float(math.Pi), "e": starlark.Float(math.E), "inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN())}
	torch := &module{name: "torch", members: starlark.StringDict{}}
	for _, part := range []starlark.StringDict{functions, constants} {
		for name, v := range part {
			torch.members[name] = v
		}
	}
	for name, dt := range map[string]harness.DType{"float64": harness.Float64, "double": harness.Float64, "float32": harness.Float32, "float": harness.Float32, "float16": harness.Float16,
		"half": harness.Float16, "bfloat16": harness.BFloat16, "float8_e4m3fn": harness.Float8E4M3, "float8_e5m2": harness.Float8E5M2, "int64": harness.Int64, "long": harness.Int64,
		"int32": harness.Int32, "int": harness.Int32, "int8": harness.Int8, "uint8": harness.UInt8, "bool": harness.BoolType} {
		torch.members[name] = &dtypeName{mark: mark("torch." + name), dtype: dt}
	}
	functional := &module{name: "torch.nn.functional", members: functions}
	torch.members["nn"] = &module{name: "torch.nn", members: starlark.StringDict{"functional": functional}}
	torch.members["linalg"] = &module{name: "torch.linalg", members: functions}
	torch.members["special"] = &module{name: "torch.special", members: functions}
	modules["torch"], modules["F"] = torch, functional
	modules["math"] = &module{name: "math", members: mathModule(constants)}
	for name := range methods {
		methodNames = append(methodNames, name)
	}
	methodNames = append(methodNames, "shape", "T", "mT", "ndim", "values", "indices")
	methodNames = append(methodNames, listMethods...)
	sort.Strings(methodNames)
	methodNames = slices.Compact(methodNames)
	for name, m := range modules {
		globals[name] = m
	}
	for name, fn := range map[string]builtinFunc{namePow: powCall, nameSlice: makeSlice, nameCompare: compareCall, "abs": absCall, "sum": sumCall, "max": extremeCall("max"), "min": extremeCall("min")} {
		globals[name] = starlark.NewBuiltin(strings.Trim(strings.TrimPrefix(name, "__rp"), "_"), fn)
	}
	globals[nameMatmul], globals[nameEllipsis] = matmulMark, ellipsisMark
}

type builtinFunc = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

func sortedNames(d starlark.StringDict) []string {
	names := d.Keys()
	sort.Strings(names)
	return names
}

// mathModule is Python's math over plain numbers.
func mathModule(constants starlark.StringDict) starlark.StringDict {
	out := starlark.StringDict{}
	for name, v := range constants {
		out[name] = v
	}
	for name, fn := range scalarFunctions {
		out[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var x starlark.Value
			if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x); err != nil {
				return nil, err
			}
			f, ok := starlark.AsFloat(x)
			if !ok {
				return nil, fmt.Errorf("math.%s wants a number, got a %s; use torch.%s for tensors", b.Name(), x.Type(), b.Name())
			}
			return starlark.Float(fn(f)), nil
		})
	}
	return out
}

// powCall is a ** b: of ints an int, of numbers a float, else of tensors.
func powCall(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("** takes two operands")
	}
	a, err := toArray(args[0])
	if err != nil {
		return nil, err
	}
	b, err := toArray(args[1])
	if err != nil {
		return nil, err
	}
	if !isNumber(args[0]) || !isNumber(args[1]) {
		return binary(a, b, power)
	}
	v := math.Pow(a.Data[0], b.Data[0])
	if a.kind == kindInt && b.kind == kindInt && b.Data[0] >= 0 && math.Abs(v) < 1<<53 {
		return starlark.MakeInt64(int64(v)), nil
	}
	return starlark.Float(v), nil
}

// isNumber reports whether v is an int, a float or a bool: neither a tensor nor a list of numbers.
func isNumber(v starlark.Value) bool {
	switch v.(type) {
	case starlark.Int, starlark.Float, starlark.Bool:
		return true
	}
	return false
}

// compareCall is a < b and the like: elementwise when one is a tensor.
func compareCall(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	sign := string(args[0].(starlark.String))
	_, isTensor := args[1].(*Array)
	_, isTensorToo := args[2].(*Array)
	if !isTensor && !isTensorToo {
		tokens := map[string]syntax.Token{"<": syntax.LT, "<=": syntax.LE, ">": syntax.GT, ">=": syntax.GE, "==": syntax.EQL, "!=": syntax.NEQ}
		ok, err := starlark.Compare(tokens[sign], args[1], args[2])
		return starlark.Bool(ok), err
	}
	a, err := toArray(args[1])
	if err != nil {
		return nil, err
	}
	b, err := toArray(args[2])
	if err != nil {
		return nil, err
	}
	return binary(a, b, comparisons[sign])
}

func absCall(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 {
		if a, ok := args[0].(*Array); ok {
			return unary(a, math.Abs, a.kind)
		}
	}
	return starlark.Call(t, starlark.Universe["abs"], args, kwargs)
}

// sumCall is Python's sum of a list of numbers or tensors.
func sumCall(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Iterable
	var total starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackArgs("sum", args, kwargs, "iterable", &list, "start?", &total); err != nil {
		return nil, err
	}
	it := list.Iterate()
	defer it.Done()
	var v starlark.Value
	for it.Next(&v) {
		var err error
		if total, err = starlark.Binary(syntax.PLUS, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extremeCall is Python's max or min; of tensors, the largest or smallest element.
func extremeCall(name string) builtinFunc {
	return func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) > 0 {
			if _, ok := args[0].(*Array); ok {
				return starlark.Call(t, modules["torch"].members[name], args, kwargs)
			}
		}
		return starlark.Call(t, starlark.Universe[name], args, kwargs)
	}
}

// suggest names the nearest known word, or lists them when there are few.
func suggest(word string, known []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return "there are none"
	case len(known) > 20:
		return fmt.Sprintf("there are %d, see harness/reference/torch/ops.go", len(known))
	}
	return "known: " + strings.Join(known, ", ")
}

// distance is the edit distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
