package task

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// Limits of one launch on any CUDA device of compute capability 5.0 and later (CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability"); HIP's are the same or wider.
const (
	maxThreads     = 1024
	maxBlockZ      = 64
	maxGridX       = math.MaxInt32
	maxGridYZ      = 65535
	maxSharedBytes = 227 << 10
	maxCluster     = 16
)

// Launches is a structure's launch plan at one size and configuration, in numbers.
type Launches struct {
	Launches  []Launch
	Tensors   []Extent // the task's, in its order
	Workspace []Extent // the structure's, in its order; Init is none or zero
}

// Launch is one launch in numbers. On the cpu target Grid, Block and Cluster are zero.
type Launch struct {
	Kernel      string
	Grid        [3]int64
	Block       [3]int64
	SharedBytes int64
	Cluster     [3]int64 // zero: none
	Cooperative bool
	Args        []Arg
}

// Threads returns the threads of a block.
func (l Launch) Threads() int64 { return l.Block[0] * l.Block[1] * l.Block[2] }

// ArgKind says what an argument is.
type ArgKind uint8

// The kinds of arguments. The zero kind is invalid.
const (
	ArgInvalid   ArgKind = iota
	ArgTensor            // pointer to the task's tensor Index
	ArgWorkspace         // pointer to the workspace Index
	ArgTensorMap         // the tensor map Index, passed by value (128 bytes)
	ArgInt               // a dim: Int, as DType int32 or int64
	ArgScalar            // Scalar, converted to DType
)

// Arg is one kernel argument.
type Arg struct {
	Kind   ArgKind
	Name   string
	Index  int // into the task's tensors, the structure's workspaces or its tensor maps
	DType  harness.DType
	Int    int64
	Scalar float64
}

// Plan evaluates a structure's launches at a size under a complete configuration. What no device could launch, an extent
// that is not a positive int, and a tensor of over 2^31-1 elements whose dims are passed as int32 are errors.
func Plan(t *harness.Task, s *harness.Structure, config harness.Configuration, size harness.Size) (*Launches, error) {
	tensors, err := Shapes(t, size)
	if err != nil {
		return nil, err
	}
	env := environment(size, config)
	p := &Launches{Tensors: tensors}
	for _, w := range s.Workspace {
		shape, err := evalInts(w.Shape, env, 1)
		if err != nil {
			return nil, fmt.Errorf("workspace %s: %w", w.Name, err)
		}
		e := Extent{Name: w.Name, Shape: shape, Strides: contiguous(shape), DType: w.DType, Init: w.Init, AlignmentBytes: defaultAlignmentBytes}
		if err := e.measure(); err != nil {
			return nil, fmt.Errorf("workspace %w", err)
		}
		p.Workspace = append(p.Workspace, e)
	}
	for _, l := range s.Launches {
		var out Launch
		if s.Target == harness.TargetCPU {
			out.Kernel = l.Kernel
		} else if out, err = planLaunch(l, env); err != nil {
			return nil, err
		}
		if out.Args, err = p.args(t, s, l, size); err != nil {
			return nil, err
		}
		p.Launches = append(p.Launches, out)
	}
	return p, nil
}

// planLaunch evaluates one launch without its arguments.
func planLaunch(l harness.Launch, env expr.Env) (Launch, error) {
	out := Launch{Kernel: l.Kernel, Cooperative: l.Cooperative}
	for _, part := range []struct {
		name string
		list []string
		to   *[3]int64
	}{{"grid", l.Grid, &out.Grid}, {"block", l.Block, &out.Block}, {"cluster", l.Cluster, &out.Cluster}} {
		values, err := evalInts(part.list, env, 1)
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", part.name, l.Kernel, err)
		}
		if len(values) > 0 {
			*part.to = [3]int64{1, 1, 1}
			copy(part.to[:], values)
		}
	}
	if l.SharedBytes != "" {
		n, err := evalInt(l.SharedBytes, env, 0)
		if err != nil {
			return out, fmt.Errorf("shared_bytes of %s: %w", l.Kernel, err)
		}
		out.SharedBytes = n
	}
	return out, out.check()
}

func (l Launch) check() error {
	threads := float64(l.Block[0]) * float64(l.Block[1]) * float64(l.Block[2])
	cluster := float64(l.Cluster[0]) * float64(l.Cluster[1]) * float64(l.Cluster[2])
	switch {
	case threads > maxThreads || l.Block[2] > maxBlockZ:
		return fmt.Errorf("block of %s is %v: over %d threads, or over %d in z", l.Kernel, l.Block, maxThreads, maxBlockZ)
	case l.Grid[0] > maxGridX || l.Grid[1] > maxGridYZ || l.Grid[2] > maxGridYZ:
		return fmt.Errorf("grid of %s is %v: over %d in x, or over %d in y or z", l.Kernel, l.Grid, maxGridX, maxGridYZ)
	case l.SharedBytes > maxSharedBytes:
		return fmt.Errorf("shared_bytes of %s is %d: over %d", l.Kernel, l.SharedBytes, maxSharedBytes)
	case cluster > maxCluster:
		return fmt.Errorf("cluster of %s is %v: over %d blocks", l.Kernel, l.Cluster, maxCluster)
	}
	return nil
}

func (p *Launches) args(t *harness.Task, s *harness.Structure, l harness.Launch, size harness.Size) ([]Arg, error) {
	var out []Arg
	for _, written := range l.Args {
		name, width, _ := strings.Cut(written, ":")
		arg := Arg{Name: name}
		isNamed := func(e Extent) bool { return e.Name == name }
		if i := slices.IndexFunc(p.Tensors, isNamed); i >= 0 {
			arg.Kind, arg.Index, arg.DType = ArgTensor, i, p.Tensors[i].DType
		} else if i := slices.IndexFunc(p.Workspace, isNamed); i >= 0 {
			arg.Kind, arg.Index, arg.DType = ArgWorkspace, i, p.Workspace[i].DType
		} else if i := slices.IndexFunc(s.TensorMaps, func(m harness.TensorMap) bool { return m.Name == name }); i >= 0 {
			arg.Kind, arg.Index = ArgTensorMap, i
		} else if i := slices.IndexFunc(t.Scalars, func(x harness.Scalar) bool { return x.Name == name }); i >= 0 {
			arg.Kind, arg.Scalar, arg.DType = ArgScalar, t.Scalars[i].Value, t.Scalars[i].DType
		} else if v, ok := size.Get(name); ok {
			arg.Kind, arg.Int, arg.DType = ArgInt, v, harness.Int32
			if width == "int64" {
				arg.DType = harness.Int64
			} else if big := p.over31Bits(); big != "" {
				return nil, fmt.Errorf("tensor %s has over 2^31-1 elements at size %s: pass %s as %s:int64", big, size, name, name)
			}
		} else {
			return nil, fmt.Errorf("argument %q of %s is no tensor, workspace, scalar or dim", written, l.Kernel)
		}
		out = append(out, arg)
	}
	return out, nil
}

func (p *Launches) over31Bits() string {
	for _, e := range p.Tensors {
		if e.Elements > math.MaxInt32 {
			return e.Name
		}
	}
	return ""
}

// BoxOf evaluates the box of a tensor map under a configuration, in elements, innermost last.
func BoxOf(m harness.TensorMap, config harness.Configuration, size harness.Size) ([]int64, error) {
	box, err := evalInts(m.Box, environment(size, config), 1)
	if err != nil {
		return nil, fmt.Errorf("box of tensor map %s: %w", m.Name, err)
	}
	return box, nil
}

// WorkAt evaluates a task's work at a size: FLOPs and bytes of one launch, 0 where the task does not say.
func WorkAt(t *harness.Task, size harness.Size) (flops, bytes float64, err error) {
	for _, w := range []struct {
		text string
		to   *float64
	}{{t.Work.FLOPs, &flops}, {t.Work.Bytes, &bytes}} {
		if w.text == "" {
			continue
		}
		x, err := expr.Cached(w.text)
		if err != nil {
			return 0, 0, fmt.Errorf("work: %w", err)
		}
		v, err := x.Eval(size.Env(nil))
		if err != nil {
			return 0, 0, fmt.Errorf("work: %w", err)
		}
		f, ok := v.AsFloat()
		if !ok || f < 0 {
			return 0, 0, fmt.Errorf("work: %q is %s at %s, want a number of at least 0", w.text, v, size)
		}
		*w.to = f
	}
	return flops, bytes, nil
}
