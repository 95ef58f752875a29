package task

import (
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/harness"
)

var topKeys = []string{"task_name", "description", "problem_shape", "reference", "compile", "eval", "agent", "tensors", "scalars", "sizes",
	"vary", "work", "rules", "targets", "reward", "default_launch", "structures"}

// taskDecoder decodes one task file, section by section: later sections refer to earlier ones.
type taskDecoder struct {
	decoder
	folder folder
	host   *Host
	task   *harness.Task
	dtype  harness.DType // of problem_shape
	lines  []string      // of the file
}

func parseTask(file, text string, f folder, host *Host) (*harness.Task, error) {
	root, err := parseYAML(file, text, 0)
	if err != nil {
		return nil, err
	}
	d := &taskDecoder{decoder: decoder{file: file}, folder: f, host: host, task: &harness.Task{File: file}, lines: strings.Split(text, "\n")}
	sections := map[string]*node{}
	d.fields(root, "task", topKeys, func(name string, v *node) { sections[name] = v })
	for _, want := range []string{"task_name", "problem_shape", "reference"} {
		if d.err == nil && sections[want] == nil {
			d.fail(root, fmt.Sprintf("add `%s:`", want), "task: key %q is missing", want)
		}
	}
	d.head(sections)
	d.problem(sections["problem_shape"])
	d.tensors(sections["tensors"])
	d.scalars(sections["scalars"])
	d.task.Sizes = d.sizes(sections["sizes"], "sizes")
	if d.err == nil && len(d.task.Sizes) == 0 {
		d.task.Sizes = []harness.Size{d.task.Problem}
	}
	d.vary(sections["vary"])
	d.work(sections["work"])
	d.reference(sections["reference"])
	d.rules(sections["rules"])
	d.agent(sections["agent"])
	d.reward(sections["reward"])
	d.targets(sections, root)
	d.eval(sections["eval"])
	d.launch(sections["default_launch"])
	d.structures(sections["structures"])
	d.checkSizes(sections)
	if d.err != nil {
		return nil, d.err
	}
	d.task.Digest = digest(d.task)
	return d.task, nil
}

var taskNameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (d *taskDecoder) head(s map[string]*node) {
	n := s["task_name"]
	d.task.Name = d.text(n, "task_name")
	if d.err == nil && !taskNameRE.MatchString(d.task.Name) {
		d.fail(n, "use up to 64 letters, digits, _, - and .", "task_name: %q is not a name", d.task.Name)
	}
	if n := s["description"]; n != nil {
		d.task.Description = d.text(n, "description")
	}
}

// problem reads problem_shape: the dims in order, and the dtype.
func (d *taskDecoder) problem(n *node) {
	if !d.is(n, kindMap, "problem_shape") {
		return
	}
	d.dtype = harness.Float32
	for _, k := range n.keys {
		if k.name == "dtype" {
			d.dtype = d.readDType(k.value, "problem_shape.dtype")
			continue
		}
		d.checkName(k.place, k.name, "problem_shape")
		v := d.integer(k.value, "problem_shape."+k.name, 1, math.MaxInt32)
		d.task.Dims = append(d.task.Dims, k.name)
		d.task.Problem = append(d.task.Problem, harness.Dim{Name: k.name, Value: v})
	}
	if d.err == nil && len(d.task.Dims) == 0 {
		d.fail(n, "name at least one dim, e.g. {n: 1024, dtype: float32}", "problem_shape: has no dims")
	}
}

func (d *decoder) readDType(n *node, what string) harness.DType {
	t := d.text(n, what)
	if d.err != nil {
		return harness.DTypeInvalid
	}
	dt, err := harness.ParseDType(t)
	if err != nil {
		var known []string
		for k := harness.Float64; k <= harness.BoolType; k++ {
			known = append(known, k.String())
		}
		d.fail(n, choose(t, known), "%s: dtype %q is not known", what, t)
	}
	return dt
}

// sizes reads a list of sizes; each assigns every dim once.
func (d *taskDecoder) sizes(n *node, what string) []harness.Size {
	if n == nil || !d.is(n, kindList, what) {
		return nil
	}
	if len(n.items) == 0 {
		d.fail(n, "list at least one size, or leave the key out", "%s: is empty", what)
	}
	var out []harness.Size
	for _, item := range n.items {
		values := map[string]int64{}
		d.fields(item, what, d.task.Dims, func(name string, v *node) { values[name] = d.integer(v, what+"."+name, 1, math.MaxInt32) })
		var size harness.Size
		for _, dim := range d.task.Dims {
			v, ok := values[dim]
			if !ok {
				d.fail(item, fmt.Sprintf("write every dim: %v", d.task.Dims), "%s: a size lacks the dim %q", what, dim)
			}
			size = append(size, harness.Dim{Name: dim, Value: v})
		}
		if slices.ContainsFunc(out, size.Equal) {
			d.fail(item, "list every size once", "%s: the size %s stands twice", what, size)
		}
		if d.err != nil {
			return nil
		}
		out = append(out, size)
	}
	return out
}

func (d *taskDecoder) vary(n *node) {
	if n == nil || d.err != nil {
		return
	}
	if n.kind == kindScalar && n.text == "none" {
		d.task.Vary.None = true
		return
	}
	if n.kind != kindMap {
		d.fail(n, "write `vary: {rows: [256, 4096]}` or `vary: none`", "vary: want a map of ranges or none")
		return
	}
	ranges := map[string]harness.DimRange{}
	d.fields(n, "vary", d.task.Dims, func(name string, v *node) {
		what := "vary." + name
		if !d.is(v, kindList, what) {
			return
		}
		if len(v.items) != 2 {
			d.fail(v, "write [low, high]", "%s: want two numbers, got %d", what, len(v.items))
			return
		}
		r := harness.DimRange{Name: name, Low: d.integer(v.items[0], what, 1, math.MaxInt32), High: d.integer(v.items[1], what, 1, math.MaxInt32)}
		if d.err == nil && r.Low > r.High {
			d.fail(v, "write the smaller number first", "%s: the range [%d, %d] is empty", what, r.Low, r.High)
		}
		ranges[name] = r
	})
	for _, dim := range d.task.Dims {
		if r, ok := ranges[dim]; ok {
			d.task.Vary.Ranges = append(d.task.Vary.Ranges, r)
		}
	}
}

func (d *taskDecoder) work(n *node) {
	if n == nil {
		return
	}
	d.fields(n, "work", []string{"flops", "bytes"}, func(name string, v *node) {
		e := exprNode{text: d.text(v, "work."+name), place: v}
		d.amountAtSizes(e, "work."+name, d.task.Sizes)
		if name == "flops" {
			d.task.Work.FLOPs = e.text
		} else {
			d.task.Work.Bytes = e.text
		}
	})
}

// amountAtSizes checks that an expression over the dims is a number of at least 0 at every size.
func (d *taskDecoder) amountAtSizes(e exprNode, what string, sizes []harness.Size) {
	x := d.parse(e, what, d.task.Dims)
	if d.err != nil {
		return
	}
	for _, size := range sizes {
		v, err := x.Eval(size.Env(nil))
		if err != nil {
			d.failExpr(e, what, err)
			return
		}
		if f, ok := v.AsFloat(); !ok || f < 0 {
			d.fail(e.place, "write an expression that is a number of at least 0 at every size", "%s: %q is %s at %s", what, e.text, v, size)
			return
		}
	}
}

func (d *taskDecoder) rules(n *node) {
	r := &d.task.Rules
	r.MaxSizeRegression = 0.30
	if n == nil {
		return
	}
	d.fields(n, "rules", []string{"forbid", "size_branching", "writable_globals", "max_size_regression"}, func(name string, v *node) {
		switch name {
		case "forbid":
			r.Forbid = d.texts(v, "rules.forbid")
			if d.err == nil && slices.Contains(r.Forbid, "") {
				d.fail(v, "write the word or call to forbid", "rules.forbid: holds an empty word")
			}
		case "size_branching":
			r.SizeBranching = d.oneOf(v, "rules.size_branching", "verify", "allow", "forbid")
		case "writable_globals":
			r.WritableGlobals = d.oneOf(v, "rules.writable_globals", "verify", "allow", "forbid")
		case "max_size_regression":
			r.MaxSizeRegression = d.float(v, "rules.max_size_regression", 0, 100)
		}
	})
}

func (d *taskDecoder) agent(n *node) {
	a := &d.task.Agent
	*a = harness.Agent{MaxIterations: 8, Temperature: 0.2, FeedbackSchema: "structured_v1"}
	if n == nil {
		return
	}
	d.fields(n, "agent", []string{"max_iterations", "temperature", "feedback_schema"}, func(name string, v *node) {
		switch name {
		case "max_iterations":
			a.MaxIterations = int(d.integer(v, "agent.max_iterations", 0, 1_000_000))
		case "temperature":
			a.Temperature = d.float(v, "agent.temperature", 0, 2)
		case "feedback_schema":
			a.FeedbackSchema = d.oneOf(v, "agent.feedback_schema", "structured_v1", "plain")
		}
	})
}

// rewardNames are the names that a reward expression may use.
var rewardNames = []string{"t", "baseline", "best", "fails"}

func (d *taskDecoder) reward(n *node) {
	r := &d.task.Reward
	*r = harness.Reward{Kind: "mean_std_fail", StdWeight: 0.1, FailWeight: 0.05}
	if n != nil {
		d.fields(n, "reward", []string{"kind", "std_weight", "fail_weight", "per", "expr"}, func(name string, v *node) {
			switch name {
			case "kind":
				r.Kind = d.oneOf(v, "reward.kind", "mean_std_fail", "literal", "expr")
			case "std_weight":
				r.StdWeight = d.float(v, "reward.std_weight", 0, 1e6)
			case "fail_weight":
				r.FailWeight = d.float(v, "reward.fail_weight", 0, 1e6)
			case "per":
				r.Per = d.oneOf(v, "reward.per", "ratio_to_baseline", "milliseconds")
			case "expr":
				r.Expr = d.text(v, "reward.expr")
				d.parse(exprNode{text: r.Expr, place: v}, "reward.expr", rewardNames)
			}
		})
		if d.err == nil && (r.Kind == "expr") != (r.Expr != "") {
			d.fail(n, "write `kind: expr` together with `expr: ...`", "reward: kind is %q, expr is %q", r.Kind, r.Expr)
		}
	}
	if r.Per == "" {
		r.Per = "ratio_to_baseline"
		if r.Kind == "literal" {
			r.Per = "milliseconds"
		}
	}
}

func (d *taskDecoder) reference(n *node) {
	if d.err != nil {
		return
	}
	if n.kind == kindScalar || n.kind == kindNull {
		d.task.Reference.Expr = n.text
		d.checkReference(n)
		return
	}
	d.fields(n, "reference", []string{"command"}, func(_ string, v *node) {
		if d.is(v, kindList, "reference.command") {
			d.task.Reference.Command = d.texts(v, "reference.command")
		}
	})
	if d.err == nil && len(d.task.Reference.Command) == 0 {
		d.fail(n, "write `command: [python3, ref.py]`", "reference: has no command")
	}
}

func (d *taskDecoder) structures(n *node) {
	if n == nil {
		return
	}
	d.task.Structures = d.texts(n, "structures")
	for i, glob := range d.task.Structures {
		place := d.list(n, "structures")[i]
		if d.err == nil && !validGlob(glob) {
			d.fail(place, "write a pattern such as structures/*.cu", "structures: %q is not a file pattern", glob)
		}
		if d.err == nil && d.folder.fsys != nil {
			if found, err := fs.Glob(d.folder.fsys, d.folder.resolve(glob)); err != nil || len(found) == 0 {
				d.fail(place, "name files below the task file's folder, or leave the key out", "structures: %q matches no file", glob)
			}
		}
	}
}

// checkSizes evaluates what depends on sizes: shapes, strides and the launch, at the problem, the scored sizes and those of targets.
func (d *taskDecoder) checkSizes(s map[string]*node) {
	if d.err != nil {
		return
	}
	all := append([]harness.Size{d.task.Problem}, d.task.Sizes...)
	for _, t := range d.task.Targets {
		all = append(all, t.Sizes...)
	}
	for _, size := range all {
		if _, err := Shapes(d.task, size); err != nil {
			n := s["tensors"]
			if n == nil {
				n = s["problem_shape"]
			}
			d.fail(n, "shrink the sizes or correct the shapes", "tensors: at size %s %v", size, err)
			return
		}
	}
	d.checkDefaultLaunch(s["default_launch"], all)
}
