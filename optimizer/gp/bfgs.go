package gp

import "math"

// Figures of the minimiser: the longest step in a coordinate, Armijo's constant and factor, trials of a line search, and
// the decrease below which it stops.
const (
	stepCap    = 2.0
	armijo     = 1e-4
	backtrack  = 0.4
	lineTrials = 6
	tolerance  = 1e-3
)

// minimise is a dense BFGS with a backtracking line search: it improves x in place and returns the value reached. fn writes
// the gradient and reports whether the point is valid.
func minimise(fn func(x, grad []float64) (float64, bool), x []float64, iterations int) float64 {
	n := len(x)
	b := &bfgs{fn: fn, x: x, h: identity(n), grad: make([]float64, n), step: make([]float64, n), next: make([]float64, n), nextGrad: make([]float64, n)}
	var ok bool
	if b.value, ok = fn(x, b.grad); !ok {
		return b.value
	}
	for i := range iterations {
		before := b.value
		if !b.iterate(i == 0) || before-b.value < tolerance {
			break
		}
	}
	return b.value
}

type bfgs struct {
	fn             func(x, grad []float64) (float64, bool)
	x, grad, step  []float64
	next, nextGrad []float64
	h              []float64 // inverse Hessian, dense
	value          float64
}

func identity(n int) []float64 {
	h := make([]float64, n*n)
	for i := range n {
		h[i*n+i] = 1
	}
	return h
}

// iterate takes one step; false when no step decreases the value.
func (b *bfgs) iterate(first bool) bool {
	n := len(b.x)
	slope := b.direction(n)
	if slope >= 0 { // the approximation went bad
		copy(b.h, identity(n))
		slope = b.direction(n)
	}
	longest, norm := 0.0, 0.0
	for i := range n {
		longest = math.Max(longest, math.Abs(b.step[i]))
		norm += b.grad[i] * b.grad[i]
	}
	if longest == 0 {
		return false
	}
	t := 1.0
	if first {
		t = 1 / math.Max(1, math.Sqrt(norm))
	}
	if t*longest > stepCap {
		t = stepCap / longest
	}
	for range lineTrials {
		for i := range n {
			b.next[i] = b.x[i] + t*b.step[i]
		}
		value, ok := b.fn(b.next, b.nextGrad)
		if ok && value <= b.value+armijo*t*slope {
			b.update(n)
			copy(b.x, b.next)
			copy(b.grad, b.nextGrad)
			b.value = value
			return true
		}
		t *= backtrack
	}
	return false
}

// direction sets step = -H grad and returns its slope.
func (b *bfgs) direction(n int) float64 {
	slope := 0.0
	for i := range n {
		sum := 0.0
		for j := range n {
			sum += b.h[i*n+j] * b.grad[j]
		}
		b.step[i] = -sum
		slope -= sum * b.grad[i]
	}
	return slope
}

// update is the BFGS formula for the inverse Hessian.
func (b *bfgs) update(n int) {
	s, y := make([]float64, n), make([]float64, n)
	sy := 0.0
	for i := range n {
		s[i], y[i] = b.next[i]-b.x[i], b.nextGrad[i]-b.grad[i]
		sy += s[i] * y[i]
	}
	if sy <= 1e-10 {
		return
	}
	hy := make([]float64, n)
	yhy := 0.0
	for i := range n {
		for j := range n {
			hy[i] += b.h[i*n+j] * y[j]
		}
		yhy += hy[i] * y[i]
	}
	c := (1 + yhy/sy) / sy
	for i := range n {
		for j := range n {
			b.h[i*n+j] += c*s[i]*s[j] - (hy[i]*s[j]+s[i]*hy[j])/sy
		}
	}
}
