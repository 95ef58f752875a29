package task

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/harness"
)

var targetKeys = []string{"arch", "baseline", "sizes", "maxrregcount", "fast_math", "std", "flags", "include_dirs", "search_flags"}

// targets reads `compile` and `targets`. What compile says holds for the target that it names, or for all when it names none;
// what a target says itself comes first.
func (d *taskDecoder) targets(s map[string]*node, root *node) {
	if d.err != nil {
		return
	}
	compile, targets := s["compile"], s["targets"]
	var names []key
	if targets != nil {
		d.fields(targets, "targets", []string{"cpu", "cuda", "hip"}, func(string, *node) {})
		names = targets.keys
	}
	if compile != nil && d.is(compile, kindMap, "compile") {
		if t := compile.get("target"); t != nil {
			word := d.oneOf(t, "compile.target", "cpu", "cuda", "hip")
			if !slices.ContainsFunc(names, func(k key) bool { return k.name == word }) {
				names = append([]key{{name: word, place: t, value: &node{kind: kindMap, line: compile.line, column: compile.column}}}, names...)
			}
		}
	}
	if d.err == nil && len(names) == 0 {
		d.fail(root, "add `compile: {target: cuda, arch: sm_90}` or `targets: {cpu: {arch: native}}`", "task: names no target")
	}
	for _, k := range names {
		spec := d.target(k, compile)
		if d.err != nil {
			return
		}
		d.task.Targets = append(d.task.Targets, spec)
	}
}

// target reads one target: the keys of compile first, then its own.
func (d *taskDecoder) target(k key, compile *node) harness.TargetSpec {
	t, err := harness.ParseTarget(k.name)
	if err != nil {
		d.fail(k.place, "write cpu, cuda or hip", "targets: %v", err)
		return harness.TargetSpec{}
	}
	spec := harness.TargetSpec{Target: t}
	if compile != nil {
		named := compile.get("target")
		mine := named == nil || named.text == k.name
		d.fields(compile, "compile", append([]string{"target"}, targetKeys...), func(name string, v *node) {
			gpuOnly := name == "maxrregcount" && t == harness.TargetCPU && named == nil
			if name != "target" && mine && !gpuOnly && k.value.get(name) == nil {
				d.targetField(&spec, "compile", name, v)
			}
		})
	}
	d.fields(k.value, "targets."+k.name, targetKeys, func(name string, v *node) { d.targetField(&spec, "targets."+k.name, name, v) })
	if d.err == nil && spec.Arch == "" {
		d.fail(k.place, "add `arch:` (sm_90 for an H200, gfx942 for an MI300, native for cpu): it is never guessed", "targets.%s: has no arch", k.name)
	}
	for _, tensor := range d.task.Tensors {
		if reason := unsupported(tensor.DType, spec); reason != "" && d.err == nil {
			d.fail(k.place, "choose another dtype, arch or target", "targets.%s: tensor %s is %s: %s", k.name, tensor.Name, tensor.DType, reason)
		}
	}
	return spec
}

func (d *taskDecoder) targetField(spec *harness.TargetSpec, what, name string, v *node) {
	what += "." + name
	switch name {
	case "arch":
		d.arch(spec, v, what)
	case "baseline":
		spec.Baseline = d.source(v, what)
	case "sizes":
		spec.Sizes = d.sizes(v, what)
	case "maxrregcount":
		spec.MaxRegisters = int(d.integer(v, what, 16, 255))
		if d.err == nil && spec.Target == harness.TargetCPU {
			d.fail(v, "leave it out for the cpu target", "%s: a C compiler has no maxrregcount", what)
		}
	case "fast_math":
		switch d.oneOf(v, what, "false", "true", "search") {
		case "true":
			spec.FastMath = harness.FastMathOn
		case "search":
			spec.FastMath = harness.FastMathSearch
		default:
			spec.FastMath = harness.FastMathOff
		}
	case "std":
		spec.Std = d.oneOf(v, what, standards(spec.Target)...)
	case "flags":
		spec.Flags = d.flags(v, what, spec.Target)
	case "include_dirs":
		d.includeDirs(spec, v, what)
	case "search_flags":
		d.searchFlags(spec, v, what)
	default:
		d.fail(v, "remove it", "%s: is not a key of a target", what)
	}
}

var archRE = map[harness.Target]*regexp.Regexp{
	harness.TargetCUDA: regexp.MustCompile(`^(sm_[1-9][0-9]{1,2}[af]?|emulated)$`),
	harness.TargetHIP:  regexp.MustCompile(`^(gfx[0-9a-f]{3,4}|emulated)$`),
	harness.TargetCPU:  regexp.MustCompile(`^[a-z0-9][a-z0-9.+_-]{1,39}$`),
}

var archHint = map[harness.Target]string{
	harness.TargetCUDA: "write it as sm_86, sm_90 or sm_90a; emulated runs on this machine's processor",
	harness.TargetHIP:  "write it as gfx90a or gfx942; emulated runs on this machine's processor",
	harness.TargetCPU:  "write native, or what -march takes, such as x86-64-v3",
}

func (d *taskDecoder) arch(spec *harness.TargetSpec, n *node, what string) {
	a := d.text(n, what)
	if d.err != nil {
		return
	}
	if !archRE[spec.Target].MatchString(a) {
		d.fail(n, archHint[spec.Target], "%s: %q is not an arch of the %s target", what, a, spec.Target)
		return
	}
	spec.Arch, spec.Features = a, nil
	if spec.Target == harness.TargetCPU && a == "native" {
		host := d.host
		if host == nil {
			h, err := ThisHost()
			if err != nil {
				d.fail(n, "write the arch out, e.g. x86-64-v3", "%s: native cannot be resolved here: %v", what, err)
				return
			}
			host = h
		}
		spec.Arch, spec.Features = host.March, slices.Clone(host.Features)
	}
}

// source reads a file that the task names.
func (d *taskDecoder) source(n *node, what string) harness.Source {
	name := d.text(n, what)
	if d.err != nil {
		return harness.Source{}
	}
	if clean := path.Clean(name); path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		d.fail(n, "copy it beside the task file and name it from there", "%s: %s lies outside the task's folder", what, name)
		return harness.Source{}
	}
	text, err := d.folder.read(name)
	switch {
	case err != nil:
		d.fail(n, "name a file relative to the task file's folder", "%s: %s: %s", what, name, readReason(err))
	case strings.TrimSpace(text) == "":
		d.fail(n, "name a file with a kernel in it", "%s: %s is empty", what, name)
	case len(text) > maxFileBytes:
		d.fail(n, fmt.Sprintf("keep kernels under %d bytes", maxFileBytes), "%s: %s is %d bytes long", what, name, len(text))
	}
	return harness.Source{Name: name[strings.LastIndexByte(name, '/')+1:], Text: text}
}

func (d *taskDecoder) includeDirs(spec *harness.TargetSpec, n *node, what string) {
	spec.IncludeDirs = nil
	for _, item := range d.list(n, what) {
		name := d.text(item, what)
		if d.err != nil {
			return
		}
		if d.folder.fsys == nil {
			d.fail(item, "load the task from a file", "%s: %s: there is no folder to look in", what, name)
			return
		}
		dir := d.folder.resolve(name)
		if info, err := fs.Stat(d.folder.fsys, dir); err != nil || !info.IsDir() {
			d.fail(item, "name a folder relative to the task file's folder", "%s: %s is not a folder", what, name)
			return
		}
		spec.IncludeDirs = append(spec.IncludeDirs, d.folder.root+dir)
	}
	sum, err := hashFolders(d.folder, spec.IncludeDirs)
	if err != nil {
		d.fail(n, "name folders of headers that can be read, under 64 MiB in all", "%s: %v", what, err)
	}
	spec.IncludeHash = sum
}

func (d *taskDecoder) searchFlags(spec *harness.TargetSpec, n *node, what string) {
	if !d.is(n, kindMap, what) {
		return
	}
	spec.SearchFlags = nil
	for _, k := range n.keys {
		d.checkName(k.place, k.name, what)
		values := d.flags(k.value, what+"."+k.name, spec.Target)
		if d.err == nil && len(values) < 2 {
			d.fail(k.value, "list at least two flags; \"\" is: no flag", "%s.%s: leaves no choice", what, k.name)
		}
		spec.SearchFlags = append(spec.SearchFlags, harness.SearchFlags{Option: k.name, Values: values})
	}
}

// unsupported says why a target cannot do a dtype; "" when it can.
func unsupported(dt harness.DType, spec harness.TargetSpec) string {
	fp8 := dt == harness.Float8E4M3 || dt == harness.Float8E5M2
	switch spec.Target {
	case harness.TargetCPU:
		if fp8 {
			return "C has no type for it"
		}
	case harness.TargetCUDA:
		var sm int
		fmt.Sscanf(spec.Arch, "sm_%d", &sm) //nolint:errcheck // arch has matched its pattern
		switch {
		case fp8 && sm < 89:
			return spec.Arch + " has no 8-bit floats; sm_89 and later do"
		case dt == harness.BFloat16 && sm < 80:
			return spec.Arch + " has no bfloat16; sm_80 and later do"
		case dt == harness.Float16 && sm < 53:
			return spec.Arch + " has no float16 arithmetic; sm_53 and later do"
		}
	case harness.TargetHIP:
		if fp8 && !strings.HasPrefix(spec.Arch, "gfx94") && !strings.HasPrefix(spec.Arch, "gfx95") && !strings.HasPrefix(spec.Arch, "gfx12") {
			return spec.Arch + " has no 8-bit floats; gfx942, gfx950 and gfx12xx do"
		}
	default:
		return "the target is not known"
	}
	return ""
}
