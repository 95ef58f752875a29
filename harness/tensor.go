package harness

import "fmt"

// DType is the element type of a tensor or scalar.
type DType uint8

// The element types. The zero DType is invalid.
const (
	DTypeInvalid DType = iota
	Float64
	Float32
	Float16
	BFloat16
	Float8E4M3
	Float8E5M2
	Int64
	Int32
	Int8
	UInt8
	BoolType
)

var dtypes = [...]struct {
	name      string
	sizeBytes int
	float     bool
}{
	{"invalid", 0, false}, {"float64", 8, true}, {"float32", 4, true}, {"float16", 2, true}, {"bfloat16", 2, true},
	{"float8_e4m3", 1, true}, {"float8_e5m2", 1, true}, {"int64", 8, false}, {"int32", 4, false}, {"int8", 1, false},
	{"uint8", 1, false}, {"bool", 1, false},
}

// String returns the dtype's name as a task file spells it.
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// SizeBytes returns the bytes of one element; 0 for an invalid dtype.
func (d DType) SizeBytes() int {
	if int(d) < len(dtypes) {
		return dtypes[d].sizeBytes
	}
	return 0
}

// IsFloat reports whether the dtype is a floating-point type.
func (d DType) IsFloat() bool { return int(d) < len(dtypes) && dtypes[d].float }

// ParseDType reads a dtype's name.
func ParseDType(name string) (DType, error) {
	for i, d := range dtypes {
		if i > 0 && d.name == name {
			return DType(i), nil
		}
	}
	return DTypeInvalid, fmt.Errorf("dtype %q is not known; want one of %s", name, dtypeList())
}

// MarshalText writes the dtype's name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the dtype's name.
func (d *DType) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDType(string(b))
	return err
}

func dtypeList() string {
	s := ""
	for i, d := range dtypes[1:] {
		if i > 0 {
			s += ", "
		}
		s += d.name
	}
	return s
}

// Role says how a kernel may use a tensor.
type Role uint8

// The roles. The zero Role is invalid.
const (
	RoleInvalid Role = iota
	RoleIn           // read only: hashed before and after every launch
	RoleOut          // poisoned before, compared after
	RoleInOut        // written with inputs before, compared after
)

var roleNames = [...]string{"invalid", "in", "out", "inout"}

// String returns the role's name as a task file spells it.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	for i, n := range roleNames {
		if i > 0 && n == name {
			return Role(i), nil
		}
	}
	return RoleInvalid, fmt.Errorf("role %q is not known; want in, out or inout", name)
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the role's name.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRole(string(b))
	return err
}

// Tensor declares one operand of a task. Shape entries are expressions over the task's dims; elements are contiguous in
// row-major order unless Strides (in elements, expressions too) says otherwise. Alignment is in bytes.
type Tensor struct {
	Name           string   `json:"name"`
	Shape          []string `json:"shape"`
	DType          DType    `json:"dtype"`
	Role           Role     `json:"role"`
	Init           string   `json:"init,omitempty"`    // distribution of the plain input set: normal, uniform, ...
	Strides        []string `json:"strides,omitempty"` // empty: contiguous
	AlignmentBytes int      `json:"alignment_bytes"`
}

// Scalar is a named constant argument.
type Scalar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	DType DType   `json:"dtype"`
}
