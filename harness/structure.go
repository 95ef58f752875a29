package harness

import "ridgepoint/configs/expr"

// Structure is a kernel source with macros for its tunable parameters, its launch plan and its own parameter space, as a
// structure file declares them. Parameters stay as written; the scheduler builds the optimizer's space from them.
type Structure struct {
	Name        string                `json:"name"`      // file name without its extension
	Direction   string                `json:"direction"` // lineage of ideas; the name when the header has none
	Target      Target                `json:"target"`
	Source      string                `json:"source"` // the whole file, header included
	Launches    []Launch              `json:"launches"`
	Workspace   []Buffer              `json:"workspace,omitempty"`
	TensorMaps  []TensorMap           `json:"tensor_maps,omitempty"`
	Requires    map[string]string     `json:"requires,omitempty"` // toolkit: ">=12.0"
	Params      []Param               `json:"params,omitempty"`   // in the order written
	Constraints []string              `json:"constraints,omitempty"`
	Default     map[string]expr.Value `json:"default,omitempty"`
	Digest      string                `json:"digest"` // SHA-256 of Source, hex
	Shipped     bool                  `json:"-"`      // embedded in the binary
}

// Launch is one kernel launch of a plan. Grid, block, shared bytes and cluster are expressions over parameters and dims;
// each evaluates to a positive int (shared bytes: non-negative). Grid and Block have one to three entries. On the cpu
// target all four are absent.
type Launch struct {
	Kernel      string   `json:"kernel"`
	Grid        []string `json:"grid,omitempty"`
	Block       []string `json:"block,omitempty"`
	SharedBytes string   `json:"shared_bytes,omitempty"`
	Cluster     []string `json:"cluster,omitempty"`
	Cooperative bool     `json:"cooperative,omitempty"`
	Args        []string `json:"args"` // tensor, workspace, tensor map, scalar or dim names; "rows:int64" widens a dim
}

// Buffer is scratch memory of a structure. Init "none" is poisoned; "zero" is cleared inside the timed region.
type Buffer struct {
	Name  string   `json:"name"`
	Shape []string `json:"shape"`
	DType DType    `json:"dtype"`
	Init  string   `json:"init"`
}

// TensorMap is a Hopper bulk-copy descriptor that the harness encodes from this declaration.
type TensorMap struct {
	Name    string   `json:"name"`
	Tensor  string   `json:"tensor"`
	Box     []string `json:"box"` // elements per dim, innermost last, expressions over parameters
	Swizzle string   `json:"swizzle,omitempty"`
}

// Param declares one tunable parameter. Exactly one of Values, (Min, Max) and Type bool is used.
type Param struct {
	Name   string       `json:"name"`
	Type   string       `json:"type"` // int, float, string (categorical) or bool
	Values []expr.Value `json:"values,omitempty"`
	Min    *expr.Value  `json:"min,omitempty"`
	Max    *expr.Value  `json:"max,omitempty"`
	Step   *expr.Value  `json:"step,omitempty"`
	Log    bool         `json:"log,omitempty"`    // a geometric range: Min, Min*2, ... Max, or sampled in log scale
	When   string       `json:"when,omitempty"`   // expression over other parameters; false: the parameter is at its default
	Option string       `json:"option,omitempty"` // a build option instead of a -D macro: maxrregcount, ...
}
