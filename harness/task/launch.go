package task

import (
	"fmt"
	"slices"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

const maxLaunches = 64 // of one structure; a plan that needs more is a program, not a kernel

var launchKeys = []string{"kernel", "grid", "block", "shared_bytes", "cluster", "cooperative", "args"}

// readLaunch reads one launch. names are what its expressions may use; argNames what its args may.
func (d *decoder) readLaunch(n *node, what string, gpu bool, names, argNames []string) harness.Launch {
	var l harness.Launch
	seen := map[string]*node{}
	d.fields(n, what, launchKeys, func(name string, v *node) {
		seen[name] = v
		key := what + "." + name
		switch name {
		case "kernel":
			l.Kernel = d.text(v, key)
			if d.err == nil && !nameRE.MatchString(l.Kernel) {
				d.fail(v, "write the name of an extern \"C\" function", "%s: %q is not a name", key, l.Kernel)
			}
		case "grid":
			l.Grid = d.extents(v, key, names)
		case "block":
			l.Block = d.extents(v, key, names)
		case "cluster":
			l.Cluster = d.extents(v, key, names)
		case "shared_bytes":
			l.SharedBytes = d.text(v, key)
			d.parse(exprNode{text: l.SharedBytes, place: v}, key, names)
		case "cooperative":
			l.Cooperative = d.boolean(v, key)
		case "args":
			l.Args = d.args(v, key, argNames)
		}
	})
	for _, want := range []string{"kernel", "args", "grid", "block"} {
		if d.err == nil && seen[want] == nil && (gpu || want == "kernel" || want == "args") {
			d.fail(n, fmt.Sprintf("add `%s:`", want), "%s: has no %s", what, want)
		}
	}
	return l
}

// extents reads a grid, block or cluster: one to three expressions.
func (d *decoder) extents(n *node, what string, names []string) []string {
	list := d.exprs(n, what)
	for _, e := range list {
		d.parse(e, what, names)
	}
	if d.err == nil && (len(list) == 0 || len(list) > 3) {
		d.fail(n, "write one to three extents", "%s: has %d extents", what, len(list))
	}
	return exprTexts(list)
}

func (d *decoder) args(n *node, what string, known []string) []string {
	var out []string
	for _, item := range d.list(n, what) {
		a := widened(item)
		if a == "" {
			a = d.text(item, what)
		}
		name, _, _ := strings.Cut(a, ":")
		if d.err != nil {
			return nil
		}
		if !slices.Contains(known, name) {
			d.fail(item, choose(name, known), "%s: %q is no tensor, workspace, scalar or dim", what, name)
		}
		out = append(out, a)
	}
	if d.err == nil && len(out) == 0 {
		d.fail(n, "list the arguments in the order of the kernel's parameters", "%s: is empty", what)
	}
	return out
}

// widened returns rows:int64 where it was read as a map of one entry, as YAML does within { }; else "".
func widened(n *node) string {
	if n.kind == kindMap && len(n.keys) == 1 && n.keys[0].value.kind == kindScalar {
		return n.keys[0].name + ":" + n.keys[0].value.text
	}
	return ""
}

// checkArgs checks widths ("rows:int64") and that every output is an argument of some launch.
func (d *decoder) checkArgs(n *node, what string, t *harness.Task, launches []harness.Launch) {
	written := map[string]bool{}
	for _, l := range launches {
		for _, a := range l.Args {
			name, width, wide := strings.Cut(a, ":")
			if wide && (!slices.Contains(t.Dims, name) || width != "int64" && width != "int32") {
				d.fail(n, "write `rows:int64` for a dim, and plain names for the rest", "%s: argument %q has a width that it cannot have", what, a)
			}
			written[name] = true
		}
	}
	for _, tensor := range t.Tensors {
		if tensor.Role != harness.RoleIn && !written[tensor.Name] {
			d.fail(n, fmt.Sprintf("pass %s to a kernel", tensor.Name), "%s: the output %s is no argument of any launch", what, tensor.Name)
		}
	}
}

// argNames are what args may name in a task: tensors, scalars and dims.
func argNames(t *harness.Task) []string {
	var out []string
	for _, x := range t.Tensors {
		out = append(out, x.Name)
	}
	for _, s := range t.Scalars {
		out = append(out, s.Name)
	}
	return append(out, t.Dims...)
}

// launch reads default_launch.
func (d *taskDecoder) launch(n *node) {
	if n == nil || d.err != nil {
		return
	}
	gpu := slices.ContainsFunc(d.task.Targets, func(s harness.TargetSpec) bool { return s.Target != harness.TargetCPU })
	l := d.readLaunch(n, "default_launch", gpu, d.task.Dims, argNames(d.task))
	if (l.Grid == nil) != (l.Block == nil) {
		d.fail(n, "write both, or for a task of the cpu alone neither", "default_launch: has one of grid and block")
	}
	d.checkArgs(n, "default_launch", d.task, []harness.Launch{l})
	d.task.DefaultLaunch = &l
}

func (d *taskDecoder) checkDefaultLaunch(n *node, sizes []harness.Size) {
	if d.err != nil || d.task.DefaultLaunch == nil || d.task.DefaultLaunch.Grid == nil {
		return
	}
	for _, size := range sizes {
		if _, err := planLaunch(*d.task.DefaultLaunch, size.Env(nil)); err != nil {
			d.fail(n, "correct the launch", "default_launch: at size %s %v", size, err)
			return
		}
	}
}

// evalInts evaluates expressions that must be ints of at least low.
func evalInts(list []string, env expr.Env, low int64) ([]int64, error) {
	out := make([]int64, 0, len(list))
	for _, text := range list {
		v, err := evalInt(text, env, low)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func evalInt(text string, env expr.Env, low int64) (int64, error) {
	x, err := expr.Cached(text)
	if err != nil {
		return 0, err
	}
	v, err := x.Eval(env)
	if err != nil {
		return 0, err
	}
	n, ok := v.AsInt()
	if !ok {
		return 0, fmt.Errorf("%q is %s (%s), want an int; `/` is exact, `//` floors", text, v, v.Kind())
	}
	if n < low {
		return 0, fmt.Errorf("%q is %d, want at least %d", text, n, low)
	}
	return n, nil
}
