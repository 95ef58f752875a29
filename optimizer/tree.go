package optimizer

import (
	"fmt"
	"sort"

	"ridgepoint/optimizer/formula"
)

// walker binds parameters one after another in tree order and checks each constraint as soon as its last name is bound.
type walker struct {
	space *Space
	frame *formula.Frame
	row   Row
}

func (s *Space) walker() *walker {
	return &walker{space: s, frame: s.scopes[0].NewFrame(), row: make(Row, len(s.names))}
}

// bind gives the parameter at a depth the value index k.
func (w *walker) bind(depth int, k uint16) {
	p := w.space.order[depth]
	w.row[p] = k
	w.frame.Set(p, w.space.values[p][k])
}

// active reports whether the parameter at a depth is active under what is bound above it.
func (w *walker) active(depth int) (bool, error) {
	f := w.space.when[w.space.order[depth]]
	if f == nil {
		return true, nil
	}
	ok, err := f.Truth(w.frame)
	if err != nil {
		return false, fmt.Errorf("when: %w (at %s)", err, w.describe(depth))
	}
	return ok, nil
}

// allowed reports whether the constraints that are complete at a depth (parameters bound) hold.
func (w *walker) allowed(depth int) (bool, error) {
	for _, f := range w.space.checks[depth] {
		ok, err := f.Truth(w.frame)
		if err != nil {
			return false, fmt.Errorf("constraint: %w (at %s); guard it, as in `x != 0 and ...`, or put a constraint before it", err, w.describe(depth))
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// choices is the range of value indices for the parameter at a depth: its default alone when inactive.
func (w *walker) choices(depth int) (from, to int, err error) {
	p := w.space.order[depth]
	ok, err := w.active(depth)
	if err != nil {
		return 0, 0, err
	}
	if !ok {
		d := int(w.space.defaults[p])
		return d, d + 1, nil
	}
	return 0, len(w.space.values[p]), nil
}

// each visits every feasible row below a depth in tree order.
func (w *walker) each(depth int, visit func(Row)) error {
	if depth == len(w.row) {
		visit(w.row)
		return nil
	}
	from, to, err := w.choices(depth)
	if err != nil {
		return err
	}
	for k := from; k < to; k++ {
		w.bind(depth, uint16(k))
		ok, err := w.allowed(depth + 1)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := w.each(depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) describe(depth int) string {
	out := ""
	for d := range depth {
		p := w.space.order[d]
		if d > 0 {
			out += " "
		}
		out += w.space.names[p] + "=" + w.space.values[p][w.row[p]].String()
	}
	return out
}

// populate counts the space and holds it when it fits.
func (s *Space) populate() error {
	w := s.walker()
	if ok, err := w.allowed(0); err != nil {
		return err
	} else if !ok {
		return fmt.Errorf("space: a constraint without parameters does not hold: no configuration is feasible")
	}
	c, err := newCounter(s)
	if err != nil {
		return err
	}
	s.size = c.total
	if s.size == 0 {
		return fmt.Errorf("space: the constraints leave no feasible configuration of %d parameters: relax them", len(s.names))
	}
	if s.size > MaxEnumerated {
		s.counter = c
		return nil
	}
	s.rows = make([]uint16, 0, int(s.size)*len(s.names))
	return w.each(0, func(r Row) { s.rows = append(s.rows, r...) })
}

// feasible reports whether a row is canonical and holds every constraint.
func (s *Space) feasible(w *walker, row Row) bool {
	for d, p := range s.order {
		from, to, err := w.choices(d)
		if err != nil || int(row[p]) < from || int(row[p]) >= to {
			return false
		}
		w.bind(d, row[p])
		if ok, err := w.allowed(d + 1); err != nil || !ok {
			return false
		}
	}
	return true
}

// canonicalize sets inactive parameters to their defaults and reports whether the result is feasible.
func (s *Space) canonicalize(w *walker, row Row) bool {
	for d, p := range s.order {
		active, err := w.active(d)
		if err != nil {
			return false
		}
		if !active {
			row[p] = s.defaults[p]
		}
		w.bind(d, row[p])
		if ok, err := w.allowed(d + 1); err != nil || !ok {
			return false
		}
	}
	if s.listed {
		_, ok := s.find(row)
		return ok
	}
	return true
}

// find returns the position of a row among the enumerated ones.
func (s *Space) find(row Row) (int, bool) {
	n, dims := int(s.size), len(s.names)
	at := sort.Search(n, func(i int) bool { return s.compare(s.rows[i*dims:(i+1)*dims], row) >= 0 })
	return at, at < n && s.compare(s.rows[at*dims:(at+1)*dims], row) == 0
}

func (s *Space) compare(a, b Row) int {
	for _, p := range s.order {
		if a[p] != b[p] {
			return int(a[p]) - int(b[p])
		}
	}
	return 0
}

// Configuration returns the named values of a row.
func (s *Space) Configuration(row Row) Configuration {
	c := make(Configuration, len(row))
	for i, k := range row {
		c[s.names[i]] = s.values[i][k]
	}
	return c
}

// Row returns the canonical row of a configuration: inactive parameters at their defaults. It is an error when a name is
// missing or unknown, a value is none of the declared, or a constraint does not hold.
func (s *Space) Row(c Configuration) (Row, error) {
	row := append(Row(nil), s.defaults...)
	for _, name := range sortedNames(c) {
		i := s.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("configuration: %q is no parameter of this space; known: %v", name, s.names)
		}
		k, ok := s.valueIndex(i, c[name])
		if !ok {
			return nil, fmt.Errorf("configuration: %s = %s is none of the parameter's values", name, c[name])
		}
		row[i] = k
	}
	if len(c) < len(row) {
		for _, name := range s.names {
			if _, ok := c[name]; !ok && s.when[s.Index(name)] == nil {
				return nil, fmt.Errorf("configuration: %q has no value", name)
			}
		}
	}
	if !s.canonicalize(s.walker(), row) {
		return nil, fmt.Errorf("configuration %s: %w", describe(c), ErrInfeasible)
	}
	return row, nil
}

// Canonical returns the configuration with inactive parameters at their defaults and values as declared.
func (s *Space) Canonical(c Configuration) (Configuration, error) {
	row, err := s.Row(c)
	if err != nil {
		return nil, err
	}
	return s.Configuration(row), nil
}

// Default returns the default configuration, and false when the constraints forbid it.
func (s *Space) Default() (Configuration, bool) {
	row := append(Row(nil), s.defaults...)
	if !s.canonicalize(s.walker(), row) {
		return nil, false
	}
	return s.Configuration(row), true
}

// Project carries a configuration of another space over: parameters of the same name and a value that exists here keep it, the
// rest are at their defaults. ok is false when fewer than half of the parameters carry over or the result is not feasible.
func (s *Space) Project(c Configuration) (out Configuration, ok bool) {
	row := append(Row(nil), s.defaults...)
	kept := 0
	for i, name := range s.names {
		if v, has := c[name]; has {
			if k, known := s.valueIndex(i, v); known {
				row[i] = k
				kept++
			}
		}
	}
	if 2*kept < len(row) || !s.canonicalize(s.walker(), row) {
		return nil, false
	}
	return s.Configuration(row), true
}

func describe(c Configuration) string {
	out := ""
	for i, name := range sortedNames(c) {
		if i > 0 {
			out += " "
		}
		out += name + "=" + c[name].String()
	}
	return out
}
