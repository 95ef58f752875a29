package verify

import (
	"math"
	"sort"
	"sync"

	"ridgepoint/harness/task"
)

// maxMismatches is how many mismatches of one comparison are kept to find their pattern.
const maxMismatches = 1 << 16

// CompareHost compares an output in host memory with its expected values, element by element. raw is the buffer as the
// kernel left it, seed the one it was poisoned with. An element passes when got is finite and |got-want| <= Abs + Rel*|want|,
// written so that a NaN never passes; where want is not finite, got must be the same.
func CompareHost(tensor int, e task.Extent, raw []byte, want []float64, tol Tolerance, seed uint64) Comparison {
	var mu sync.Mutex
	total := Comparison{Tensor: tensor, Elements: e.Elements, First: -1}
	var wrong []int64
	parallel(len(want), func(from, to int) {
		part := compareChunk(e, raw, want, from, to, tol, seed)
		mu.Lock()
		defer mu.Unlock()
		total.MaxAbs = max(total.MaxAbs, part.MaxAbs)
		total.SumAbs += part.SumAbs
		total.Mismatches += part.Mismatches
		total.NonFinite += part.NonFinite
		total.Unwritten += part.Unwritten
		if part.First >= 0 && (total.First < 0 || part.First < total.First) {
			total.First, total.Got, total.Want, total.FirstKind = part.First, part.Got, part.Want, part.FirstKind
		}
		if len(wrong) < maxMismatches || (len(part.wrong) > 0 && part.wrong[0] < wrong[len(wrong)-1]) {
			wrong = append(wrong, part.wrong...)
		}
	})
	if total.Mismatches > 0 {
		sort.Slice(wrong, func(i, j int) bool { return wrong[i] < wrong[j] })
		wrong = wrong[:min(len(wrong), maxMismatches)]
		total.Pattern = Pattern(e, wrong, total.Mismatches)
	}
	return total
}

type partial struct {
	Comparison
	wrong []int64
}

// compareChunk compares the logical elements [from, to).
func compareChunk(e task.Extent, raw []byte, want []float64, from, to int, tol Tolerance, seed uint64) partial {
	p := partial{Comparison: Comparison{First: -1}}
	var got [1024]float64
	for start := from; start < to; start += len(got) {
		n := min(len(got), to-start)
		Decode(got[:n], raw, e, int64(start))
		top, sum := p.MaxAbs, p.SumAbs
		for i, w := range want[start : start+n] {
			d := math.Abs(got[i] - w)
			if limit := min(tol.Abs+tol.Rel*math.Abs(w), math.MaxFloat64); !(d <= limit) {
				if p.miss(e, raw, int64(start+i), got[i], w, seed); !(d <= math.MaxFloat64) {
					continue
				}
			}
			sum += d
			if d > top {
				top = d
			}
		}
		p.MaxAbs, p.SumAbs = top, sum
	}
	return p
}

// miss looks closer at an element whose difference is not within tolerance.
func (p *partial) miss(e task.Extent, raw []byte, index int64, got, want float64, seed uint64) {
	if got == want || math.IsNaN(got) && math.IsNaN(want) { // the same infinity, or NaN where NaN is expected
		return
	}
	kind := KindMismatch
	size := int64(e.DType.SizeBytes())
	at := offset(e, index) * size
	switch {
	case Poisoned(raw[at:at+size], e.DType, seed, at):
		kind = KindUnwritten
		p.Unwritten++
	case math.IsNaN(got) || math.IsInf(got, 0):
		kind = KindNonFinite
		p.NonFinite++
	}
	p.Mismatches++
	if p.First < 0 {
		p.First, p.Got, p.Want, p.FirstKind = index, got, want, kind
	}
	if len(p.wrong) < maxMismatches {
		p.wrong = append(p.wrong, index)
	}
}
