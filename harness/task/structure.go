package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/harness"
)

var headerRE = regexp.MustCompile(`/\*[ \t]*ridgepoint[ \t]*\r?\n`)

var structureKeys = []string{"direction", "launch", "workspace", "tensor_maps", "requires", "params", "constraints", "default"}

// structureDecoder decodes the header of one structure file.
type structureDecoder struct {
	decoder
	task  *harness.Task
	s     *harness.Structure
	names []string // what a shape, grid or constraint may use: dims and parameters
}

// ParseStructure reads a structure file's text for one target of a task. name is the file's name; its stem names the structure.
// Without a header the task's default_launch is the launch plan. A wrong file is an *Error.
func ParseStructure(name, source string, t *harness.Task, target harness.Target) (*harness.Structure, error) {
	base := path.Base(filepath.ToSlash(name))
	stem := strings.TrimSuffix(base, path.Ext(base))
	sum := sha256.Sum256([]byte(source))
	d := &structureDecoder{decoder: decoder{file: name}, task: t, s: &harness.Structure{Name: stem, Direction: stem, Target: target, Source: source,
		Digest: hex.EncodeToString(sum[:])}}
	if _, ok := t.Target(target); !ok {
		return nil, &Error{File: name, Reason: fmt.Sprintf("task %s has no target %s", t.Name, target), Remedy: "add it under `targets:` in the task file"}
	}
	if len(source) > maxFileBytes {
		return nil, &Error{File: name, Reason: fmt.Sprintf("is %d bytes long", len(source)), Remedy: fmt.Sprintf("keep it under %d", maxFileBytes)}
	}
	if strings.TrimSpace(source) == "" {
		return nil, &Error{File: name, Reason: "holds no kernel", Remedy: "write a kernel, with a `/* ridgepoint` header or a default_launch in the task file"}
	}
	header, line, err := findHeader(name, source)
	if err != nil {
		return nil, err
	}
	root := &node{kind: kindMap}
	if line > 0 {
		if root, err = parseYAML(name, header, line); err != nil {
			return nil, err
		}
	}
	d.header(root)
	if d.err != nil {
		return nil, d.err
	}
	return d.s, nil
}

// findHeader returns the YAML between `/* ridgepoint` and `*/`, and the number of lines before it; 0 when there is none.
func findHeader(name, source string) (header string, line int, err error) {
	at := headerRE.FindStringIndex(source)
	if at == nil {
		return "", 0, nil
	}
	line = strings.Count(source[:at[1]], "\n")
	header, _, closed := strings.Cut(source[at[1]:], "*/")
	if !closed {
		return "", 0, &Error{File: name, Line: line, Column: 1, Reason: "the header comment is never closed", Remedy: "end it with */"}
	}
	return strings.ReplaceAll(header, "\r\n", "\n"), line, nil
}

func (d *structureDecoder) header(root *node) {
	sections := map[string]*node{}
	d.fields(root, "header", structureKeys, func(name string, v *node) { sections[name] = v })
	if n := sections["direction"]; n != nil {
		d.s.Direction = d.text(n, "direction")
		if d.err == nil && !taskNameRE.MatchString(d.s.Direction) {
			d.fail(n, "use up to 64 letters, digits, _, - and .", "direction: %q is not a name", d.s.Direction)
		}
	}
	d.requires(sections["requires"])
	d.params(sections["params"])
	d.names = append(slices.Clone(d.task.Dims), paramNames(d.s)...)
	d.constraints(sections["constraints"])
	d.defaults(sections["default"])
	d.workspace(sections["workspace"])
	d.tensorMaps(sections["tensor_maps"])
	d.launches(sections["launch"], root)
	d.checkDefaults(root, sections)
}

var versionRE = regexp.MustCompile(`^(>=|<=|>|<|==) ?[0-9]+(\.[0-9]+){0,2}$`)

func (d *structureDecoder) requires(n *node) {
	if n == nil {
		return
	}
	d.fields(n, "requires", []string{"toolkit", "compiler"}, func(name string, v *node) {
		text := d.text(v, "requires."+name)
		if d.err == nil && !versionRE.MatchString(text) {
			d.fail(v, "write it as \">=12.0\"", "requires.%s: %q is not a version bound", name, text)
		}
		if d.s.Requires == nil {
			d.s.Requires = map[string]string{}
		}
		d.s.Requires[name] = text
	})
}

func (d *structureDecoder) launches(n *node, root *node) {
	if d.err != nil {
		return
	}
	gpu := d.s.Target != harness.TargetCPU
	if n == nil {
		d.fallbackLaunch(root, gpu)
		return
	}
	names := argNames(d.task)
	for _, w := range d.s.Workspace {
		names = append(names, w.Name)
	}
	for _, m := range d.s.TensorMaps {
		names = append(names, m.Name)
	}
	items := n.items
	if n.kind == kindMap {
		items = []*node{n}
	} else if !d.is(n, kindList, "launch") {
		return
	}
	if len(items) == 0 || len(items) > maxLaunches {
		d.fail(n, fmt.Sprintf("write 1 to %d launches", maxLaunches), "launch: has %d launches", len(items))
	}
	for _, item := range items {
		l := d.readLaunch(item, "launch", gpu, d.names, names)
		if d.err == nil && !gpu && (l.Grid != nil || l.Block != nil || l.SharedBytes != "" || l.Cluster != nil || l.Cooperative) {
			d.fail(item, "leave kernel and args", "launch: the cpu target has no grid, block, shared memory or cluster")
		}
		d.s.Launches = append(d.s.Launches, l)
	}
	d.checkArgs(n, "launch", d.task, d.s.Launches)
}

// fallbackLaunch takes the task's default_launch, of which the cpu target needs the kernel's name and the arguments alone.
func (d *structureDecoder) fallbackLaunch(root *node, gpu bool) {
	l := d.task.DefaultLaunch
	switch {
	case l == nil:
		d.fail(root, "write a header comment with `launch:`, or `default_launch:` in the task file", "the file has no launch and the task no default_launch")
	case gpu && l.Grid == nil:
		d.fail(root, "add grid and block to default_launch, or a `launch:` to the file", "the task's default_launch has no grid")
	case gpu:
		d.s.Launches = []harness.Launch{*l}
	default:
		d.s.Launches = []harness.Launch{{Kernel: l.Kernel, Args: l.Args}}
	}
}

// freshName checks a name that the header introduces against the task's and the header's own.
func (d *structureDecoder) freshName(k key, what string) {
	d.checkName(k.place, k.name, what)
	taken := slices.Contains(argNames(d.task), k.name) || slices.Contains(paramNames(d.s), k.name)
	for _, w := range d.s.Workspace {
		taken = taken || w.Name == k.name
	}
	if d.err == nil && taken {
		d.fail(k.place, "choose a name that no dim, tensor, scalar, parameter or workspace has", "%s: the name %q is taken", what, k.name)
	}
}

func (d *structureDecoder) workspace(n *node) {
	if n == nil || !d.is(n, kindMap, "workspace") {
		return
	}
	for _, k := range n.keys {
		d.freshName(k, "workspace")
		b := harness.Buffer{Name: k.name, DType: harness.Float32, Init: "none"}
		what := "workspace." + k.name
		d.fields(k.value, what, []string{"shape", "dtype", "init"}, func(name string, v *node) {
			switch name {
			case "shape":
				b.Shape = d.shape(v, what+".shape")
			case "dtype":
				b.DType = d.readDType(v, what+".dtype")
			case "init":
				b.Init = d.oneOf(v, what+".init", "none", "zero")
			}
		})
		if d.err == nil && len(b.Shape) == 0 {
			d.fail(k.value, "add `shape: [...]`", "%s: has no shape", what)
		}
		d.s.Workspace = append(d.s.Workspace, b)
	}
}

// shape reads a list of expressions over dims and parameters.
func (d *structureDecoder) shape(n *node, what string) []string {
	list := d.exprs(n, what)
	for _, e := range list {
		d.parse(e, what, d.names)
	}
	return exprTexts(list)
}

func (d *structureDecoder) tensorMaps(n *node) {
	if n == nil || !d.is(n, kindMap, "tensor_maps") {
		return
	}
	if d.s.Target != harness.TargetCUDA {
		d.fail(n, "remove them", "tensor_maps: only the cuda target has them")
	}
	var names []string
	for _, t := range d.task.Tensors {
		names = append(names, t.Name)
	}
	for _, k := range n.keys {
		d.freshName(k, "tensor_maps")
		m := harness.TensorMap{Name: k.name}
		what := "tensor_maps." + k.name
		rank := -1
		d.fields(k.value, what, []string{"tensor", "box", "swizzle"}, func(name string, v *node) {
			switch name {
			case "tensor":
				m.Tensor = d.oneOf(v, what+".tensor", names...)
				if i := slices.Index(names, m.Tensor); i >= 0 {
					rank = len(d.task.Tensors[i].Shape)
				}
			case "box":
				m.Box = d.shape(v, what+".box")
			case "swizzle":
				m.Swizzle = d.oneOf(v, what+".swizzle", "none", "32B", "64B", "128B")
			}
		})
		if d.err == nil && (rank < 1 || rank > 5 || len(m.Box) != rank) {
			d.fail(k.value, "name a tensor of 1 to 5 dims and a box with one extent a dim", "%s: the box has %d extents", what, len(m.Box))
		}
		d.s.TensorMaps = append(d.s.TensorMaps, m)
	}
}

func paramNames(s *harness.Structure) []string {
	var out []string
	for _, p := range s.Params {
		out = append(out, p.Name)
	}
	return out
}
