// HIP's module API, forwarded to the CUDA functions above. Included by driver.cpp.
API hipInit(unsigned f) { return cuInit(f); }
API hipDriverGetVersion(int* v) { return cuDriverGetVersion(v); }
API hipGetDeviceCount(int* n) { return cuDeviceGetCount(n); }
API hipDeviceGet(int* d, int i) { return cuDeviceGet(d, i); }
API hipDeviceGetName(char* s, int n, int d) { return cuDeviceGetName(s, n, d); }
API hipDeviceGetUuid(unsigned char* id, int d) { return cuDeviceGetUuid(id, d); }
API hipDeviceTotalMem(size_t* n, int d) { return cuDeviceTotalMem_v2(n, d); }
API hipDeviceGetAttribute(int* v, int code, int d) {
    static const std::map<int, int> cuda = {{56, 1}, {26, 2}, {27, 3}, {28, 4}, {29, 5}, {30, 6}, {31, 7}, {74, 8}, {87, 10}, {71, 12}, {72, 82},
                                            {63, 16}, {5, 13}, {60, 36}, {59, 37}, {19, 38}, {57, 39}, {10002, 81}, {23, 75}, {61, 76}, {10, 95}};
    auto it = cuda.find(code);
    return it == cuda.end() ? int(kInvalidValue) : cuDeviceGetAttribute(v, it->second, d);
}
API hipDeviceGetPCIBusId(char* s, int n, int d) { return cuDeviceGetPCIBusId(s, n, d); }
API hipGetDeviceProperties(char* properties, int) {  // hipDeviceProp_t of HIP 5.2 has gcnArchName at 512 or so
    snprintf(properties + 512, 256, "gfx90a:sramecc+:xnack-");
    return 0;
}
API hipDevicePrimaryCtxRetain(void** c, int d) { return cuDevicePrimaryCtxRetain(c, d); }
API hipDevicePrimaryCtxRelease(int d) { return cuDevicePrimaryCtxRelease_v2(d); }
API hipCtxSetCurrent(void* c) { return cuCtxSetCurrent(c); }
API hipDeviceSynchronize() { return cuCtxSynchronize(); }
API hipMemGetInfo(size_t* f, size_t* t) { return cuMemGetInfo_v2(f, t); }
API hipMalloc(void** p, size_t n) { return cuMemAlloc_v2(p, n); }
API hipFree(void* p) { return cuMemFree_v2(p); }
API hipHostMalloc(void** p, size_t n, unsigned f) { return cuMemHostAlloc(p, n, f); }
API hipHostFree(void* p) { return cuMemFreeHost(p); }
API hipMemcpyHtoDAsync(void* d, void* s, size_t n, void* st) { return cuMemcpyHtoDAsync_v2(d, s, n, st); }
API hipMemcpyDtoHAsync(void* d, void* s, size_t n, void* st) { return cuMemcpyDtoHAsync_v2(d, s, n, st); }
API hipMemcpyDtoDAsync(void* d, void* s, size_t n, void* st) { return cuMemcpyDtoDAsync_v2(d, s, n, st); }
API hipMemsetD8Async(void* d, unsigned char v, size_t n, void* st) { return cuMemsetD8Async(d, v, n, st); }
API hipMemsetD32Async(void* d, unsigned v, size_t n, void* st) { return cuMemsetD32Async(d, v, n, st); }
API hipStreamCreateWithFlags(void** s, unsigned f) { return cuStreamCreate(s, f); }
API hipStreamSynchronize(void* s) { return cuStreamSynchronize(s); }
API hipStreamDestroy(void* s) { return cuStreamDestroy_v2(s); }
API hipEventCreateWithFlags(void** e, unsigned f) { return cuEventCreate(e, f); }
API hipEventRecord(void* e, void* s) { return cuEventRecord(e, s); }
API hipEventSynchronize(void* e) { return cuEventSynchronize(e); }
API hipEventElapsedTime(float* ms, void* a, void* b) { return cuEventElapsedTime(ms, a, b); }
API hipEventDestroy(void* e) { return cuEventDestroy_v2(e); }
API hipModuleLoadData(void** m, const void* image) { return cuModuleLoadData(m, image); }
API hipModuleUnload(void* m) { return cuModuleUnload(m); }
API hipModuleGetFunction(void** f, void* m, const char* n) { return cuModuleGetFunction(f, m, n); }
API hipModuleGetGlobal(void** p, size_t* n, void* m, const char* s) { return cuModuleGetGlobal_v2(p, n, m, s); }
API hipFuncGetAttribute(int* v, int code, void* f) { return cuFuncGetAttribute(v, code, f); }
API hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void* f, int t, size_t s) { return cuOccupancyMaxActiveBlocksPerMultiprocessor(n, f, t, s); }
API hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void* st, void** p, void** e) {
    static_cast<Kernel*>(f)->allowed = 64 << 10;  // a block's local data share; HIP asks for no leave
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, sh, st, p, e);
}
API hipStreamBeginCapture(void* s, int mode) { return cuStreamBeginCapture_v2(s, mode); }
API hipStreamEndCapture(void* s, void** g) { return cuStreamEndCapture(s, g); }
API hipGraphInstantiateWithFlags(void** e, void* g, unsigned long long f) { return cuGraphInstantiateWithFlags(e, g, f); }
API hipGraphLaunch(void* e, void* s) { return cuGraphLaunch(e, s); }
API hipGraphExecDestroy(void* e) { return cuGraphExecDestroy(e); }
API hipGraphDestroy(void* g) { return cuGraphDestroy(g); }
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int code) { return nameOf(code); }
