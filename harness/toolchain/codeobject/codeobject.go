// Package codeobject reads AMD's code objects, the ELF files that hipcc and hiprtc make: which kernels are inside and what
// each uses, from the metadata note (LLVM, User Guide for AMDGPU Backend, "Code Object V3 to V5 Metadata"). It runs nothing
// and knows no limits of devices.
package codeobject

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"ridgepoint/harness"
)

// Kernel is one kernel of a code object.
type Kernel struct {
	Name              string
	VectorRegisters   int // of each lane
	ScalarRegisters   int // of a wave
	StaticSharedBytes int // of a block: the local data share
	ScratchBytes      int // private memory of each lane: spills and local arrays
	VectorSpills      int // registers
	ScalarSpills      int
	ThreadsPerBlock   int   // the most that it was compiled for
	WaveSize          int   // 32 or 64
	ArgumentSizes     []int // bytes of each argument that the source declares
}

// noteAMDGPU is NT_AMDGPU_METADATA.
const noteAMDGPU = 32

// Parse returns the kernels of a code object, sorted by name. Bundles of several code objects are not read: compile with
// --no-gpu-bundle-output.
func Parse(image []byte) ([]Kernel, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("read a code object: %w", err)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.Size > uint64(len(image)) {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("read a code object's notes: %w", err)
		}
		desc, ok := note(data)
		if !ok {
			continue
		}
		return kernels(desc)
	}
	return nil, errors.New("read a code object: it has no AMDGPU metadata")
}

// note finds the metadata in a section of notes.
func note(data []byte) ([]byte, bool) {
	for len(data) >= 12 {
		name, size, kind := int(binary.LittleEndian.Uint32(data)), int(binary.LittleEndian.Uint32(data[4:])), binary.LittleEndian.Uint32(data[8:])
		from := 12 + (name+3)/4*4
		to := from + size
		if name < 0 || size < 0 || from > len(data) || to > len(data) || to < from {
			return nil, false
		}
		if kind == noteAMDGPU && bytes.HasPrefix(data[12:from], []byte("AMDGPU")) {
			return data[from:to], true
		}
		next := from + (size+3)/4*4
		if next > len(data) {
			return nil, false
		}
		data = data[next:]
	}
	return nil, false
}

func kernels(desc []byte) ([]Kernel, error) {
	v, err := unpack(desc)
	if err != nil {
		return nil, fmt.Errorf("read a code object's metadata: %w", err)
	}
	top, _ := v.(map[string]any)
	list, ok := top["amdhsa.kernels"].([]any)
	if !ok {
		return nil, errors.New("read a code object's metadata: it has no amdhsa.kernels")
	}
	var all []Kernel
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			return nil, errors.New("read a code object's metadata: a kernel is no map")
		}
		k := Kernel{VectorRegisters: number(m, ".vgpr_count"), ScalarRegisters: number(m, ".sgpr_count"), StaticSharedBytes: number(m, ".group_segment_fixed_size"),
			ScratchBytes: number(m, ".private_segment_fixed_size"), VectorSpills: number(m, ".vgpr_spill_count"), ScalarSpills: number(m, ".sgpr_spill_count"),
			ThreadsPerBlock: number(m, ".max_flat_workgroup_size"), WaveSize: number(m, ".wavefront_size")}
		k.Name, _ = m[".name"].(string)
		if k.Name == "" {
			return nil, errors.New("read a code object's metadata: a kernel has no name")
		}
		k.arguments(m)
		all = append(all, k)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// arguments keeps the sizes of what the source declares; the compiler adds hidden ones behind them.
func (k *Kernel) arguments(m map[string]any) {
	list, _ := m[".args"].([]any)
	for _, entry := range list {
		a, _ := entry.(map[string]any)
		if kind, _ := a[".value_kind"].(string); len(kind) > 7 && kind[:7] == "hidden_" {
			continue
		}
		k.ArgumentSizes = append(k.ArgumentSizes, number(a, ".size"))
	}
}

func number(m map[string]any, key string) int {
	if v, ok := m[key].(int64); ok && v >= 0 && v < 1<<31 {
		return int(v)
	}
	return 0
}

// Resources are the kernels in a build's form: registers are vector registers, and spills are counted in bytes of a lane.
func Resources(all []Kernel) []harness.KernelResource {
	out := make([]harness.KernelResource, 0, len(all))
	for _, k := range all {
		spill := 4 * k.VectorSpills
		out = append(out, harness.KernelResource{Name: k.Name, Registers: k.VectorRegisters, StaticSharedBytes: k.StaticSharedBytes, SpillStoreBytes: spill, SpillLoadBytes: spill, LocalBytes: k.ScratchBytes})
	}
	return out
}
