package device

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Module is loaded device code.
type Module uintptr

// Function is a kernel of a module.
type Function uintptr

// Load loads a cubin, a code object or the emulator's shared object. Each load has its own globals.
func (s *Session) Load(image []byte) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("load a module: the image is empty")
	}
	var m uintptr
	err := s.driver.call(fnModuleLoad, uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])))
	runtime.KeepAlive(image)
	return Module(m), err
}

// Unload gives the module back.
func (s *Session) Unload(m Module) error { return s.driver.call(fnModuleUnload, uintptr(m)) }

// Function finds a kernel by its name.
func (s *Session) Function(m Module, name string) (Function, error) {
	var f uintptr
	b := append([]byte(name), 0)
	if err := s.driver.call(fnModuleFunction, uintptr(unsafe.Pointer(&f)), uintptr(m), uintptr(unsafe.Pointer(&b[0]))); err != nil {
		return 0, fmt.Errorf("find kernel %s: %w", name, err)
	}
	return Function(f), nil
}

// FunctionInfo is what the driver knows of a loaded kernel. Sizes are in bytes.
type FunctionInfo struct {
	MaxThreads        int
	StaticSharedBytes int
	LocalBytes        int
	Registers         int
}

// FunctionInfo reads the kernel's resource use (CUfunction_attribute 0, 1, 3 and 4).
func (s *Session) FunctionInfo(f Function) (FunctionInfo, error) {
	var v [4]int32
	for i, code := range [...]uintptr{0, 1, 3, 4} {
		if err := s.driver.call(fnFunctionGet, uintptr(unsafe.Pointer(&v[i])), code, uintptr(f)); err != nil {
			return FunctionInfo{}, err
		}
	}
	return FunctionInfo{MaxThreads: int(v[0]), StaticSharedBytes: int(v[1]), LocalBytes: int(v[2]), Registers: int(v[3])}, nil
}

// AllowShared lets the kernel have sizeBytes of dynamic shared memory, which above 48 KB it must be allowed first
// (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES). HIP needs no leave.
func (s *Session) AllowShared(f Function, sizeBytes int) error {
	if s.driver.fn[fnFunctionSet] == 0 {
		return nil
	}
	return s.driver.call(fnFunctionSet, uintptr(f), 8, uintptr(sizeBytes))
}

// AllowCluster lets the kernel run in clusters of more than the portable eight blocks
// (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED).
func (s *Session) AllowCluster(f Function) error {
	return s.driver.call(fnFunctionSet, uintptr(f), 14, 1)
}

// Occupancy returns how many blocks of the kernel fit on one multiprocessor at once.
func (s *Session) Occupancy(f Function, threads, sharedBytes int) (int, error) {
	var n int32
	err := s.driver.call(fnOccupancy, uintptr(unsafe.Pointer(&n)), uintptr(f), uintptr(threads), uintptr(sharedBytes))
	return int(n), err
}
