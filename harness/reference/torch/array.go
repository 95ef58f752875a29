package torch

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Array is an n-dimensional array of float64 in row-major order. Operators never change an array once made, so reshaped
// arrays share their data.
type Array struct {
	Shape []int
	Data  []float64 // product of Shape elements
	kind  elemKind
}

// elemKind remembers what the elements stand for, as far as operators care.
type elemKind uint8

const (
	kindFloat elemKind = iota
	kindInt
	kindBool
)

// maxElements bounds one array: 4 GiB.
const maxElements = 1 << 29

// New returns an array over data, which it keeps. The product of shape must be len(data).
func New(shape []int, data []float64) (*Array, error) {
	n, err := count(shape)
	if err != nil {
		return nil, err
	}
	if n != len(data) {
		return nil, fmt.Errorf("shape %v has %d elements, the data %d", shape, n, len(data))
	}
	return &Array{Shape: slices.Clone(shape), Data: data}, nil
}

func count(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative extent", shape)
		}
		if d > 0 && n > maxElements/d {
			return 0, fmt.Errorf("shape %v is over the limit of %d elements; work in blocks", shape, maxElements)
		}
		n *= d
	}
	return n, nil
}

// alloc returns an array of the shape whose elements the caller will all write.
func alloc(shape []int, kind elemKind) (*Array, error) {
	n, err := count(shape)
	if err != nil {
		return nil, err
	}
	if err := reserve(n); err != nil {
		return nil, err
	}
	return &Array{Shape: slices.Clone(shape), Data: make([]float64, n), kind: kind}, nil
}

// maxHeapBytes bounds the live heap while a reference runs: 8 GiB, or half of a larger machine's memory, where input sets and
// expected values of other sizes are kept beside it.
var maxHeapBytes = sync.OnceValue(func() uint64 {
	const least = 8 << 30
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return least
	}
	return max(least, info.Totalram*uint64(info.Unit)/2)
})

// bigElements is from where an allocation looks at the heap.
const bigElements = 1 << 20

// reserve fails when n more elements would take the live heap over its limit.
func reserve(n int) error {
	if n < bigElements {
		return nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc+uint64(n)*8 <= maxHeapBytes() {
		return nil
	}
	runtime.GC() // what looks live may be the temporaries of earlier operators
	runtime.ReadMemStats(&m)
	if m.HeapAlloc+uint64(n)*8 > maxHeapBytes() {
		return fmt.Errorf("%d more elements would take memory over %d GiB; work in blocks", n, maxHeapBytes()>>30)
	}
	return nil
}

func scalar(v float64, kind elemKind) *Array { return &Array{Data: []float64{v}, kind: kind} }

// view returns the same elements under another shape of the same size.
func (a *Array) view(shape []int) *Array {
	return &Array{Shape: slices.Clone(shape), Data: a.Data, kind: a.kind}
}

func (a *Array) as(kind elemKind) *Array { return &Array{Shape: a.Shape, Data: a.Data, kind: kind} }

// lastDim returns the extent of the last dim, 1 for a scalar, and the number of rows of it.
func (a *Array) lastDim() (rows, cols int) {
	if len(a.Shape) == 0 {
		return 1, 1
	}
	cols = a.Shape[len(a.Shape)-1]
	if cols == 0 {
		return 0, 0
	}
	return len(a.Data) / cols, cols
}

// grain is the least work, in elements, that is worth a goroutine.
const grain = 1 << 15

// parallel splits [0, n) among the processors; cost is the elements of work one index stands for. fn must not panic.
func parallel(n, cost int, fn func(low, high int)) {
	workers := min(runtime.GOMAXPROCS(0), n*max(cost, 1)/grain+1, n)
	if workers <= 1 {
		if n > 0 {
			fn(0, n)
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { fn(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}

func stridesOf(shape []int) []int {
	out := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		out[i] = step
		step *= shape[i]
	}
	return out
}

// axis turns a dim as written (-1 is the last) into an index.
func axis(dim, rank int) (int, error) {
	r := max(rank, 1)
	if dim < -r || dim >= r {
		return 0, fmt.Errorf("dim %d is out of range for %d dims", dim, rank)
	}
	if dim < 0 {
		dim += r
	}
	return dim, nil
}
