// Sums in half precision.
#include <cuda_fp16.h>
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    if (threadIdx.x != 0) return;
    __half sum = __float2half(0.f);
    for (int j = 0; j < cols; ++j) sum = __hadd(sum, __float2half(x[(size_t)blockIdx.x * cols + j]));
    y[blockIdx.x] = __half2float(sum);
}
