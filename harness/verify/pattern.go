package verify

import (
	"fmt"

	"ridgepoint/harness/task"
)

// Pattern names what the mismatches have in common, the most telling first: "all", "tail", "one element", "tail of rows",
// "rows", "columns", "every nth", "block edges", else "scattered". wrong holds the first mismatches in ascending order, total
// how many there are.
func Pattern(e task.Extent, wrong []int64, total int64) string {
	if len(wrong) == 0 {
		return ""
	}
	first := wrong[0]
	cols := int64(1)
	if n := len(e.Shape); n > 0 {
		cols = e.Shape[n-1]
	}
	rows := e.Elements / cols
	complete := int64(len(wrong)) == total
	switch {
	case total*100 >= e.Elements*99:
		return "all"
	case total == 1:
		return "one element"
	case total == e.Elements-first:
		return fmt.Sprintf("tail: the last %d elements", total)
	}
	if name := byRows(wrong, total, rows, cols, complete); name != "" {
		return name
	}
	if step := stride(wrong); step > 1 {
		if step == cols {
			return fmt.Sprintf("column %d", first%cols)
		}
		return fmt.Sprintf("every %dth from %d", step, first)
	}
	if name := blockEdges(wrong, cols); name != "" {
		return name
	}
	return "scattered"
}

// byRows recognises whole rows, a tail of every row and columns.
func byRows(wrong []int64, total, rows, cols int64, complete bool) string {
	if rows <= 1 || cols <= 1 {
		return ""
	}
	lowest := cols
	counts := map[int64]int64{}
	var order []int64
	for _, i := range wrong {
		r, c := i/cols, i%cols
		lowest = min(lowest, c)
		if counts[r] == 0 {
			order = append(order, r)
		}
		counts[r]++
	}
	if !complete && len(order) > 1 { // the last row may be cut by the limit on kept mismatches
		delete(counts, order[len(order)-1])
		order = order[:len(order)-1]
	}
	whole, tails := true, true
	for _, n := range counts {
		whole = whole && n*100 >= cols*99
		tails = tails && n == cols-lowest
	}
	switch {
	case whole && len(order) == 1 && complete:
		return fmt.Sprintf("row %d", order[0])
	case whole:
		if step := stride(order); step > 1 {
			return fmt.Sprintf("every %dth row from %d", step, order[0])
		}
		return fmt.Sprintf("rows: %d of %d whole, from row %d", (total+cols-1)/cols, rows, order[0])
	case tails && lowest > 0:
		return fmt.Sprintf("tail of rows: from column %d in %d of %d rows", lowest, (total+cols-lowest-1)/(cols-lowest), rows)
	case total*4 >= 3*int64(len(order))*cols && complete:
		return fmt.Sprintf("rows: most of %d of %d, from row %d", len(order), rows, order[0])
	}
	return ""
}

// stride returns the constant distance between neighbours, or 0. Two are not enough to tell.
func stride(indices []int64) int64 {
	if len(indices) < 3 {
		return 0
	}
	step := indices[1] - indices[0]
	for i := 2; i < len(indices); i++ {
		if indices[i]-indices[i-1] != step {
			return 0
		}
	}
	return step
}

// blockEdges recognises mismatches that lie only on the first or last element of blocks of a power of two.
func blockEdges(wrong []int64, cols int64) string {
	for _, block := range []int64{1024, 512, 256, 128, 64, 32, 16, 8} {
		if block >= cols && cols > 1 {
			continue
		}
		edges := true
		for _, i := range wrong {
			c := i
			if cols > 1 {
				c = i % cols
			}
			if m := c % block; m != 0 && m != block-1 {
				edges = false
				break
			}
		}
		if edges {
			return fmt.Sprintf("block edges: blocks of %d", block)
		}
	}
	return ""
}
