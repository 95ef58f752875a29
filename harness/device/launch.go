package device

import (
	"encoding/binary"
	"math"
	"runtime"
	"unsafe"
)

// Args holds a launch's arguments where the driver can read them. It is built once and may be launched many times; its
// pointers may be set again between launches.
type Args struct {
	slots []*[16]uint64 // 128 bytes each: room for a tensor map
	ptrs  []unsafe.Pointer
}

func (a *Args) slot() *[16]uint64 {
	// The driver wants tensor maps at 64 bytes (cuda.h, CUtensorMap); Go gives 128-byte objects 128-byte alignment.
	s := new([16]uint64)
	a.slots = append(a.slots, s)
	a.ptrs = append(a.ptrs, unsafe.Pointer(s))
	return s
}

// Ptr appends a device pointer.
func (a *Args) Ptr(p Ptr) *Args { a.slot()[0] = uint64(p); return a }

// Int32 appends an int32.
func (a *Args) Int32(v int32) *Args { a.slot()[0] = uint64(uint32(v)); return a }

// Uint32 appends a uint32.
func (a *Args) Uint32(v uint32) *Args { a.slot()[0] = uint64(v); return a }

// Int64 appends an int64.
func (a *Args) Int64(v int64) *Args { a.slot()[0] = uint64(v); return a }

// Uint64 appends a uint64.
func (a *Args) Uint64(v uint64) *Args { a.slot()[0] = v; return a }

// Float32 appends a float32.
func (a *Args) Float32(v float32) *Args { a.slot()[0] = uint64(math.Float32bits(v)); return a }

// Float64 appends a float64.
func (a *Args) Float64(v float64) *Args { a.slot()[0] = math.Float64bits(v); return a }

// Raw appends a value of up to 8 bytes by its bits.
func (a *Args) Raw(bits uint64) *Args { a.slot()[0] = bits; return a }

// Map appends an encoded tensor map.
func (a *Args) Map(m TensorMap) *Args { *a.slot() = m; return a }

// SetPtr replaces argument i, which must be a pointer.
func (a *Args) SetPtr(i int, p Ptr) { a.slots[i][0] = uint64(p) }

// SetRaw replaces argument i by its bits.
func (a *Args) SetRaw(i int, bits uint64) { a.slots[i][0] = bits }

// Len returns the number of arguments.
func (a *Args) Len() int { return len(a.slots) }

// Plan is how a kernel is launched.
type Plan struct {
	Grid, Block [3]int
	SharedBytes int    // dynamic; above 48 KB call AllowShared first
	Cluster     [3]int // zero: none
	Cooperative bool
}

// Threads returns the threads of one block.
func (p *Plan) Threads() int { return p.Block[0] * p.Block[1] * p.Block[2] }

// Clustered reports whether the launch asks for thread block clusters.
func (p *Plan) Clustered() bool { return p.Cluster[0]*p.Cluster[1]*p.Cluster[2] > 1 }

// Launch queues the kernel on the stream.
func (s *Session) Launch(st Stream, f Function, p *Plan, a *Args) error {
	var params uintptr
	if len(a.ptrs) > 0 {
		params = uintptr(unsafe.Pointer(&a.ptrs[0]))
	}
	var err error
	if p.Cooperative || p.Clustered() {
		err = s.launchEx(st, f, p, params)
	} else {
		err = s.driver.call(fnLaunch, uintptr(f), uintptr(p.Grid[0]), uintptr(p.Grid[1]), uintptr(p.Grid[2]), uintptr(p.Block[0]),
			uintptr(p.Block[1]), uintptr(p.Block[2]), uintptr(p.SharedBytes), uintptr(st), params, 0)
	}
	runtime.KeepAlive(a)
	return err
}

// launchEx fills CUlaunchConfig (56 bytes) and its CUlaunchAttribute array (72 bytes each), as cuda.h lays them out.
func (s *Session) launchEx(st Stream, f Function, p *Plan, params uintptr) error {
	const attrSize, cooperativeID, clusterID = 72, 2, 4
	var attrs [2 * attrSize]byte
	n := 0
	if p.Cooperative {
		binary.LittleEndian.PutUint32(attrs[n*attrSize:], cooperativeID)
		binary.LittleEndian.PutUint32(attrs[n*attrSize+8:], 1)
		n++
	}
	if p.Clustered() {
		binary.LittleEndian.PutUint32(attrs[n*attrSize:], clusterID)
		for i, v := range p.Cluster {
			binary.LittleEndian.PutUint32(attrs[n*attrSize+8+4*i:], uint32(max(v, 1)))
		}
		n++
	}
	var config struct {
		grid, block [3]uint32
		shared      uint32
		_           uint32
		stream      uintptr
		attrs       unsafe.Pointer
		count       uint32
		_           uint32
	}
	for i := range 3 {
		config.grid[i], config.block[i] = uint32(p.Grid[i]), uint32(p.Block[i])
	}
	config.shared, config.stream, config.attrs, config.count = uint32(p.SharedBytes), uintptr(st), unsafe.Pointer(&attrs[0]), uint32(n)
	return s.driver.call(fnLaunchEx, uintptr(unsafe.Pointer(&config)), uintptr(f), params, 0)
}
