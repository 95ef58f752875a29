// Times a cubin's softmax kernel with events, as plainly as C can: loop CUBIN KERNEL ROWS COLS. Prints the median of 50 launches
// after 10 in microseconds, each behind a write of three times the L2 cache.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <vector>
#define CHECK(x) do { CUresult r = (x); if (r) { const char* s; cuGetErrorName(r, &s); fprintf(stderr, "%s: %s\n", #x, s); exit(1); } } while (0)
int main(int argc, char** argv) {
    if (argc != 5) return 2;
    int rows = atoi(argv[3]), cols = atoi(argv[4]), l2;
    CUdevice dev; CUcontext ctx; CUmodule mod; CUfunction f; CUstream st;
    CHECK(cuInit(0)); CHECK(cuDeviceGet(&dev, 0)); CHECK(cuDevicePrimaryCtxRetain(&ctx, dev)); CHECK(cuCtxSetCurrent(ctx));
    CHECK(cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, dev));
    CHECK(cuModuleLoad(&mod, argv[1])); CHECK(cuModuleGetFunction(&f, mod, argv[2])); CHECK(cuStreamCreate(&st, CU_STREAM_NON_BLOCKING));
    size_t n = size_t(rows) * cols, flushBytes = 3 * size_t(l2);
    CUdeviceptr x, y, flush; CHECK(cuMemAlloc(&x, 4 * n)); CHECK(cuMemAlloc(&y, 4 * n)); CHECK(cuMemAlloc(&flush, flushBytes));
    std::vector<float> h(n); unsigned s = 1;
    for (auto& v : h) { s = s * 1664525 + 1013904223; v = float(s >> 8) / 8388608.f - 1.f; }
    CHECK(cuMemcpyHtoD(x, h.data(), 4 * n));
    void* args[] = {&x, &y, &rows, &cols};
    std::vector<CUevent> a(60), b(60);
    for (int i = 0; i < 60; ++i) { CHECK(cuEventCreate(&a[i], 0)); CHECK(cuEventCreate(&b[i], 0)); }
    for (int i = 0; i < 60; ++i) {
        CHECK(cuMemsetD8Async(flush, 0, flushBytes, st)); CHECK(cuEventRecord(a[i], st));
        CHECK(cuLaunchKernel(f, rows, 1, 1, 256, 1, 1, 0, st, args, nullptr)); CHECK(cuEventRecord(b[i], st));
    }
    CHECK(cuStreamSynchronize(st));
    std::vector<float> t;
    for (int i = 10; i < 60; ++i) { float ms; CHECK(cuEventElapsedTime(&ms, a[i], b[i])); t.push_back(ms * 1000); }
    std::sort(t.begin(), t.end());
    printf("%.3f\n", t[25]);
}
