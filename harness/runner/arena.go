//go:build linux

package runner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

const (
	pageBytes = 4096
	// zoneBytes is the red zone on each side of every buffer: past a row of 8192 floats. Beyond it lies a page that ends who
	// touches it.
	zoneBytes = 32 << 10
	// staggerBytes sets buffers off from page boundaries, each by another distance: buffers at one place of their pages make
	// loads wait for unrelated stores (4 KiB aliasing) on common processors.
	staggerBytes = 2*256 + 64*4
)

// arena is the memory that the parent and its children share.
type arena struct {
	file *os.File // memfd
	mem  []byte
}

func newArena() (*arena, error) {
	fd, err := unix.MemfdCreate("ridgepoint-buffers", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make shared memory: %w", err)
	}
	return &arena{file: os.NewFile(uintptr(fd), "buffers")}, nil
}

// grow makes the arena at least n bytes long. It never shrinks: its pages stay warm from candidate to candidate.
func (a *arena) grow(n int64) error {
	if n <= int64(len(a.mem)) {
		return nil
	}
	if a.mem != nil {
		if err := unix.Munmap(a.mem); err != nil {
			return fmt.Errorf("unmap buffers: %w", err)
		}
		a.mem = nil
	}
	if err := a.file.Truncate(n); err != nil {
		return fmt.Errorf("get %d bytes of shared memory: %w", n, err)
	}
	m, err := unix.Mmap(int(a.file.Fd()), 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes of shared memory: %w", n, err)
	}
	a.mem = m
	return nil
}

func (a *arena) close() error {
	var err error
	if a.mem != nil {
		err = unix.Munmap(a.mem)
		a.mem = nil
	}
	return errors.Join(err, a.file.Close())
}

// region is one buffer in the arena: [Low, Offset) and [Offset+Length, High) are its red zones.
type region struct {
	task.Extent
	Offset, Length int64
	Low, High      int64 // page boundaries; the pages before Low and from High are guards
	scratch        bool
}

// place lays buffers out one after the other and returns them with the offsets of the guard pages and the length in all.
func place(extents []task.Extent, tensors int) (regions []region, guards []int64, length int64) {
	at := int64(0)
	for i, e := range extents {
		guards = append(guards, at)
		at += pageBytes
		r := region{Extent: e, Low: at, Length: e.Bytes(), scratch: i >= tensors}
		align := int64(max(e.AlignmentBytes, 64))
		r.Offset = roundUp(at+zoneBytes+int64(i)*staggerBytes, align)
		if align <= 256 && i > 0 { // keep the stagger within the alignment asked for
			r.Offset = roundUp(at+zoneBytes, pageBytes) + roundUp(int64(i)*staggerBytes, align)
		}
		r.High = roundUp(r.Offset+r.Length+zoneBytes, pageBytes)
		at = r.High
		regions = append(regions, r)
	}
	guards = append(guards, at)
	return regions, guards, at + pageBytes
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// zoneSeed is the seed of the red zones' content. It differs from buffer to buffer, so that a copy of one is no repair of
// another.
func zoneSeed(i int, after bool) uint64 {
	if after {
		return verify.Mix(0x2ed, uint64(i), 1)
	}
	return verify.Mix(0x2ed, uint64(i), 0)
}

// zones calls yield with both red zones of every region.
func zones(mem []byte, regions []region, yield func(r *region, i int, after bool, zone []byte) bool) {
	for i := range regions {
		r := &regions[i]
		if !yield(r, i, false, mem[r.Low:r.Offset]) || !yield(r, i, true, mem[r.Offset+r.Length:r.High]) {
			return
		}
	}
}

// fillZones writes the red zones.
func fillZones(mem []byte, regions []region) {
	zones(mem, regions, func(_ *region, i int, after bool, zone []byte) bool {
		verify.Poison(zone, harness.Float32, zoneSeed(i, after))
		return true
	})
}

// damagedZone returns the first red zone that changed, or nil.
func damagedZone(mem []byte, regions []region) *verify.Breach {
	var out *verify.Breach
	zones(mem, regions, func(r *region, i int, after bool, zone []byte) bool {
		at := verify.FirstChange(zone, harness.Float32, zoneSeed(i, after))
		if at < 0 {
			return true
		}
		out = &verify.Breach{Kind: verify.KindRedZone, Tensor: r.Name}
		if after {
			out.Offset = at
		} else {
			out.Offset = at - (r.Offset - r.Low)
		}
		return false
	})
	return out
}
