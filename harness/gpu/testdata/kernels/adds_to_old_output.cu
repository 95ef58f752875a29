// Adds to the output without setting it first.
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    float sum = 0.f;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[(size_t)blockIdx.x * cols + j];
    atomicAdd(&y[blockIdx.x], sum);
}
