package optimizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer/formula"
)

// Declaration is what a space is made from. It marshals to the canonical form that Space.Digest hashes.
type Declaration struct {
	Params      []Param               `json:"params"`
	Constraints []string              `json:"constraints,omitempty"`
	Default     map[string]expr.Value `json:"default,omitempty"` // the first value of a parameter that it does not name
	Fixed       map[string]expr.Value `json:"fixed,omitempty"`   // constants that constraints and conditions may use
	// Cases are sets of constants, such as the dims of each scored size: a constraint that uses them must hold in every case.
	// All cases have the same names.
	Cases []map[string]expr.Value `json:"cases,omitempty"`
	// Threads is an expression for the threads of a block, when the caller knows it. It changes no feasibility.
	Threads string `json:"threads,omitempty"`
}

// Row is a configuration as one value index for each parameter, in declared order.
type Row = []uint16

// Space is a finite set of configurations: parameters, conditions and constraints. It is immutable after New and safe for
// concurrent use. Spaces of at most MaxEnumerated configurations are held enumerated; larger ones are sampled.
type Space struct {
	declaration Declaration
	digest      string
	names       []string
	values      [][]expr.Value
	kinds       []expr.Kind
	defaults    Row
	index       []map[expr.Value]uint16
	order       []int                // parameters as the search tree binds them
	place       []int                // inverse of order
	when        []*formula.Formula   // by parameter; nil: always active
	checks      [][]*formula.Formula // by depth of the tree: constraints whose last name is bound there
	scopes      []*formula.Scope     // one for each case
	threads     *formula.Formula     // of the declaration; nil: unknown
	listed      bool                 // the feasible set is a list, not what the constraints allow
	size        float64
	rows        []uint16 // size*D indices in tree order when enumerated
	counter     *counter // draws from a space that is too large to hold; nil when enumerated
}

// MaxEnumerated is how many configurations are held in memory (two bytes a parameter each).
const MaxEnumerated = 2_000_000

// New builds the space of a declaration. It is an error when a name is unknown, a value has the wrong type, a constraint
// cannot be evaluated for a configuration that the earlier constraints allow, or no configuration is feasible.
func New(d Declaration) (*Space, error) {
	s := &Space{declaration: d}
	if err := s.declareParams(); err != nil {
		return nil, err
	}
	if err := s.declareScopes(); err != nil {
		return nil, err
	}
	if err := s.orderParams(); err != nil {
		return nil, err
	}
	if err := s.declareConstraints(); err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("space: %w", err)
	}
	sum := sha256.Sum256(append([]byte("space.v1\n"), canonical...))
	s.digest = hex.EncodeToString(sum[:])
	return s, s.populate()
}

func (s *Space) declareParams() error {
	if len(s.declaration.Params) == 0 {
		return fmt.Errorf("space: has no parameters: nothing to search")
	}
	for i := range s.declaration.Params {
		p := &s.declaration.Params[i]
		values, kind, err := p.expand()
		if err != nil {
			return err
		}
		index := make(map[expr.Value]uint16, len(values))
		for j, v := range values {
			index[v] = uint16(j)
		}
		s.names = append(s.names, p.Name)
		s.values = append(s.values, values)
		s.kinds = append(s.kinds, kind)
		s.index = append(s.index, index)
		s.defaults = append(s.defaults, 0)
	}
	for _, name := range sortedNames(s.declaration.Default) {
		i := s.Index(name)
		if i < 0 {
			return fmt.Errorf("default: %q is no parameter; known: %v", name, s.names)
		}
		v := s.declaration.Default[name]
		k, ok := s.valueIndex(i, v)
		if !ok {
			return fmt.Errorf("default: %s = %s is none of the parameter's values", name, v)
		}
		s.defaults[i] = k
	}
	return nil
}

// declareScopes makes one scope for each case; without cases, one.
func (s *Space) declareScopes() error {
	variables := make([]formula.Variable, len(s.names))
	for i := range variables {
		variables[i] = formula.Variable{Name: s.names[i], Kind: s.kinds[i]}
	}
	cases := s.declaration.Cases
	if len(cases) == 0 {
		cases = []map[string]expr.Value{nil}
	}
	for _, c := range cases {
		constants := make(map[string]expr.Value, len(s.declaration.Fixed)+len(c))
		for name, v := range s.declaration.Fixed {
			constants[name] = v
		}
		for name, v := range c {
			if _, clash := constants[name]; clash {
				return fmt.Errorf("space: %q is both fixed and given by the cases: keep one", name)
			}
			constants[name] = v
		}
		scope, err := formula.NewScope(variables, constants)
		if err != nil {
			return fmt.Errorf("space: %w", err)
		}
		s.scopes = append(s.scopes, scope)
	}
	return nil
}

// orderParams compiles the conditions and orders the parameters so that each comes after those that its condition names.
func (s *Space) orderParams() error {
	n := len(s.names)
	s.when = make([]*formula.Formula, n)
	for i, p := range s.declaration.Params {
		if p.When == "" {
			continue
		}
		f, err := s.scopes[0].Compile(p.When)
		if err != nil {
			return fmt.Errorf("parameter %q: when: %w", p.Name, err)
		}
		s.when[i] = f
	}
	s.place = make([]int, n)
	bound := make([]bool, n)
	for len(s.order) < n {
		next := -1
		for i := 0; i < n && next < 0; i++ {
			if !bound[i] && s.conditionBound(i, bound) {
				next = i
			}
		}
		if next < 0 {
			return fmt.Errorf("space: the `when` conditions depend on each other in a circle: break it")
		}
		bound[next] = true
		s.place[next] = len(s.order)
		s.order = append(s.order, next)
	}
	return nil
}

func (s *Space) conditionBound(i int, bound []bool) bool {
	if s.when[i] == nil {
		return true
	}
	for _, slot := range s.when[i].Slots() {
		if !bound[slot] {
			return false
		}
	}
	return true
}

// declareConstraints compiles the constraints, in each case when they use its names, and puts each at the depth of the tree
// where its last name is bound.
func (s *Space) declareConstraints() error {
	s.checks = make([][]*formula.Formula, len(s.names)+1)
	if t := s.declaration.Threads; t != "" {
		f, err := s.scopes[0].Compile(t)
		if err != nil {
			return fmt.Errorf("threads: %w", err)
		}
		s.threads = f
	}
	for _, source := range s.declaration.Constraints {
		for i, scope := range s.scopes {
			f, err := scope.Compile(source)
			if err != nil {
				return fmt.Errorf("constraint: %w", err)
			}
			if i > 0 && !f.Uses(s.declaration.Cases[0]) {
				break
			}
			depth := 0
			for _, slot := range f.Slots() {
				depth = max(depth, s.place[slot]+1)
			}
			s.checks[depth] = append(s.checks[depth], f)
		}
	}
	return nil
}

// Digest identifies the declared space: SHA-256 in hex over parameters, constraints, defaults and constants.
func (s *Space) Digest() string { return s.digest }

// Declaration returns what the space was made from.
func (s *Space) Declaration() Declaration { return s.declaration }

// Dims returns the number of parameters.
func (s *Space) Dims() int { return len(s.names) }

// Names returns the parameters' names in declared order. The caller must not change it.
func (s *Space) Names() []string { return s.names }

// Values returns the values of parameter i in declared order. The caller must not change it.
func (s *Space) Values(i int) []expr.Value { return s.values[i] }

// Kind returns the kind of parameter i.
func (s *Space) Kind(i int) expr.Kind { return s.kinds[i] }

// Index returns the position of the named parameter, or -1.
func (s *Space) Index(name string) int {
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

// Size returns how many configurations are feasible: exact up to 2^53.
func (s *Space) Size() float64 { return s.size }

// Enumerated reports whether all configurations are held.
func (s *Space) Enumerated() bool { return s.counter == nil }

func (s *Space) valueIndex(param int, v expr.Value) (uint16, bool) {
	if k, ok := s.index[param][v]; ok {
		return k, true
	}
	for k, w := range s.values[param] {
		if v.Equal(w) {
			return uint16(k), true
		}
	}
	return 0, false
}

func sortedNames(m map[string]expr.Value) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Scope returns the names that formulas over the space may use (those of the first case).
func (s *Space) Scope() *formula.Scope { return s.scopes[0] }

// Operands returns the quantities of two or more parameters that the constraints compare, and the threads of a block when
// they are declared.
func (s *Space) Operands() []*formula.Formula {
	var out []*formula.Formula
	for _, source := range s.declaration.Constraints {
		f, err := s.scopes[0].Operands(source)
		if err != nil {
			panic(fmt.Sprintf("optimizer: constraint %q compiled once and not again: %v", source, err))
		}
		out = append(out, f...)
	}
	if s.threads != nil && len(s.threads.Slots()) > 1 {
		out = append(out, s.threads)
	}
	return out
}

// Threads returns the formula for the threads of a block, or nil when it is not declared.
func (s *Space) Threads() *formula.Formula { return s.threads }
