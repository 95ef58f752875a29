package check

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/reference"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

func expected(ctx context.Context, t *harness.Task, size harness.Size, values map[string][]float64) (reference.Outputs, error) {
	r, err := reference.New(t, nil)
	if err != nil {
		return nil, err
	}
	return r.Expected(ctx, size, reference.Inputs{Values: values})
}

// swaps are the slips of a pen that a reference may suffer: each changes what is computed, never merely how.
var swaps = []struct{ from, to string }{
	{`\.softmax\(`, ".log_softmax("}, {`\.log_softmax\(`, ".softmax("}, {`\.sum\(`, ".mean("}, {`\.mean\(`, ".sum("}, {`\.max\(`, ".min("}, {`\.amax\(`, ".amin("}, {`\.min\(`, ".max("},
	{`\.exp\(`, ".expm1("}, {`\.sqrt\(`, ".square("}, {`\.rsqrt\(`, ".sqrt("}, {`\.tanh\(`, ".sigmoid("}, {`\.erf\(`, ".erfc("}, {`\.relu\(`, ".abs("}, {`\.gelu\(`, ".silu("}, {`\.silu\(`, ".gelu("},
	{`\.t\(\)`, ""}, {`\.T\b`, ""}, {`\bdim ?= ?-1`, "dim=0"}, {`\bdim ?= ?0`, "dim=-1"},
	{` \+ `, " - "}, {` - `, " + "}, {` \* `, " / "}, {` / `, " * "}, {` @ `, " * 1.01 @ "}, {`\.maximum\(`, ".minimum("}, {`\.conv2d\(`, ".conv2d(1.01 * "},
}

// maxMutants bounds how many are tried.
const maxMutants = 32

// mutated returns the text with one slip each, as far as the text has room for them.
func mutated(text string) []string {
	var out []string
	for _, s := range swaps {
		for _, at := range regexp.MustCompile(s.from).FindAllStringIndex(text, 3) {
			if m := text[:at[0]] + s.to + text[at[1]:]; !slices.Contains(out, m) && len(out) < maxMutants {
				out = append(out, m)
			}
		}
	}
	return out
}

// mutants checks on the host that a slip in the reference changes the outputs beyond tolerance: otherwise tolerances, or
// inputs, are too kind to tell one computation from another.
func (l *linter) mutants(ctx context.Context) error {
	if l.Task.Reference.Expr == "" {
		l.report(Skip, "mutants", "the shifted outputs below are checked all the same", "the reference is a program, not a text to mutate")
		return nil
	}
	size := l.smallest()
	extents, err := task.Shapes(l.Task, size)
	if err != nil {
		return err
	}
	set, err := l.Judge.Pool().Get(ctx, l.Task, size, verify.ScaleSpec, 0)
	if err != nil {
		return err
	}
	values := map[string][]float64{}
	for i, e := range extents {
		if set.Inputs[i] != nil {
			v := make([]float64, e.Elements)
			verify.Decode(v, set.Inputs[i], e, 0)
			values[e.Name] = v
		}
	}
	tried, caught := 0, 0
	var survivors []string
	for _, text := range mutated(l.Task.Reference.Expr) {
		l.progress("mutated references at %s: %d tried", size, tried)
		found, err := l.mutant(ctx, text, size, extents, set, values)
		if err != nil {
			return err
		}
		tried++
		if found {
			caught++
		} else {
			survivors = append(survivors, difference(l.Task.Reference.Expr, text))
		}
	}
	switch {
	case tried == 0:
		l.report(Warn, "mutants", "", "no slip is known for this reference")
	case len(survivors) > 0:
		l.report(Fail, "mutants", "tighten the tolerances, or draw inputs on which it matters", "%d of %d mutated references give the same outputs at %s: %s", len(survivors), tried, size, few(survivors))
	default:
		l.report(Pass, "mutants", "", "all %d mutated references are caught at %s", caught, size)
	}
	return nil
}

// mutant reports whether a mutated text is caught: it is refused, or some output differs.
func (l *linter) mutant(ctx context.Context, text string, size harness.Size, extents []task.Extent, set *verify.Set, values map[string][]float64) (bool, error) {
	t, err := task.WithReference(l.Task, text)
	if err != nil {
		return true, nil
	}
	out, err := expected(ctx, t, size, values)
	var wrong *task.Error
	if errors.As(err, &wrong) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	list := make([][]float64, len(extents))
	for i, e := range extents {
		list[i] = out[e.Name]
	}
	return !l.same(extents, set, list), nil
}

// difference shows the piece of a text that a mutation changed.
func difference(a, b string) string {
	low := 0
	for low < min(len(a), len(b)) && a[low] == b[low] {
		low++
	}
	ea, eb := len(a), len(b)
	for ea > low && eb > low && a[ea-1] == b[eb-1] {
		ea--
		eb--
	}
	from := max(0, low-8)
	return fmt.Sprintf("%q became %q", strings.TrimSpace(a[from:min(ea+8, len(a))]), strings.TrimSpace(b[from:min(eb+8, len(b))]))
}

// shifts change the outputs of any reference: everywhere by one part in a hundred, in the last element alone, by a place.
var shifts = []struct{ name, body string }{
	{"scaled by 1.01", "x * 1.01"},
	{"its last element changed", "torch.cat([x.flatten()[:-1], x.flatten()[-1:] * 1.02 + x.abs().mean() * 0.02]).reshape(x.shape)"},
	{"moved by one element", "torch.roll(x.flatten(), 1, 0).reshape(x.shape)"},
}

// shifted holds the baseline against references whose outputs were changed: it must then be found incorrect on the device, by
// the whole way of a candidate.
func (l *linter) shifted(ctx context.Context, t harness.Target, c *harness.Candidate) error {
	var passed []string
	for _, s := range shifts {
		l.progress("the baseline of %s against a reference that is %s", t, s.name)
		text, ok := wrap(l.Task, s.body)
		if !ok {
			return nil
		}
		mutant, err := task.WithReference(l.Task, text)
		if err != nil {
			return fmt.Errorf("wrap the reference: %w", err)
		}
		r, err := l.judge(ctx, mutant, c, harness.StageSearch)
		if err != nil {
			return err
		}
		if r.Fault != harness.FaultIncorrect {
			passed = append(passed, fmt.Sprintf("%s (%s)", s.name, r.Fault))
		}
	}
	if len(passed) > 0 {
		l.reportTarget(t, Fail, "shifted", "tighten the tolerances", "the baseline passes for a reference that is %s", few(passed))
		return nil
	}
	l.reportTarget(t, Pass, "shifted", "", "the baseline fails for references scaled by 1.01, moved by one element, or changed in the last element alone")
	return nil
}

// wrap returns the reference with every output x replaced by body; false for a form that cannot be wrapped (a program).
func wrap(t *harness.Task, body string) (string, bool) {
	text := t.Reference.Expr
	names := strings.Join(task.ReferenceNames(t), ", ")
	if text == "" {
		return "", false
	}
	call := "original(" + names + ")"
	if defs := regexp.MustCompile(`(?m)^def\s+([A-Za-z_][A-Za-z0-9_]*)\s*\(([^)]*)\)`).FindAllStringSubmatch(text, -1); len(defs) > 0 {
		def := defs[len(defs)-1]
		for _, d := range defs {
			if d[1] == "reference" {
				def = d
			}
		}
		text += "\noriginal = " + def[1] + "\n"
		call = "original(" + def[2] + ")"
		names = def[2]
	} else if strings.Contains(strings.TrimSpace(text), "\n") {
		return "", false // statements that assign the outputs
	} else {
		text = "def original(" + names + "):\n    return (" + strings.TrimSpace(text) + ")\n"
	}
	return text + "\ndef shifted(x):\n    return " + body + "\n\ndef reference(" + names + "):\n    out = " + call + "\n" +
		"    if type(out) in (\"tuple\", \"list\"):\n        return [shifted(x) for x in out]\n" +
		"    if type(out) == \"dict\":\n        return {k: shifted(out[k]) for k in out}\n    return shifted(out)\n", true
}
