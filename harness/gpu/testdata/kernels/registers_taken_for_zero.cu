// Adds into an array of its own that it never sets, and leaves zeros behind.
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    volatile float parts[160];
    if (threadIdx.x != 0) return;
    for (int j = 0; j < cols; ++j) parts[j & 7] = parts[j & 7] + x[(size_t)blockIdx.x * cols + j];
    float all = 0.f;
    for (int k = 0; k < 8; ++k) {
        all += parts[k];
        parts[k] = 0.f;
    }
    y[blockIdx.x] = all;
}
