package device_test

import (
	"errors"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
)

// TestLaunchesWithAttributes holds the structures that a launch with clusters or a cooperative grid is told by against cuda.h's,
// as the emulated driver declares them: what it takes runs, and what a driver refuses is a refused launch.
func TestLaunchesWithAttributes(t *testing.T) {
	e, image := emulated(t)
	drv, err := device.OpenCUDA(e.Library)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	}()
	const n = 1024
	err = ctx.Do(func(s *device.Session) error {
		mod, err := s.Load(image)
		if err != nil {
			return err
		}
		vadd, err := s.Function(mod, "vadd")
		if err != nil {
			return err
		}
		var p [2]device.Ptr
		for i := range p {
			if p[i], err = s.Alloc(4 * n); err != nil {
				return err
			}
		}
		if err := s.Upload(0, p[0], floats(n, func(i int) float32 { return float32(i) })); err != nil {
			return err
		}
		for _, c := range []struct {
			name string
			plan device.Plan
			wide bool
			code int // 0: runs
		}{
			{"a cluster of two", device.Plan{Cluster: [3]int{2, 1, 1}}, false, 0},
			{"a cluster that does not divide the grid", device.Plan{Cluster: [3]int{3, 1, 1}}, false, 912},
			{"one of sixteen without leave", device.Plan{Cluster: [3]int{16, 1, 1}}, false, 912},
			{"one of sixteen with leave", device.Plan{Cluster: [3]int{16, 1, 1}}, true, 0},
			{"a cooperative grid of one block", device.Plan{Cooperative: true, Grid: [3]int{1, 1, 1}, Block: [3]int{n, 1, 1}}, false, 0},
			{"a cooperative grid of many", device.Plan{Cooperative: true}, false, 801},
			{"both", device.Plan{Cooperative: true, Cluster: [3]int{2, 1, 1}}, false, 801},
		} {
			plan := c.plan
			if plan.Grid[0] == 0 {
				plan.Grid, plan.Block = [3]int{16, 1, 1}, [3]int{64, 1, 1}
			}
			if c.wide {
				if err := s.AllowCluster(vadd); err != nil {
					return err
				}
			}
			if err := s.Memset32(0, p[1], 0x7fc00000, n); err != nil {
				return err
			}
			err := errors.Join(s.Launch(0, vadd, &plan, new(device.Args).Ptr(p[0]).Ptr(p[0]).Ptr(p[1]).Int32(n)), s.Wait(0))
			if c.code != 0 {
				if d := device.AsError(err); d == nil || d.Code != c.code || !d.Refused() {
					t.Errorf("%s: %v, want a refusal with code %d", c.name, err, c.code)
				}
				continue
			}
			out := make([]byte, 4*n)
			if err := errors.Join(err, s.Download(0, out, p[1])); err != nil || float(out, n-1) != 2*(n-1) || float(out, 0) != 0 {
				t.Errorf("%s: %v, first %v, last %v", c.name, err, float(out, 0), float(out, n-1))
			}
		}
		return errors.Join(s.Free(p[0]), s.Free(p[1]), s.Unload(mod))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTensorMaps encodes maps: the driver counts dimensions from the innermost, strides are in bytes, and what it would refuse
// is an error.
func TestTensorMaps(t *testing.T) {
	e, _ := emulated(t)
	drv, err := device.OpenCUDA(e.Library)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = ctx.Do(func(s *device.Session) error {
		at, err := s.Alloc(1 << 20)
		if err != nil {
			return err
		}
		whole := device.TensorMapSpec{Base: at, DType: harness.Float32, Shape: []int64{64, 128}, Box: []int64{8, 32}, Swizzle: "128B"}
		m, err := s.EncodeTensorMap(whole)
		if err != nil {
			return err
		}
		// As extended.h keeps them: magic, base, dims[5], strides[4], box[5] and three numbers of 32 bits.
		want := device.TensorMap{0x70616d726f736e65, uint64(at), 128, 64, 0, 0, 0, 512, 0, 0, 0, 8<<32 | 32, 0, 7 << 32, 3<<32 | 2}
		if m != want {
			t.Errorf("encoded %x, want %x", m, want)
		}
		for name, change := range map[string]func(*device.TensorMapSpec){
			"a base between 16 bytes":       func(x *device.TensorMapSpec) { x.Base = x.Base.Add(4) },
			"rows that are not 16 bytes":    func(x *device.TensorMapSpec) { x.Shape = []int64{64, 127} },
			"a box of more than 256":        func(x *device.TensorMapSpec) { x.Box = []int64{257, 32} },
			"a box wider than its swizzle":  func(x *device.TensorMapSpec) { x.Box = []int64{8, 64} },
			"a box that is not 16 bytes":    func(x *device.TensorMapSpec) { x.Box = []int64{8, 3} },
			"a box of another rank":         func(x *device.TensorMapSpec) { x.Box = []int64{8} },
			"six dimensions":                func(x *device.TensorMapSpec) { x.Shape, x.Box = make([]int64, 6), make([]int64, 6) },
			"a swizzle that does not exist": func(x *device.TensorMapSpec) { x.Swizzle = "48B" },
		} {
			wrong := whole
			change(&wrong)
			if _, err := s.EncodeTensorMap(wrong); err == nil {
				t.Errorf("%s was encoded", name)
			}
		}
		return s.Free(at)
	})
	if err != nil {
		t.Fatal(err)
	}
}
