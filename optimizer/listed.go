package optimizer

import (
	"fmt"
	"sort"

	"ridgepoint/configs/expr"
)

// NewListed returns the space of exactly the listed configurations (values in declared order), for a set that no constraints
// describe, such as a recording with holes. The declaration's constraints must hold in each; conditions are not allowed.
func NewListed(d Declaration, rows [][]expr.Value) (*Space, error) {
	for _, p := range d.Params {
		if p.When != "" {
			return nil, fmt.Errorf("space: parameter %q has a `when`, which a list of configurations does not need: leave it out", p.Name)
		}
	}
	s, err := New(d)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("space: the list of configurations is empty")
	}
	list := make([]Row, len(rows))
	for i, values := range rows {
		if list[i], err = s.rowOf(values); err != nil {
			return nil, fmt.Errorf("configuration %d: %w", i+1, err)
		}
	}
	sort.Slice(list, func(i, j int) bool { return s.compare(list[i], list[j]) < 0 })
	s.rows = s.rows[:0]
	for i, row := range list {
		if i > 0 && s.compare(list[i-1], row) == 0 {
			return nil, fmt.Errorf("space: configuration %s is listed twice", describe(s.Configuration(row)))
		}
		s.rows = append(s.rows, row...)
	}
	s.size, s.counter, s.listed = float64(len(list)), nil, true
	return s, nil
}

func (s *Space) rowOf(values []expr.Value) (Row, error) {
	if len(values) != s.Dims() {
		return nil, fmt.Errorf("has %d values, want %d", len(values), s.Dims())
	}
	row := make(Row, len(values))
	for i, v := range values {
		k, ok := s.valueIndex(i, v)
		if !ok {
			return nil, fmt.Errorf("%s = %s is none of the parameter's values", s.names[i], v)
		}
		row[i] = k
	}
	return row, nil
}
