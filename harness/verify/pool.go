package verify

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// OracleFunc computes a task's expected outputs in float64: inputs and outputs by tensor name, logical row-major. key names the
// inputs' contents for a given task and size. It gives its outputs away: they may share memory with the inputs.
type OracleFunc func(ctx context.Context, t *harness.Task, size harness.Size, inputs map[string][]float64, key string) (map[string][]float64, error)

// generatorVersion is part of what names an input set's contents: change it when Generate changes what it draws.
const generatorVersion = 1

// Pool makes input sets with their expected values and keeps the recently used ones in memory, up to a limit. It is safe
// for concurrent use.
type Pool struct {
	oracle     OracleFunc
	limitBytes int64

	mu      sync.Mutex
	used    int64
	entries map[string]*list.Element // of *entry
	recent  *list.List               // front: most recently used
	scales  map[string][]float64     // RMS per tensor of plain sets, by key: kept when the set is dropped
}

type entry struct {
	key   string
	ready chan struct{} // closed when set or err is there
	set   *Set
	err   error
	bytes int64
}

// NewPool returns a pool whose sets take at most limitBytes together once they are made; one set alone may be larger.
func NewPool(oracle OracleFunc, limitBytes int64) *Pool {
	return &Pool{oracle: oracle, limitBytes: limitBytes, entries: map[string]*list.Element{}, recent: list.New(), scales: map[string][]float64{}}
}

// Get returns the set of a spec at a size, made now or earlier. index is its place within its size, for reports.
func (p *Pool) Get(ctx context.Context, t *harness.Task, size harness.Size, spec Spec, index int) (*Set, error) {
	key := fmt.Sprintf("%s|%s|%s|%d|%t", t.Digest, size, spec.Distribution, spec.Seed, spec.Sparse)
	p.mu.Lock()
	if el, ok := p.entries[key]; ok {
		p.recent.MoveToFront(el)
		e := el.Value.(*entry)
		p.mu.Unlock()
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return indexed(e.set, index), e.err
	}
	e := &entry{key: key, ready: make(chan struct{})}
	p.entries[key] = p.recent.PushFront(e)
	p.mu.Unlock()

	e.set, e.err = p.make(ctx, t, size, spec, key)
	close(e.ready)
	p.settle(e)
	return indexed(e.set, index), e.err
}

// indexed returns the set under its place within its size; the data is shared.
func indexed(s *Set, index int) *Set {
	if s == nil || s.Index == index {
		return s
	}
	out := *s
	out.Index = index
	return &out
}

// settle accounts for a made set and drops the least recently used ones beyond the limit. A failed one is forgotten.
func (p *Pool) settle(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.err != nil {
		p.recent.Remove(p.entries[e.key])
		delete(p.entries, e.key)
		return
	}
	e.bytes = e.set.bytes()
	p.used += e.bytes
	for el := p.recent.Back(); el != nil && p.used > p.limitBytes; {
		old, before := el.Value.(*entry), el.Prev()
		if old.bytes > 0 && old != e { // made, and not the one just asked for
			p.used -= old.bytes
			p.recent.Remove(el)
			delete(p.entries, old.key)
		}
		el = before
	}
}

func (s *Set) bytes() int64 {
	n := int64(len(s.Key))
	for _, b := range s.Inputs {
		n += int64(len(b))
	}
	for _, v := range s.Expected {
		n += 8 * int64(len(v))
	}
	return n
}

func (p *Pool) make(ctx context.Context, t *harness.Task, size harness.Size, spec Spec, key string) (*Set, error) {
	extents, err := task.Shapes(t, size)
	if err != nil {
		return nil, err
	}
	raw, values, err := Generate(extents, spec)
	if err != nil {
		return nil, err
	}
	s := &Set{Key: key, Size: size, Distribution: spec.Distribution, Inputs: raw, Expected: make([][]float64, len(extents)), Tolerances: make([]Tolerance, len(extents))}
	if s.Distribution == Plain {
		s.Distribution = PlainName(t)
	}
	named := make(map[string][]float64, len(extents))
	for i, e := range extents {
		if values[i] != nil {
			named[e.Name] = values[i]
		}
	}
	expected, err := p.oracle(ctx, t, size, named, fmt.Sprintf("drawn/%d %q %d %t", generatorVersion, spec.Distribution, spec.Seed, spec.Sparse))
	if err != nil {
		return nil, fmt.Errorf("expected values of %s at %s: %w", t.Name, size, err)
	}
	scales := make([]float64, len(extents))
	for i, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		want, ok := expected[e.Name]
		if !ok || int64(len(want)) != e.Elements {
			return nil, fmt.Errorf("expected values of %s at %s: the reference gives %d elements for %s, want %d", t.Name, size, len(want), e.Name, e.Elements)
		}
		Overflow(want, e.DType)
		s.Expected[i], scales[i] = want, RMS(want)
	}
	plain := scales
	if spec == ScaleSpec {
		p.keepScales(t, size, scales)
	} else if plain, err = p.plainScales(ctx, t, size); err != nil {
		return nil, err
	}
	for i, e := range extents {
		if e.Role != harness.RoleIn {
			s.Tolerances[i] = ToleranceFor(t.Eval, e.DType, scales[i], plain[i])
		}
	}
	return s, nil
}

// ScaleSpec is the set whose outputs are the scale that a task's atol is written for. It is also the first one that the search
// stages time with.
var ScaleSpec = Spec{Distribution: Plain}

// plainScales returns the output scales of ScaleSpec's set at a size.
func (p *Pool) plainScales(ctx context.Context, t *harness.Task, size harness.Size) ([]float64, error) {
	p.mu.Lock()
	scales, ok := p.scales[t.Digest+"|"+size.String()]
	p.mu.Unlock()
	if ok {
		return scales, nil
	}
	if _, err := p.Get(ctx, t, size, ScaleSpec, 0); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scales[t.Digest+"|"+size.String()], nil
}

func (p *Pool) keepScales(t *harness.Task, size harness.Size, scales []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.scales) > 4096 { // hidden sizes of a long night
		clear(p.scales)
	}
	p.scales[t.Digest+"|"+size.String()] = scales
}
