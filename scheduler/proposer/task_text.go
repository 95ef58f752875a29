package proposer

import (
	"fmt"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler"
)

func taskText(c *scheduler.Campaign) propose.TaskText {
	t := c.Task
	out := propose.TaskText{Name: t.Name, Description: strings.TrimSpace(t.Description)}
	for _, x := range t.Tensors {
		role := map[harness.Role]string{harness.RoleIn: "read only", harness.RoleOut: "written", harness.RoleInOut: "read and written"}[x.Role]
		out.Facts = append(out.Facts, fmt.Sprintf("%s: %s[%s], %s, row-major", x.Name, x.DType, strings.Join(x.Shape, ", "), role))
	}
	for _, x := range t.Scalars {
		out.Facts = append(out.Facts, fmt.Sprintf("%s: %s, %g", x.Name, x.DType, x.Value))
	}
	if t.Reference.Expr != "" {
		out.Facts = append(out.Facts, "reference, in float64: "+strings.Join(strings.Fields(t.Reference.Expr), " "))
	}
	var sizes []string
	for _, s := range c.Sizes() {
		sizes = append(sizes, s.String())
	}
	out.Facts = append(out.Facts, "timed sizes: "+strings.Join(sizes, "; "),
		fmt.Sprintf("an element passes when |out - reference| <= %g + %g |reference|; one that fails is enough to refuse a kernel", t.Eval.ATol, t.Eval.RTol))
	if t.Work.FLOPs != "" || t.Work.Bytes != "" {
		out.Facts = append(out.Facts, fmt.Sprintf("work of one call: %s flops, %s bytes", orUnknown(t.Work.FLOPs), orUnknown(t.Work.Bytes)))
	}
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func ruleText(c *scheduler.Campaign) []string {
	t := c.Task
	out := []string{"any size within the stated ranges must come out right, odd and prime ones too: no branch on the timed sizes"}
	if c.Target == harness.TargetCPU {
		out = append(out, "C11 with OpenMP, in one file: `void NAME(args)` for every launch; arguments are the tensors as pointers, dims as int, scalars in their type",
			"no heap, no files, no threads but OpenMP's, no state from call to call, no clock")
	} else {
		out = append(out, `device code only, one file: extern "C" __global__ functions; no host code, no launch code`,
			"arguments are the tensors as pointers, dims as int, scalars in their type; no device heap, no writable globals, no clock reads")
		if spec, ok := t.Target(c.Target); ok && spec.MaxRegisters > 0 {
			out = append(out, fmt.Sprintf("at most %d registers a thread", spec.MaxRegisters))
		}
	}
	if spec, ok := t.Target(c.Target); ok && spec.FastMath == harness.FastMathOff {
		out = append(out, "fast math is off and stays off")
	}
	if len(t.Rules.Forbid) > 0 {
		out = append(out, "forbidden: "+strings.Join(t.Rules.Forbid, ", "))
	}
	if t.Rules.MaxSizeRegression > 0 {
		out = append(out, fmt.Sprintf("no timed size may be more than %.0f %% slower than the baseline or the best so far", 100*t.Rules.MaxSizeRegression))
	}
	return out
}

// example is a small structure file of the form that is wanted.
func example(c *scheduler.Campaign) string {
	kernel, args := "NAME", []string{}
	if l := c.Task.DefaultLaunch; l != nil {
		kernel, args = l.Kernel, l.Args
	} else {
		for _, x := range c.Task.Tensors {
			args = append(args, x.Name)
		}
		args = append(args, c.Task.Dims...)
	}
	launch := fmt.Sprintf("  - kernel: %s_NAME\n", kernel)
	code := fmt.Sprintf("void %s_NAME(...) { ... }\n", kernel)
	if c.Target != harness.TargetCPU {
		dim := "1"
		if len(c.Task.Dims) > 0 {
			dim = c.Task.Dims[0]
		}
		launch += fmt.Sprintf("    grid: [\"ceil_div(%s, TILE)\"]\n    block: [256]\n    shared_bytes: 0\n", dim)
		code = fmt.Sprintf("extern \"C\" __global__ void %s_NAME(...) { ... }\n", kernel)
	}
	return "/* ridgepoint\ndirection: name-of-the-idea\nlaunch:\n" + launch + "    args: [" + strings.Join(args, ", ") + "]\nparams:\n  TILE: {values: [16, 32, 64]}\n" +
		"constraints: [\"TILE <= 64\"]\ndefault: {TILE: 32}\n*/\n" + code
}
