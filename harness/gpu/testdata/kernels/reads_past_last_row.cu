// One element too many: that of the next row, and behind the last row whatever lies there.
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    if (threadIdx.x != 0) return;
    float sum = 0.f;
    for (int j = 0; j < cols; ++j) sum += x[(size_t)blockIdx.x * cols + j];
    if (blockIdx.x == gridDim.x - 1) sum += x[(size_t)rows * cols];
    y[blockIdx.x] = sum;
}
