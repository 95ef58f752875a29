package blobs

import (
	"container/list"
	"sync"
)

// Cache keeps decoded blobs by digest, the least recently used ones dropped first. Its methods may be called concurrently.
type Cache[T any] struct {
	limit int

	mu      sync.Mutex
	order   *list.List // of *entry[T], most recent first
	entries map[string]*list.Element
}

type entry[T any] struct {
	digest string
	value  T
}

// NewCache returns a cache of at most limit values.
func NewCache[T any](limit int) *Cache[T] {
	return &Cache[T]{limit: limit, order: list.New(), entries: map[string]*list.Element{}}
}

// Get returns the value under digest.
func (c *Cache[T]) Get(digest string) (v T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[digest]
	if !ok {
		return v, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[T]).value, true
}

// Put keeps v under digest and returns the digests that had to go for it.
func (c *Cache[T]) Put(digest string, v T) (dropped []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[digest]; ok {
		e.Value.(*entry[T]).value = v
		c.order.MoveToFront(e)
		return nil
	}
	c.entries[digest] = c.order.PushFront(&entry[T]{digest, v})
	for c.order.Len() > c.limit {
		last := c.order.Back()
		d := last.Value.(*entry[T]).digest
		c.order.Remove(last)
		delete(c.entries, d)
		dropped = append(dropped, d)
	}
	return dropped
}

// Digests returns what is cached, most recently used first.
func (c *Cache[T]) Digests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, c.order.Len())
	for e := c.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(*entry[T]).digest)
	}
	return out
}
