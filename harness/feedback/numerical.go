package feedback

import (
	"math"
	"strings"

	"ridgepoint/harness"
)

// numericalProblems says why outputs may be wrong: what the first wrong element, the pattern of all of them, the inputs and
// the launch have to tell.
func numericalProblems(t *harness.Task, r *harness.Report) []harness.Diagnosis {
	e := r.Evidence
	if e == nil {
		return []harness.Diagnosis{{Code: "incorrect", Problem: r.Reason, Direction: "compare the kernel with the reference at the smallest size"}}
	}
	list := []harness.Diagnosis{mainNumerical(t, r, e)}
	if e.Timed && e.Kind != "cached" && e.Kind != "clock" {
		list = append(list, harness.Diagnosis{Code: "state_between_launches", Problem: "earlier launches were right and this one is not", Direction: "compute everything anew in each launch; keep no state between them"})
	}
	if e.Hidden {
		list = append(list, harness.Diagnosis{Code: "size_specific", Problem: "it fails at a size that is not listed", Direction: "handle every size within the task's range, odd and prime ones among them"})
	}
	return list
}

// kinds are the findings that need no look at the numbers.
var kinds = map[string]harness.Diagnosis{
	"red_zone":       {Code: "out_of_bounds_write", Problem: "memory past a buffer's ends was written", Direction: "guard the last block: compare the index with the extent before writing"},
	"inputs_changed": {Code: "inputs_changed", Problem: "an input was changed", Direction: "write to outputs and workspaces alone"},
	"late_write":     {Code: "late_write", Problem: "an output changed after the kernel had returned", Direction: "join all threads before returning"},
	"not_repeatable": {Code: "not_repeatable", Problem: "the same inputs gave other bits", Direction: "fix the order of sums: no atomics on floats where the task asks for the same bits"},
	"cached":         {Code: "skips_known_inputs", Problem: "inputs seen before take less time than new ones", Direction: "compute in every launch; keep no results"},
	"clock":          {Code: "clock_tampering", Problem: "the clock was tampered with", Direction: "leave the clock alone"},
	"projection":     {Code: "wrong_in_timed_launch", Problem: "the outputs of a timed launch do not sum up to the expected ones", Direction: "compute everything anew in each launch"},
}

func mainNumerical(t *harness.Task, r *harness.Report, e *harness.Evidence) harness.Diagnosis {
	d, ok := kinds[e.Kind]
	d.Evidence = where(e)
	if ok {
		return d
	}
	switch e.Kind {
	case "unwritten":
		return unwritten(d, e)
	case "non_finite":
		return nonFinite(d, e)
	}
	return mismatch(t, d, r, e)
}

func unwritten(d harness.Diagnosis, e *harness.Evidence) harness.Diagnosis {
	d.Code, d.Problem, d.Direction = "unwritten", "elements were never written", "write every element of the output in every launch"
	switch {
	case strings.HasPrefix(e.Pattern, "tail"):
		d.Code, d.Problem, d.Direction = "tail_unwritten", "the tail was never written", "handle the rest after the last full vector, tile or block"
	case e.Pattern == "all":
		d.Code, d.Problem, d.Direction = "nothing_written", "the output was not written at all", "check the launch's arguments and grid, and that no early return is taken"
	case strings.HasPrefix(e.Pattern, "every"):
		d.Code, d.Direction = "gaps_unwritten", "the stride between a thread's elements leaves some out: let the threads cover every index"
	}
	return d
}

func nonFinite(d harness.Diagnosis, e *harness.Evidence) harness.Diagnosis {
	d.Code, d.Problem = "non_finite", "the output holds NaN or infinity where the reference is finite"
	d.Direction = "look for 0/0, inf - inf, and reads of memory that was never written"
	switch e.Distribution {
	case harness.DistTimes100, harness.DistPlus1000, harness.DistSpikes:
		d.Code, d.Direction = "overflow", "scale before exponentials and products: subtract the row's maximum first"
	case harness.DistTiny:
		d.Direction = "guard divisions and logarithms against zero and denormal inputs"
	}
	return d
}

// half is the relative error of a number kept in half precision; float is that of single precision with room for long sums.
const (
	half  = 1.0 / 512
	float = 1e-5
)

func mismatch(t *harness.Task, d harness.Diagnosis, r *harness.Report, e *harness.Evidence) harness.Diagnosis {
	got, want := float64(e.Got), float64(e.Want)
	relative := math.Abs(got-want) / math.Max(math.Abs(want), math.SmallestNonzeroFloat64)
	d.Code, d.Problem, d.Direction = "wrong_result", "the result is wrong", "compare the kernel with the reference element by element at that size"
	switch {
	case got == 0 && want != 0 && r.Errors != nil && r.Errors.MismatchRatio > 0.5:
		d.Code, d.Problem, d.Direction = "zeros", "the output is zero where it must not be", "compute the result: zeros are within no tolerance"
	case relative <= float:
		d.Code, d.Problem, d.Direction = "rounding", "the error is a few roundings of single precision over the tolerance", "sum in more than one accumulator or in blocks, and keep fast math off"
	case relative <= half && singleOrMore(t):
		d.Code, d.Problem, d.Direction = "low_precision", "the error is that of half precision or of approximate functions", "keep values and sums in the tensors' own precision; use exact functions"
	case strings.HasPrefix(e.Pattern, "tail"):
		d.Code, d.Problem, d.Direction = "tail_wrong", "the tail is wrong", "handle the rest after the last full vector, tile or block"
	case strings.HasPrefix(e.Pattern, "rows") || strings.HasPrefix(e.Pattern, "row ") || strings.Contains(e.Pattern, "th row"):
		d.Code, d.Problem, d.Direction = "rows_wrong", "whole rows are wrong", "check which block or thread owns those rows, and the reduction over each"
	case strings.HasPrefix(e.Pattern, "block edges"):
		d.Code, d.Problem, d.Direction = "block_edges_wrong", "elements at the edges of blocks are wrong", "check the halo, and the barrier between writing and reading shared values"
	case strings.HasPrefix(e.Pattern, "every") || strings.HasPrefix(e.Pattern, "column"):
		d.Code, d.Problem, d.Direction = "lanes_wrong", "elements at a fixed stride are wrong", "check the vector lane or thread that owns them"
	case e.Pattern == "scattered":
		d.Code, d.Problem, d.Direction = "scattered_wrong", "single elements are wrong all over", "look for a race: a missing barrier or a shared value written by two threads"
	}
	return d
}

// singleOrMore reports whether every output has at least single precision.
func singleOrMore(t *harness.Task) bool {
	for _, x := range t.Tensors {
		if x.Role != harness.RoleIn && x.DType.IsFloat() && x.DType.SizeBytes() < 4 {
			return false
		}
	}
	return true
}
