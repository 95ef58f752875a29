// Package cubin reads what CUDA's compilers leave behind: the ELF image of device code (registers, shared memory, stack and
// parameters of each kernel), ptxas's verbose report, and the compilers' messages. Check holds a kernel and its launch
// against a device's limits, so that what the driver would refuse is refused before a device is taken.
//
// It runs no compiler and talks to no driver.
package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Kernel is one entry of an image. Sizes are in bytes.
type Kernel struct {
	Name              string
	Registers         int // a thread
	StaticSharedBytes int
	FrameBytes        int   // stack of a thread, spills included
	MaxThreads        int   // of __launch_bounds__; 0: none
	Params            []int // size of each parameter, in order
}

// Attribute codes of .nv.info, as cuobjdump and nvdisasm name them (EIATTR_...).
const (
	attrMaxThreads = 0x05
	attrFrameSize  = 0x11
	attrParamInfo  = 0x17
	attrRegisters  = 0x2f
)

// reservedShared is what the compiler sets aside of each block's shared memory for the system from compute capability 9.0
// on; it is counted in the section's size and not in the kernel's use.
const reservedShared = 1024

// ErrNotCubin is returned for bytes that are no CUDA ELF image.
var ErrNotCubin = errors.New("not a CUDA ELF image")

// Parse lists the kernels of a cubin, sorted by name.
func Parse(image []byte) ([]Kernel, error) {
	const headerBytes, identVersion, version = 64, 6, 20
	if len(image) < headerBytes {
		return nil, ErrNotCubin
	}
	image = bytes.Clone(image)
	image[identVersion] = 1 // CUDA writes its own version into both fields, which debug/elf refuses
	binary.LittleEndian.PutUint32(image[version:], 1)
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCubin, err)
	}
	const machineCUDA = 190
	if f.Machine != machineCUDA {
		return nil, fmt.Errorf("%w: machine %d", ErrNotCubin, f.Machine)
	}
	const flagsOffset = 48 // of e_flags in a 64-bit header, which debug/elf does not keep
	flags := binary.LittleEndian.Uint32(image[flagsOffset:])
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("read the symbols: %w", err)
	}
	found := map[string]*Kernel{}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok {
			found[name] = &Kernel{Name: name}
		}
	}
	for _, s := range f.Sections {
		if err := readSection(s, flags, symbols, found); err != nil {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
	}
	kernels := make([]Kernel, 0, len(found))
	for _, k := range found {
		kernels = append(kernels, *k)
	}
	sort.Slice(kernels, func(i, j int) bool { return kernels[i].Name < kernels[j].Name })
	return kernels, nil
}

func readSection(s *elf.Section, flags uint32, symbols []elf.Symbol, found map[string]*Kernel) error {
	if name, ok := strings.CutPrefix(s.Name, ".nv.shared."); ok {
		if k := found[name]; k != nil {
			k.StaticSharedBytes = int(s.Size)
			if hasReservedShared(flags) {
				k.StaticSharedBytes = max(0, k.StaticSharedBytes-reservedShared)
			}
		}
		return nil
	}
	name, own := strings.CutPrefix(s.Name, ".nv.info.")
	if !own && s.Name != ".nv.info" {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	return attributes(data, func(code byte, value []byte) { apply(code, value, found[name], symbols, found) })
}

// hasReservedShared tells compute capability 9.0 and newer by e_flags: its low byte, or from CUDA 13 on the second, holds
// the architecture.
func hasReservedShared(flags uint32) bool {
	arch := flags & 0xff
	if second := flags >> 8 & 0xff; arch < 50 {
		arch = second
	}
	return arch >= 90
}

// attributes walks .nv.info: each entry has a format byte, a code and, by format, a value of fixed or stated length.
func attributes(data []byte, visit func(code byte, value []byte)) error {
	const formatNone, formatByte, formatHalf, formatSized = 1, 2, 3, 4
	for len(data) >= 4 {
		format, code := data[0], data[1]
		switch format {
		case formatNone, formatByte, formatHalf:
			visit(code, data[2:4])
			data = data[4:]
		case formatSized:
			n := int(binary.LittleEndian.Uint16(data[2:]))
			if 4+n > len(data) {
				return fmt.Errorf("an attribute of %d bytes runs past the end", n)
			}
			visit(code, data[4:4+n])
			data = data[4+n:]
		default:
			return fmt.Errorf("attribute format %d is not known", format)
		}
	}
	return nil
}

func apply(code byte, value []byte, own *Kernel, symbols []elf.Symbol, found map[string]*Kernel) {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(value[4*i:])) }
	switch {
	case (code == attrRegisters || code == attrFrameSize) && len(value) >= 8:
		at := word(0) - 1 // debug/elf leaves the null symbol out
		if at < 0 || at >= len(symbols) {
			return
		}
		k := found[symbols[at].Name]
		switch {
		case k == nil:
		case code == attrRegisters:
			k.Registers = word(1)
		default:
			k.FrameBytes = word(1)
		}
	case code == attrMaxThreads && own != nil && len(value) >= 12:
		own.MaxThreads = word(0) * word(1) * word(2)
	case code == attrParamInfo && own != nil && len(value) >= 12:
		at := int(binary.LittleEndian.Uint16(value[4:]))
		for len(own.Params) <= at && at < 4096 {
			own.Params = append(own.Params, 0)
		}
		if at < len(own.Params) {
			own.Params[at] = word(2) >> 18 & 0x3fff
		}
	}
}
