package reference

import (
	"context"
	"sync"

	"ridgepoint/harness"
)

// Oracle answers for any task, keeping its prepared references. It is safe for concurrent use.
type Oracle struct {
	cache *Cache

	mu       sync.Mutex
	prepared map[string]*Reference // by task digest and file
}

// NewOracle returns an oracle over a cache, which may be nil.
func NewOracle(cache *Cache) *Oracle {
	return &Oracle{cache: cache, prepared: map[string]*Reference{}}
}

// Expected returns a task's expected outputs at a size; inputs and outputs are in row-major order. Errors are those of
// Reference.Expected.
func (o *Oracle) Expected(ctx context.Context, t *harness.Task, size harness.Size, inputs map[string][]float64) (map[string][]float64, error) {
	r, err := o.reference(t)
	if err != nil {
		return nil, err
	}
	return r.Expected(ctx, size, Inputs{Values: inputs})
}

func (o *Oracle) reference(t *harness.Task) (*Reference, error) {
	key := t.Digest + t.File
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.prepared[key]; ok {
		return r, nil
	}
	r, err := New(t, o.cache)
	if err != nil {
		return nil, err
	}
	o.prepared[key] = r
	return r, nil
}
