package feedback

import (
	"fmt"
	"slices"
	"strings"

	"ridgepoint/harness"
)

// diagnose returns everything that is to be said, the main problem first; never nothing.
func diagnose(t *harness.Task, r *harness.Report) []harness.Diagnosis {
	var list []harness.Diagnosis
	switch r.Fault {
	case harness.FaultRules:
		list = []harness.Diagnosis{{Code: "rule_broken", Problem: r.Reason, Direction: "remove it: nothing is compiled before the rules hold"}}
		if len(r.Warnings) > 0 { // the findings say it in full
			list = nil
		}
	case harness.FaultCompile:
		list = compileProblems(r)
	case harness.FaultLaunch:
		list = []harness.Diagnosis{launchProblem(r)}
	case harness.FaultCrash, harness.FaultTimeout:
		list = []harness.Diagnosis{runtimeProblem(r)}
	case harness.FaultIncorrect:
		list = numericalProblems(t, r)
	case harness.FaultNone, harness.FaultNoisy:
		list = performanceProblems(r)
	default:
		list = []harness.Diagnosis{{Code: r.Fault.String(), Problem: "the kernel was not judged: " + r.Reason, Direction: "repair the machine and judge it again; the kernel needs no change"}}
	}
	for _, d := range r.Warnings {
		if !slices.ContainsFunc(list, func(o harness.Diagnosis) bool { return o.Code == d.Code && o.Problem == d.Problem }) {
			list = append(list, d)
		}
	}
	return list
}

// advice maps a piece of a compiler's message to the direction of the change.
var advice = []struct{ piece, code, direction string }{
	{"undeclared", "undeclared_name", "declare it, or include the header that does; parameters must stand in the header's params"},
	{"undefined", "undeclared_name", "declare it, or include the header that does; parameters must stand in the header's params"},
	{"no such file", "missing_header", "include toolkit headers alone, by their plain names"},
	{"could not open source file", "missing_header", "include toolkit headers alone, by their plain names"},
	{"cannot open source file", "missing_header", "include toolkit headers alone, by their plain names"},
	{"implicit declaration", "undeclared_function", "define the function before its use, or include its header"},
	{"calling a __host__ function", "host_call", "mark the function __device__"},
	{"too much shared data", "shared_memory", "make the tile smaller, or use dynamic shared memory up to the device's limit"},
	{"uses too much", "resources", "use smaller tiles or fewer registers"},
	{"expected", "syntax", "correct the syntax at that line; the message names what was expected"},
	{"incompatible", "types", "make the types agree: tensors are pointers to their dtype, dims are int"},
	{"no instance of overloaded function", "types", "make the argument types agree with a signature that exists"},
	{"cannot convert", "types", "make the types agree: tensors are pointers to their dtype, dims are int"},
	{"ran past", "compile_limit", "unroll less: the compiler ran out of its time or memory"},
	{"killed", "compile_limit", "unroll less: the compiler ran out of its time or memory"},
}

// compileProblems take the first messages of the compiler, one diagnosis each.
func compileProblems(r *harness.Report) []harness.Diagnosis {
	var list []harness.Diagnosis
	for _, line := range append([]string{r.Reason}, r.Detail...) {
		first, source, _ := strings.Cut(line, "\n")
		if first == "" || first != r.Reason && !strings.Contains(first, "error") {
			continue
		}
		d := harness.Diagnosis{Code: "compile_error", Problem: "the compiler refuses: " + first, Direction: "correct that line; later messages often follow from the first", Evidence: strings.TrimSpace(source)}
		for _, a := range advice {
			if strings.Contains(strings.ToLower(first), a.piece) {
				d.Code, d.Direction = a.code, a.direction
				break
			}
		}
		repeats := func(o harness.Diagnosis) bool {
			return strings.Contains(d.Problem, strings.TrimPrefix(o.Problem, "the compiler refuses: ")) || strings.Contains(o.Problem, first)
		}
		if i := slices.IndexFunc(list, repeats); i >= 0 {
			if list[i].Evidence == "" {
				list[i] = d
			}
			continue
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		list = append(list, harness.Diagnosis{Code: "compile_error", Problem: "the compiler refuses without a message", Direction: "compile the file by hand with the command of --detail"})
	}
	return list
}

func launchProblem(r *harness.Report) harness.Diagnosis {
	d := harness.Diagnosis{Code: "launch_refused", Problem: "the kernel cannot be launched: " + r.Reason, Evidence: where(r.Evidence), Direction: "check the launch's grid, block, shared_bytes and args against the device's limits and the kernel"}
	lower := strings.ToLower(r.Reason)
	switch {
	case strings.Contains(lower, "shared"):
		d.Code, d.Direction = "shared_memory", "use less shared memory: smaller tiles or fewer stages"
	case strings.Contains(lower, "resources") || strings.Contains(lower, "register"):
		d.Code, d.Direction = "too_many_registers", "use fewer threads a block, or a lower maxrregcount"
	case strings.Contains(lower, "symbol") || strings.Contains(lower, "not found") || strings.Contains(lower, "no function"):
		d.Code, d.Direction = "no_such_kernel", "name a function of the file in the launch; on GPU targets it must be extern \"C\" __global__"
	}
	return d
}

func runtimeProblem(r *harness.Report) harness.Diagnosis {
	d := harness.Diagnosis{Code: "crash", Problem: "the kernel died: " + r.Reason, Evidence: where(r.Evidence), Direction: "check every index against its tensor's extent at that size"}
	kind, signal := "", ""
	if r.Evidence != nil {
		kind, signal = r.Evidence.Kind, r.Evidence.Signal
	}
	text := strings.ToLower(signal + " " + r.Reason)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case r.Fault == harness.FaultTimeout:
		return harness.Diagnosis{Code: "hang", Problem: "the kernel does not end: " + r.Reason, Evidence: d.Evidence,
			Direction: "check the loops' ends at that size, and that every thread reaches each barrier"}
	case kind == "sandbox" || has("system call"):
		d.Code, d.Direction = "forbidden_system_call", "a kernel computes on its arguments alone: no files, network, processes or clocks"
	case kind == "exit" || has("exited", "closed the connection"):
		d.Code, d.Direction = "exits", "return from the kernel; it must not end the process nor touch its files"
	case has("sigfpe", "floating"):
		d.Code, d.Direction = "integer_division_by_zero", "guard the division: a dim or a parameter can be smaller than the divisor"
	case has("sigill", "illegal instruction"):
		d.Code, d.Direction = "illegal_instruction", "use instructions of the stated arch alone"
	case has("sigsegv", "sigbus", "illegal address", "misaligned", "segmentation"):
		d.Code = "out_of_bounds_access"
		if has("misaligned", "sigbus") {
			d.Code, d.Direction = "misaligned_access", "vector loads need addresses that are multiples of their width: treat the first and last elements of a row apart"
		}
	case has("sigabrt"):
		d.Code, d.Direction = "abort", "heap or stack was damaged, or an assertion failed: check what is written past its end"
	}
	return d
}

// where says at which size, inputs and launch something was found.
func where(e *harness.Evidence) string {
	if e == nil {
		return ""
	}
	var parts []string
	if e.Size != nil {
		size := "size " + e.Size.String()
		if e.Hidden {
			size += ", a hidden size"
		}
		parts = append(parts, size)
	}
	if e.Distribution != "" {
		parts = append(parts, fmt.Sprintf("input set %d, %s", e.InputSet, e.Distribution))
	}
	if e.Tensor != "" && len(e.Index) > 0 && e.Got == e.Want { // what was found is no wrong value: a write too late or out of bounds
		parts = append(parts, fmt.Sprintf("%s%v", e.Tensor, e.Index))
	} else if e.Tensor != "" && len(e.Index) > 0 {
		parts = append(parts, fmt.Sprintf("%s%v is %.6g, want %.6g", e.Tensor, e.Index, float64(e.Got), float64(e.Want)))
	} else if e.Tensor != "" {
		parts = append(parts, e.Tensor)
	}
	if e.Pattern != "" {
		parts = append(parts, "pattern "+e.Pattern)
	}
	if e.Timed {
		parts = append(parts, fmt.Sprintf("launch %d while timing", e.Launch))
	} else if e.Size != nil {
		parts = append(parts, "while verifying")
	}
	return strings.Join(parts, "; ")
}
