package device

// entry is one function of a driver, whatever its library calls it.
type entry int

const (
	fnInit entry = iota
	fnDriverVersion
	fnDeviceCount
	fnDeviceGet
	fnDeviceName
	fnDeviceUUID
	fnDeviceMemory
	fnDeviceAttribute
	fnDevicePCI
	fnDeviceProperties
	fnContextRetain
	fnContextRelease
	fnContextSet
	fnContextSync
	fnForgetPersisting
	fnMemInfo
	fnAlloc
	fnFree
	fnHostAlloc
	fnHostFree
	fnToDevice
	fnToHost
	fnCopy
	fnMemset8
	fnMemset32
	fnStreamCreate
	fnStreamSync
	fnStreamDestroy
	fnEventCreate
	fnEventRecord
	fnEventSync
	fnEventElapsed
	fnEventDestroy
	fnModuleLoad
	fnModuleUnload
	fnModuleFunction
	fnModuleGlobal
	fnFunctionGet
	fnFunctionSet
	fnOccupancy
	fnLaunch
	fnLaunchEx
	fnTensorMap
	fnCaptureBegin
	fnCaptureEnd
	fnGraphInstantiate
	fnGraphLaunch
	fnGraphExecDestroy
	fnGraphDestroy
	fnErrorName
	numEntries
)

// dialect is how one vendor spells the driver's functions. An empty name is a function that the vendor lacks.
type dialect struct {
	name       string
	libraries  []string
	functions  [numEntries]string
	attributes [numAttributes]int
	arch       func(major, minor int) string
}

var cuda = dialect{
	name:      "cuda",
	libraries: []string{"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"},
	functions: [numEntries]string{
		fnInit: "cuInit", fnDriverVersion: "cuDriverGetVersion", fnDeviceCount: "cuDeviceGetCount", fnDeviceGet: "cuDeviceGet",
		fnDeviceName: "cuDeviceGetName", fnDeviceUUID: "cuDeviceGetUuid", fnDeviceMemory: "cuDeviceTotalMem_v2",
		fnDeviceAttribute: "cuDeviceGetAttribute", fnDevicePCI: "cuDeviceGetPCIBusId", fnContextRetain: "cuDevicePrimaryCtxRetain",
		fnContextRelease: "cuDevicePrimaryCtxRelease_v2", fnContextSet: "cuCtxSetCurrent", fnContextSync: "cuCtxSynchronize",
		fnForgetPersisting: "cuCtxResetPersistingL2Cache",
		fnMemInfo:          "cuMemGetInfo_v2", fnAlloc: "cuMemAlloc_v2", fnFree: "cuMemFree_v2", fnHostAlloc: "cuMemHostAlloc",
		fnHostFree: "cuMemFreeHost", fnToDevice: "cuMemcpyHtoDAsync_v2", fnToHost: "cuMemcpyDtoHAsync_v2", fnCopy: "cuMemcpyDtoDAsync_v2",
		fnMemset8: "cuMemsetD8Async", fnMemset32: "cuMemsetD32Async", fnStreamCreate: "cuStreamCreate", fnStreamSync: "cuStreamSynchronize",
		fnStreamDestroy: "cuStreamDestroy_v2", fnEventCreate: "cuEventCreate", fnEventRecord: "cuEventRecord",
		fnEventSync: "cuEventSynchronize", fnEventElapsed: "cuEventElapsedTime", fnEventDestroy: "cuEventDestroy_v2",
		fnModuleLoad: "cuModuleLoadData", fnModuleUnload: "cuModuleUnload", fnModuleFunction: "cuModuleGetFunction",
		fnModuleGlobal: "cuModuleGetGlobal_v2", fnFunctionGet: "cuFuncGetAttribute", fnFunctionSet: "cuFuncSetAttribute",
		fnOccupancy: "cuOccupancyMaxActiveBlocksPerMultiprocessor", fnLaunch: "cuLaunchKernel", fnLaunchEx: "cuLaunchKernelEx",
		fnTensorMap: "cuTensorMapEncodeTiled", fnCaptureBegin: "cuStreamBeginCapture_v2", fnCaptureEnd: "cuStreamEndCapture",
		fnGraphInstantiate: "cuGraphInstantiateWithFlags", fnGraphLaunch: "cuGraphLaunch", fnGraphExecDestroy: "cuGraphExecDestroy",
		fnGraphDestroy: "cuGraphDestroy", fnErrorName: "cuGetErrorName",
	},
	attributes: [numAttributes]int{ // CUdevice_attribute in cuda.h
		attrMaxThreadsPerBlock: 1, attrMaxBlockX: 2, attrMaxBlockY: 3, attrMaxBlockZ: 4, attrMaxGridX: 5, attrMaxGridY: 6, attrMaxGridZ: 7,
		attrSharedPerBlock: 8, attrWarpSize: 10, attrRegistersPerBlock: 12, attrSMs: 16, attrClockKHz: 13, attrMemoryClockKHz: 36,
		attrBusBits: 37, attrL2Bytes: 38, attrThreadsPerSM: 39, attrSharedPerSM: 81, attrRegistersPerSM: 82, attrSharedOptIn: 97,
		attrBlocksPerSM: 106, attrSharedReserved: 111, attrMajor: 75, attrMinor: 76, attrCooperative: 95, attrPersistingL2Bytes: 108,
	},
	arch: cudaArch,
}

// rocm names HIP's module API, whose functions take their arguments in the order of CUDA's driver API.
var rocm = dialect{
	name:      "hip",
	libraries: []string{"libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"},
	functions: [numEntries]string{
		fnInit: "hipInit", fnDriverVersion: "hipDriverGetVersion", fnDeviceCount: "hipGetDeviceCount", fnDeviceGet: "hipDeviceGet",
		fnDeviceName: "hipDeviceGetName", fnDeviceUUID: "hipDeviceGetUuid", fnDeviceMemory: "hipDeviceTotalMem",
		fnDeviceAttribute: "hipDeviceGetAttribute", fnDevicePCI: "hipDeviceGetPCIBusId", fnDeviceProperties: "hipGetDeviceProperties", fnContextRetain: "hipDevicePrimaryCtxRetain",
		fnContextRelease: "hipDevicePrimaryCtxRelease", fnContextSet: "hipCtxSetCurrent", fnContextSync: "hipDeviceSynchronize",
		fnMemInfo: "hipMemGetInfo", fnAlloc: "hipMalloc", fnFree: "hipFree", fnHostAlloc: "hipHostMalloc", fnHostFree: "hipHostFree",
		fnToDevice: "hipMemcpyHtoDAsync", fnToHost: "hipMemcpyDtoHAsync", fnCopy: "hipMemcpyDtoDAsync", fnMemset8: "hipMemsetD8Async",
		fnMemset32: "hipMemsetD32Async", fnStreamCreate: "hipStreamCreateWithFlags", fnStreamSync: "hipStreamSynchronize",
		fnStreamDestroy: "hipStreamDestroy", fnEventCreate: "hipEventCreateWithFlags", fnEventRecord: "hipEventRecord",
		fnEventSync: "hipEventSynchronize", fnEventElapsed: "hipEventElapsedTime", fnEventDestroy: "hipEventDestroy",
		fnModuleLoad: "hipModuleLoadData", fnModuleUnload: "hipModuleUnload", fnModuleFunction: "hipModuleGetFunction",
		fnModuleGlobal: "hipModuleGetGlobal", fnFunctionGet: "hipFuncGetAttribute",
		fnOccupancy: "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", fnLaunch: "hipModuleLaunchKernel",
		fnCaptureBegin: "hipStreamBeginCapture", fnCaptureEnd: "hipStreamEndCapture", fnGraphInstantiate: "hipGraphInstantiateWithFlags",
		fnGraphLaunch: "hipGraphLaunch", fnGraphExecDestroy: "hipGraphExecDestroy", fnGraphDestroy: "hipGraphDestroy",
		fnErrorName: "hipGetErrorName",
	},
	attributes: hipAttributes,
	arch:       func(int, int) string { return "" }, // the properties carry it: see Driver.gfx
}
