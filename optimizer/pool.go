package optimizer

import (
	"encoding/binary"
	"math/rand/v2"
)

// Pool numbers configurations of a space, so that strategies work on ids and rows. Of an enumerated space every
// configuration has its id from the start, in tree order; of a larger one, ids are given as configurations are met. It is
// not safe for concurrent use.
type Pool struct {
	space *Space
	walk  *walker
	rows  []uint16         // of a sampled space: met rows
	ids   map[string]int32 // of a sampled space
	try   Row
}

// NewPool returns a pool of the space: for an enumerated space with every id, else empty.
func (s *Space) NewPool() *Pool {
	p := &Pool{space: s, walk: s.walker(), try: make(Row, s.Dims())}
	if !s.Enumerated() {
		p.ids = map[string]int32{}
	}
	return p
}

// Space returns the pool's space.
func (p *Pool) Space() *Space { return p.space }

// Len returns how many ids exist: 0 to Len()-1.
func (p *Pool) Len() int {
	if p.ids == nil {
		return int(p.space.size)
	}
	return len(p.rows) / p.space.Dims()
}

// Row returns the row of an id. The caller must not change it.
func (p *Pool) Row(id int) Row {
	d := p.space.Dims()
	if p.ids == nil {
		return p.space.rows[id*d : (id+1)*d : (id+1)*d]
	}
	return p.rows[id*d : (id+1)*d : (id+1)*d]
}

// ID returns the id of a row, and false when the row is not a feasible, canonical configuration.
func (p *Pool) ID(row Row) (int, bool) {
	if p.ids == nil {
		return p.space.find(row)
	}
	if id, ok := p.ids[rowKey(row)]; ok {
		return int(id), true
	}
	if !p.space.feasible(p.walk, row) {
		return 0, false
	}
	return p.add(row), true
}

func (p *Pool) add(row Row) int {
	key := rowKey(row)
	if id, ok := p.ids[key]; ok {
		return int(id)
	}
	id := p.Len()
	p.ids[key] = int32(id)
	p.rows = append(p.rows, row...)
	return id
}

// Draw returns the id of a uniformly drawn feasible configuration.
func (p *Pool) Draw(rng *rand.Rand) int {
	if p.ids == nil {
		return rng.IntN(p.Len())
	}
	return p.add(p.space.counter.draw(rng))
}

// Neighbours appends to dst the ids of the feasible configurations that differ from id in one parameter, with parameters that
// become inactive set to their defaults, and returns it.
func (p *Pool) Neighbours(id int, dst []int) []int {
	for i := range p.space.names {
		dst = p.along(id, i, 0, len(p.space.values[i])-1, dst)
	}
	return dst
}

// Adjacent appends to dst the ids of the neighbours whose one difference is a step to the next or previous value, or, for a
// categorical parameter, to any value.
func (p *Pool) Adjacent(id int, dst []int) []int {
	for i := range p.space.names {
		at, last := int(p.Row(id)[i]), len(p.space.values[i])-1
		if p.space.Ordered(i) {
			dst = p.along(id, i, max(0, at-1), min(last, at+1), dst)
		} else {
			dst = p.along(id, i, 0, last, dst)
		}
	}
	return dst
}

func (p *Pool) along(id, param, from, to int, dst []int) []int {
	at := int(p.Row(id)[param])
	for k := from; k <= to; k++ {
		if k == at {
			continue
		}
		copy(p.try, p.Row(id))
		p.try[param] = uint16(k)
		if !p.space.canonicalize(p.walk, p.try) {
			continue
		}
		if n, ok := p.ID(p.try); ok && n != id {
			dst = append(dst, n)
		}
	}
	return dst
}

// Ordered reports whether parameter i has ordered numeric values.
func (s *Space) Ordered(i int) bool {
	_, numeric := s.values[i][0].AsFloat()
	return numeric
}

func rowKey(row Row) string {
	var buf [64]byte
	b := buf[:0]
	for _, k := range row {
		b = binary.LittleEndian.AppendUint16(b, k)
	}
	return string(b)
}
