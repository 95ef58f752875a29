package device

import (
	"errors"
	"fmt"
	"sort"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Monitor reads a card's clocks, temperature, power, throttle reasons and processes through NVML. It is safe for
// concurrent use and needs no context.
type Monitor struct {
	handle uintptr
	dev    uintptr
	fn     map[string]uintptr
}

var nvmlFunctions = []string{
	"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlSystemGetDriverVersion",
}

// OpenMonitor opens NVML (the library at path, or the system's when path is "") for the device with that UUID. The error
// wraps ErrNoDriver when there is none.
func OpenMonitor(path, uuid string) (*Monitor, error) {
	names := []string{"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}
	if path != "" {
		names = []string{path}
	}
	m := &Monitor{fn: map[string]uintptr{}}
	var first error
	for _, name := range names {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			m.handle = h
			break
		}
		if first == nil {
			first = err
		}
	}
	if m.handle == 0 {
		return nil, fmt.Errorf("open NVML (%w): %w", first, ErrNoDriver)
	}
	for _, name := range nvmlFunctions {
		addr, err := purego.Dlsym(m.handle, name)
		if err != nil {
			return nil, fmt.Errorf("open NVML: no function %s: install a newer driver", name)
		}
		m.fn[name] = addr
	}
	if err := m.call("nvmlInit_v2"); err != nil {
		return nil, err
	}
	id := append([]byte(uuid), 0)
	return m, m.call("nvmlDeviceGetHandleByUUID", uintptr(unsafe.Pointer(&id[0])), uintptr(unsafe.Pointer(&m.dev)))
}

//go:uintptrescapes
func (m *Monitor) call(name string, args ...uintptr) error {
	r, _, _ := purego.SyscallN(m.fn[name], args...)
	if code := int32(r); code != 0 {
		text, _, _ := purego.SyscallN(m.fn["nvmlErrorString"], uintptr(code))
		return &Error{Call: name, Code: int(code), Name: goString(text)}
	}
	return nil
}

// Reading is the card's state at one moment. Throttle lists the reasons that slow the card now, idleness left out.
type Reading struct {
	SMClockMHz, MemoryClockMHz int
	TemperatureC               int
	PowerWatts                 float64
	Throttle                   []string
}

// throttleReasons are nvmlClocksThrottleReason bits that mean a slower card. Idle (0x1) and application clocks (0x2) do
// not: they are how the card was found.
var throttleReasons = map[uint64]string{
	0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake",
}

// Read reads the card's state.
func (m *Monitor) Read() (Reading, error) {
	var r Reading
	var sm, mem, temp, milliwatts uint32
	var bits uint64
	const smDomain, memoryDomain, coreSensor = 1, 2, 0
	err := errors.Join(
		m.call("nvmlDeviceGetClockInfo", m.dev, smDomain, uintptr(unsafe.Pointer(&sm))),
		m.call("nvmlDeviceGetClockInfo", m.dev, memoryDomain, uintptr(unsafe.Pointer(&mem))),
		m.call("nvmlDeviceGetTemperature", m.dev, coreSensor, uintptr(unsafe.Pointer(&temp))),
		m.call("nvmlDeviceGetPowerUsage", m.dev, uintptr(unsafe.Pointer(&milliwatts))),
		m.call("nvmlDeviceGetCurrentClocksThrottleReasons", m.dev, uintptr(unsafe.Pointer(&bits))))
	if err != nil {
		return r, err
	}
	r.SMClockMHz, r.MemoryClockMHz, r.TemperatureC, r.PowerWatts = int(sm), int(mem), int(temp), float64(milliwatts)/1000
	for bit, name := range throttleReasons {
		if bits&bit != 0 {
			r.Throttle = append(r.Throttle, name)
		}
	}
	sort.Strings(r.Throttle)
	return r, nil
}

// Processes returns the ids of the processes that hold a compute context on the card, as the driver counts them: in a
// container they may be ids of the host's namespace.
func (m *Monitor) Processes() ([]int, error) {
	var infos [64]struct {
		pid          uint32
		_            uint32
		memory       uint64
		gpu, compute uint32
	}
	n := uint32(len(infos))
	if err := m.call("nvmlDeviceGetComputeRunningProcesses_v3", m.dev, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&infos[0]))); err != nil {
		return nil, err
	}
	pids := make([]int, 0, n)
	for _, p := range infos[:n] {
		pids = append(pids, int(p.pid))
	}
	sort.Ints(pids)
	return pids, nil
}

// DriverVersion returns the driver package's version, "580.159.04".
func (m *Monitor) DriverVersion() (string, error) {
	var b [96]byte
	err := m.call("nvmlSystemGetDriverVersion", uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return cString(b[:]), err
}

// Close gives NVML back.
func (m *Monitor) Close() error { return m.call("nvmlShutdown") }
