package task

import (
	"fmt"
	"slices"

	"ridgepoint/harness"
)

// minWarmups is the least number of launches before the first kept one on GPU targets: clocks need them to come up.
const minWarmups = 10

// tolerances are the defaults by dtype of the least precise output: those of torch.testing.assert_close, and for 8-bit
// floats one unit in the last place of their 3- and 2-bit mantissas.
var tolerances = map[harness.DType][2]float64{
	harness.Float64: {1e-7, 1e-7}, harness.Float32: {1e-5, 1.3e-6}, harness.Float16: {1e-5, 1e-3}, harness.BFloat16: {1e-5, 1.6e-2},
	harness.Float8E4M3: {1e-3, 0.125}, harness.Float8E5M2: {1e-3, 0.25},
}

// defaultTolerance returns atol and rtol for the outputs: the loosest of their dtypes; 0 for integers.
func (d *taskDecoder) defaultTolerance() (atol, rtol float64) {
	for _, t := range d.task.Tensors {
		if t.Role != harness.RoleIn {
			tol := tolerances[t.DType]
			atol, rtol = max(atol, tol[0]), max(rtol, tol[1])
		}
	}
	return atol, rtol
}

func (d *taskDecoder) eval(n *node) {
	if d.err != nil {
		return
	}
	e := &d.task.Eval
	e.ATol, e.RTol = d.defaultTolerance()
	e.WarmupIters, e.TimedIters, e.Metric = minWarmups, 50, "gflops"
	e.Protocol.Statistic = "median"
	if n == nil {
		return
	}
	known := []string{"atol", "rtol", "warmup_iters", "timed_iters", "metric", "protocol", "exclude_distributions", "deterministic"}
	d.fields(n, "eval", known, func(name string, v *node) {
		what := "eval." + name
		switch name {
		case "atol":
			e.ATol = d.float(v, what, 0, 1e30)
		case "rtol":
			e.RTol = d.float(v, what, 0, 1)
		case "warmup_iters":
			d.warmups(v, what)
		case "timed_iters":
			e.TimedIters = int(d.integer(v, what, 3, 100_000))
		case "metric":
			e.Metric = d.oneOf(v, what, "gflops", "gbps", "time")
		case "protocol":
			d.protocol(v)
		case "exclude_distributions":
			d.exclude(v, what)
		case "deterministic":
			e.Deterministic = d.boolean(v, what)
		}
	})
}

func (d *taskDecoder) warmups(n *node, what string) {
	w := d.integer(n, what, 0, 100_000)
	d.task.Eval.WarmupIters = int(w)
	gpu := slices.ContainsFunc(d.task.Targets, func(s harness.TargetSpec) bool { return s.Target != harness.TargetCPU })
	if d.err == nil && gpu && w < minWarmups {
		d.fail(n, "write 10 or more; a board's own dropped runs are `protocol: {discard: 2}`, after the warm-up",
			"%s: %d launches do not bring a GPU's clocks up", what, w)
	}
}

func (d *taskDecoder) protocol(n *node) {
	p := &d.task.Eval.Protocol
	d.fields(n, "eval.protocol", []string{"runs", "discard", "statistic", "flush", "rewrite"}, func(name string, v *node) {
		what := "eval.protocol." + name
		switch name {
		case "runs":
			p.Runs = int(d.integer(v, what, 1, 100_000))
		case "discard":
			p.Discard = int(d.integer(v, what, 0, 100_000))
		case "statistic":
			p.Statistic = d.oneOf(v, what, "median", "mean", "min")
		case "flush":
			p.NoFlush = !d.boolean(v, what)
		case "rewrite":
			p.NoRewrite = !d.boolean(v, what)
		}
	})
	if d.err == nil && p.Runs > 0 && p.Discard >= p.Runs {
		d.fail(n, "keep at least one run", "eval.protocol: drops %d of %d runs", p.Discard, p.Runs)
	}
}

func (d *taskDecoder) exclude(n *node, what string) {
	known := harness.Distributions()
	d.fields(n, what, known, func(name string, v *node) {
		reason := d.text(v, what+"."+name)
		if d.err == nil && reason == "" {
			d.fail(v, "say why the task's mathematics rules it out", "%s.%s: has no reason", what, name)
		}
		if d.task.Eval.ExcludeDistributions == nil {
			d.task.Eval.ExcludeDistributions = map[string]string{}
		}
		d.task.Eval.ExcludeDistributions[name] = reason
	})
	if d.err == nil && len(d.task.Eval.ExcludeDistributions) == len(known) {
		d.fail(n, fmt.Sprintf("leave at least one of %v", known), "%s: leaves no distribution", what)
	}
}
