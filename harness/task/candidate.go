package task

import (
	"fmt"
	"slices"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// The build options that a parameter may set besides the task's own search_flags.
const (
	optionMaxRegisters = "maxrregcount"
	optionFastMath     = "fast_math"
)

// optionNames are the build options that the task lets a structure's parameters choose.
func optionNames(spec harness.TargetSpec) []string {
	var out []string
	if spec.Target != harness.TargetCPU {
		out = append(out, optionMaxRegisters)
	}
	if spec.FastMath == harness.FastMathSearch {
		out = append(out, optionFastMath)
	}
	for _, f := range spec.SearchFlags {
		out = append(out, f.Option)
	}
	return out
}

// checkOptionValue says what to write instead when a value does not fit a build option; "" when it does.
func checkOptionValue(spec harness.TargetSpec, option string, v expr.Value) string {
	switch option {
	case optionMaxRegisters:
		if n, ok := v.AsInt(); !ok || n < 16 || n > 255 {
			return "write ints from 16 to 255"
		}
	case optionFastMath:
		if _, ok := v.AsBool(); !ok {
			return "write `type: bool`"
		}
	default:
		i := slices.IndexFunc(spec.SearchFlags, func(f harness.SearchFlags) bool { return f.Option == option })
		if i < 0 || !slices.Contains(spec.SearchFlags[i].Values, v.String()) {
			return "write values that the task's search_flags list"
		}
	}
	return ""
}

// NewCandidate makes the candidate of a structure under a configuration: the configuration completed, checked against the
// constraints and planned at every scored size, and the build options of the structure's target with what parameters chose
// within them. A nil configuration is the default one. The error says why there is no such candidate.
func NewCandidate(t *harness.Task, s *harness.Structure, config harness.Configuration) (*harness.Candidate, error) {
	full, err := Complete(s, config)
	if err != nil {
		return nil, err
	}
	if err := Check(t, s, full); err != nil {
		return nil, err
	}
	options, err := BuildOptions(t, s, full)
	if err != nil {
		return nil, err
	}
	return &harness.Candidate{Structure: s, Configuration: full, Target: s.Target, Options: options}, nil
}

// BuildOptions fills the build options of a structure under a complete configuration. On GPU targets maxrregcount is what a
// parameter chose, else the task's, else min(128, 65536/threads) for the largest block at the scored sizes.
func BuildOptions(t *harness.Task, s *harness.Structure, config harness.Configuration) (harness.BuildOptions, error) {
	spec, ok := t.Target(s.Target)
	if !ok {
		return harness.BuildOptions{}, fmt.Errorf("task %s has no target %s", t.Name, s.Target)
	}
	o := harness.BuildOptions{Arch: spec.Arch, Features: slices.Clone(spec.Features), MaxRegisters: spec.MaxRegisters, FastMath: spec.FastMath == harness.FastMathOn,
		Std: spec.Std, Flags: slices.Clone(spec.Flags), IncludeDirs: slices.Clone(spec.IncludeDirs), IncludeHash: spec.IncludeHash}
	var threads int64 = 1
	for _, size := range t.ScoredSizes(s.Target) {
		p, err := Plan(t, s, config, size)
		if err != nil {
			return harness.BuildOptions{}, err
		}
		for _, l := range p.Launches {
			threads = max(threads, l.Threads())
		}
	}
	if s.Target != harness.TargetCPU && o.MaxRegisters == 0 {
		o.MaxRegisters = int(min(128, 65536/threads))
	}
	for _, p := range s.Params {
		if p.Option == "" {
			continue
		}
		v := config[p.Name]
		if reason := checkOptionValue(spec, p.Option, v); reason != "" || !slices.Contains(optionNames(spec), p.Option) {
			return harness.BuildOptions{}, fmt.Errorf("parameter %s: option %s cannot be %s: %s", p.Name, p.Option, v, reason)
		}
		switch p.Option {
		case optionMaxRegisters:
			n, _ := v.AsInt() // checked above
			o.MaxRegisters = int(n)
		case optionFastMath:
			o.FastMath, _ = v.AsBool() // checked above
		default:
			if flag := v.String(); flag != "" {
				o.Flags = append(o.Flags, flag)
			}
		}
	}
	return o, nil
}
