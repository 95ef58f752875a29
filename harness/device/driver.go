package device

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Driver is one opened driver library, initialised. It is safe for concurrent use.
type Driver struct {
	dialect *dialect
	path    string
	handle  uintptr
	fn      [numEntries]uintptr
	version int
}

// OpenCUDA opens the CUDA driver: the library at path, or the system's when path is "". The error wraps ErrNoDriver when
// there is none.
func OpenCUDA(path string) (*Driver, error) { return open(&cuda, path) }

// OpenHIP opens AMD's HIP runtime: the library at path, or the system's when path is "". The error wraps ErrNoDriver when
// there is none.
func OpenHIP(path string) (*Driver, error) { return open(&rocm, path) }

func open(d *dialect, path string) (*Driver, error) {
	candidates := d.libraries
	if path != "" {
		candidates = []string{path}
	}
	var handle uintptr
	var reasons []string
	for _, name := range candidates {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			handle, path = h, name
			break
		}
		reasons = append(reasons, err.Error())
	}
	if handle == 0 {
		return nil, fmt.Errorf("open the %s driver (%s): %w", d.name, strings.Join(reasons[:1], "; "), ErrNoDriver)
	}
	drv := &Driver{dialect: d, path: path, handle: handle}
	for i, name := range d.functions {
		if name == "" {
			continue
		}
		addr, err := purego.Dlsym(handle, name)
		if err != nil && required(entry(i)) {
			return nil, fmt.Errorf("open the %s driver: %s has no function %s: install a newer driver", d.name, path, name)
		}
		drv.fn[i] = addr
	}
	if err := drv.call(fnInit, 0); err != nil {
		if e := AsError(err); e != nil && (e.Code == codeNoDevice || e.Code == codeInvalidDevice) {
			err = errors.Join(ErrNoDriver, err) // the library is there and no card: HIP 5.2 says 101
		}
		return nil, fmt.Errorf("initialise the %s driver: %w", d.name, err)
	}
	var v int32
	if err := drv.call(fnDriverVersion, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, err
	}
	drv.version = int(v)
	return drv, nil
}

// required tells the functions without which nothing works from those that only newer drivers have.
func required(e entry) bool {
	switch e {
	case fnForgetPersisting, fnLaunchEx, fnTensorMap, fnGraphInstantiate, fnGraphLaunch, fnGraphExecDestroy, fnGraphDestroy, fnCaptureBegin, fnCaptureEnd, fnDeviceUUID, fnDeviceProperties, fnModuleGlobal:
		return false
	default:
		return true
	}
}

// Path returns the library's name or path as it was opened.
func (d *Driver) Path() string { return d.path }

// Dialect returns "cuda" or "hip".
func (d *Driver) Dialect() string { return d.dialect.name }

// Version returns the newest API version that the driver supports, as 1000*major + 10*minor (CUDA).
func (d *Driver) Version() int { return d.version }

// VersionString returns the API version as "13.0".
func (d *Driver) VersionString() string {
	return fmt.Sprintf("%d.%d", d.version/1000, d.version%1000/10)
}

//go:uintptrescapes
func (d *Driver) call(e entry, args ...uintptr) error {
	addr := d.fn[e]
	if addr == 0 {
		name := d.dialect.functions[e]
		if name == "" {
			return &Error{Call: d.dialect.name, Code: codeNotSupported, Name: "function not offered by this driver"}
		}
		return &Error{Call: name, Code: codeNotSupported, Name: "function missing from this driver version"}
	}
	r, _, _ := purego.SyscallN(addr, args...)
	if code := int32(r); code != 0 {
		return &Error{Call: d.dialect.functions[e], Code: int(code), Name: d.errorName(int(code))}
	}
	return nil
}

func (d *Driver) errorName(code int) string {
	addr := d.fn[fnErrorName]
	if addr == 0 {
		return ""
	}
	if d.dialect == &rocm {
		r, _, _ := purego.SyscallN(addr, uintptr(code))
		return goString(r)
	}
	var p uintptr
	if r, _, _ := purego.SyscallN(addr, uintptr(code), uintptr(unsafe.Pointer(&p))); r != 0 {
		return ""
	}
	return goString(p)
}

// Devices lists the devices that the driver sees.
func (d *Driver) Devices() ([]Info, error) {
	var n int32
	if err := d.call(fnDeviceCount, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	infos := make([]Info, n)
	for i := range infos {
		info, err := d.info(i)
		if err != nil {
			return nil, fmt.Errorf("read device %d: %w", i, err)
		}
		infos[i] = *info
	}
	return infos, nil
}

func (d *Driver) info(index int) (*Info, error) {
	var dev int32
	if err := d.call(fnDeviceGet, uintptr(unsafe.Pointer(&dev)), uintptr(index)); err != nil {
		return nil, err
	}
	info := &Info{Index: index}
	var text [256]byte
	if err := d.call(fnDeviceName, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), uintptr(dev)); err != nil {
		return nil, err
	}
	info.Name = cString(text[:])
	if err := d.call(fnDevicePCI, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), uintptr(dev)); err != nil {
		return nil, err
	}
	info.PCI = cString(text[:])
	var id [16]byte
	if d.fn[fnDeviceUUID] != 0 {
		if err := d.call(fnDeviceUUID, uintptr(unsafe.Pointer(&id[0])), uintptr(dev)); err != nil {
			return nil, err
		}
		info.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	}
	var bytes uint64
	if err := d.call(fnDeviceMemory, uintptr(unsafe.Pointer(&bytes)), uintptr(dev)); err != nil {
		return nil, err
	}
	info.MemoryByte = int64(bytes)
	return info, d.fillAttributes(info, dev)
}

func (d *Driver) fillAttributes(info *Info, dev int32) error {
	var v [numAttributes]int
	for i, code := range d.dialect.attributes {
		if code == 0 {
			continue
		}
		var n int32
		if err := d.call(fnDeviceAttribute, uintptr(unsafe.Pointer(&n)), uintptr(code), uintptr(dev)); err != nil {
			if e := AsError(err); e != nil && e.Code == codeInvalidValue {
				continue // an older driver does not know the attribute: it stays 0
			}
			return err
		}
		v[i] = int(n)
	}
	info.Limits = Limits{
		SMs: v[attrSMs], WarpSize: v[attrWarpSize], ThreadsPerBlock: v[attrMaxThreadsPerBlock],
		BlockDim:       [3]int{v[attrMaxBlockX], v[attrMaxBlockY], v[attrMaxBlockZ]},
		GridDim:        [3]int{v[attrMaxGridX], v[attrMaxGridY], v[attrMaxGridZ]},
		SharedPerBlock: v[attrSharedPerBlock], SharedOptIn: max(v[attrSharedOptIn], v[attrSharedPerBlock]), SharedPerSM: v[attrSharedPerSM],
		SharedReserved: v[attrSharedReserved], RegistersPerBlock: v[attrRegistersPerBlock], RegistersPerSM: v[attrRegistersPerSM],
		ThreadsPerSM: v[attrThreadsPerSM], BlocksPerSM: v[attrBlocksPerSM], Cooperative: v[attrCooperative] != 0,
	}
	info.L2Bytes, info.PersistingL2Bytes = int64(v[attrL2Bytes]), int64(v[attrPersistingL2Bytes])
	info.ClockMHz, info.MemoryMHz, info.BusBits = v[attrClockKHz]/1000, v[attrMemoryClockKHz]/1000, v[attrBusBits]
	info.Arch = d.dialect.arch(v[attrMajor], v[attrMinor])
	if info.Arch == "" {
		info.Arch = d.gfx(info.Index)
	}
	if strings.HasPrefix(info.Name, "Ridgepoint emulated") {
		info.Arch = Emulated
	}
	return nil
}

// gfxPattern is how AMD names an arch.
var gfxPattern = regexp.MustCompile(`gfx[1-9][0-9a-f]{2,3}`)

// gfx reads a HIP device's arch out of hipDeviceProp_t.gcnArchName. The structure grows from version to version, which moves
// the name about, so it is looked for in all of it; "" where it is not found.
func (d *Driver) gfx(index int) string {
	if d.fn[fnDeviceProperties] == 0 {
		return ""
	}
	properties := make([]byte, 16<<10) // HIP 6's has 1.5 KB
	if err := d.call(fnDeviceProperties, uintptr(unsafe.Pointer(&properties[0])), uintptr(index)); err != nil {
		return ""
	}
	return string(gfxPattern.Find(properties))
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// goString copies the C string at p, which the driver owns and never frees.
func goString(p uintptr) string {
	if p == 0 {
		return ""
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	n := 0
	for n < 4096 && *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}
