package cudaengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/device"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cubin"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/verify"
)

// Program is a loaded module.
type Program struct {
	engine    *Engine
	module    device.Module
	functions map[string]device.Function
	build     *harness.Build
	image     []byte
	kernels   map[string]cubin.Kernel // by name; nil where the image is no cubin
}

// Close unloads the module. After a hang or a sticky error there is nothing left to unload.
func (p *Program) Close() error {
	if p.engine.Lost() {
		return nil
	}
	err := p.engine.do(setupLimit, func(s *device.Session) error { return s.Unload(p.module) })
	if err != nil {
		return p.engine.stop("unload the module", err)
	}
	return nil
}

// Bind makes the buffers of one size and resolves the kernels.
func (p *Program) Bind(_ context.Context, l *verify.Layout) (verify.Bench, error) {
	b := &Bench{program: p, engine: p.engine, layout: l, prepared: map[string]*prepared{}}
	b.owner = b
	err := p.engine.do(setupLimit, func(s *device.Session) error { return b.bind(s) })
	if err != nil {
		return nil, errors.Join(p.engine.stop(fmt.Sprintf("bind size %s", l.Size), err), b.Close())
	}
	return b, nil
}

// function finds a kernel, checks its launch against the device's limits and lets it have its shared memory.
func (p *Program) function(s *device.Session, l *task.Launch, plan *device.Plan) (device.Function, error) {
	if p.kernels == nil {
		p.kernels = map[string]cubin.Kernel{}
		if found, err := cubin.Parse(p.image); err == nil { // the emulator's modules are not cubins
			for _, k := range found {
				p.kernels[k.Name] = k
			}
		}
	}
	f, ok := p.functions[l.Kernel]
	if !ok {
		var err error
		if f, err = s.Function(p.module, l.Kernel); err != nil {
			return 0, launchStop(fmt.Sprintf("the module has no kernel %s: name it in extern \"C\" as launch says", l.Kernel), err)
		}
		p.functions[l.Kernel] = f
	}
	if k, ok := p.kernels[l.Kernel]; ok {
		if err := cubin.Check(&k, &s.Info().Limits, plan, cuda.ArgumentBytes(l)); err != nil {
			return 0, launchStop(err.Error(), nil)
		}
	}
	info, err := s.FunctionInfo(f)
	if err != nil {
		return 0, err
	}
	if plan.SharedBytes+info.StaticSharedBytes > s.Info().Limits.SharedPerBlock {
		if err := s.AllowShared(f, plan.SharedBytes); err != nil {
			return 0, err
		}
	}
	if c := plan.Cluster; c[0]*c[1]*c[2] > 8 {
		if err := s.AllowCluster(f); err != nil {
			return 0, err
		}
	}
	return f, nil
}

func launchStop(reason string, err error) error {
	if err != nil && device.AsError(err) != nil && device.AsError(err).Sticky() {
		return err
	}
	return &verify.Stop{Fault: harness.FaultLaunch, Reason: reason, Evidence: harness.Evidence{Kind: verify.KindLaunch}}
}

// ready is one launch of a plan, ready for the driver.
type ready struct {
	function device.Function
	plan     device.Plan
	args     *device.Args
}

// launches makes the plan's launches over the given buffers.
func (b *Bench) launches(s *device.Session, buffers []placed) ([]ready, error) {
	all := make([]ready, 0, len(b.layout.Plan.Launches))
	for i := range b.layout.Plan.Launches {
		l := &b.layout.Plan.Launches[i]
		r := ready{plan: *cuda.PlanOf(l), args: new(device.Args)}
		for _, a := range l.Args {
			if err := b.argument(s, r.args, a, buffers); err != nil {
				return nil, err
			}
		}
		f, err := b.program.function(s, l, &r.plan)
		if err != nil {
			return nil, err
		}
		r.function = f
		all = append(all, r)
	}
	return all, nil
}

// argument appends one argument.
func (b *Bench) argument(s *device.Session, args *device.Args, a task.Arg, buffers []placed) error {
	switch a.Kind {
	case task.ArgTensor:
		args.Ptr(buffers[a.Index].at)
	case task.ArgWorkspace:
		args.Ptr(buffers[len(b.layout.Plan.Tensors)+a.Index].at)
	case task.ArgInt:
		if a.DType == harness.Int64 {
			args.Int64(a.Int)
		} else {
			args.Int32(int32(a.Int))
		}
	case task.ArgScalar:
		var raw [8]byte
		if err := codec.Encode(raw[:a.DType.SizeBytes()], []float64{a.Scalar}, a.DType); err != nil {
			return err
		}
		args.Raw(binary.LittleEndian.Uint64(raw[:]))
	case task.ArgTensorMap:
		m, err := b.tensorMap(s, a.Index, buffers)
		if err != nil {
			return err
		}
		args.Map(m)
	default:
		return fmt.Errorf("argument %s has the unknown kind %d", a.Name, a.Kind)
	}
	return nil
}

func (b *Bench) tensorMap(s *device.Session, index int, buffers []placed) (device.TensorMap, error) {
	decl := b.layout.Source.TensorMaps[index]
	box, err := task.BoxOf(decl, b.layout.Config, b.layout.Size)
	if err != nil {
		return device.TensorMap{}, launchStop(fmt.Sprintf("tensor map %s: %v", decl.Name, err), nil)
	}
	for i, x := range b.layout.Plan.Tensors {
		if x.Name != decl.Tensor {
			continue
		}
		m, err := s.EncodeTensorMap(device.TensorMapSpec{Base: buffers[i].at, DType: x.DType, Shape: x.Shape, Box: box, Swizzle: decl.Swizzle})
		if err != nil {
			return m, launchStop(fmt.Sprintf("tensor map %s: %v", decl.Name, err), err)
		}
		return m, nil
	}
	return device.TensorMap{}, fmt.Errorf("tensor map %s: the task has no tensor %s", decl.Name, decl.Tensor)
}

// clear queues the clearing of the workspaces that the plan wants zero, within the timed region.
func (b *Bench) clear(s *device.Session, buffers []placed) error {
	first := len(b.layout.Plan.Tensors)
	var err error
	for i, w := range b.layout.Plan.Workspace {
		if w.Init == "zero" {
			err = errors.Join(err, s.Memset(b.engine.stream, buffers[first+i].at, 0, buffers[first+i].bytes))
		}
	}
	return err
}

// run queues the plan once.
func (b *Bench) run(s *device.Session, all []ready, buffers []placed) error {
	if err := b.clear(s, buffers); err != nil {
		return err
	}
	for i := range all {
		if err := s.Launch(b.engine.stream, all[i].function, &all[i].plan, all[i].args); err != nil {
			return err
		}
	}
	return nil
}

// limitOf gives a launch that states no limit one that no honest kernel reaches.
func limitOf(d time.Duration) time.Duration {
	if d <= 0 {
		return 10 * time.Second
	}
	return d
}
