// Holds four numbers a thread, and so 1024 a row; longer rows lose their end.
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    __shared__ float parts[256];
    const float* in = x + (size_t)blockIdx.x * cols;
    float v[4], m = -3.4e38f, s = 0.f;
    for (int k = 0; k < 4; ++k) {
        int j = k * 256 + threadIdx.x;
        v[k] = j < cols ? in[j] : -3.4e38f;
        m = fmaxf(m, v[k]);
    }
    parts[threadIdx.x] = m;
    __syncthreads();
    for (int k = 0; k < 256; ++k) m = fmaxf(m, parts[k]);
    for (int k = 0; k < 4; ++k) s += v[k] > -3e38f ? expf(v[k] - m) : 0.f;
    __syncthreads();
    parts[threadIdx.x] = s;
    __syncthreads();
    s = 0.f;
    for (int k = 0; k < 256; ++k) s += parts[k];
    for (int j = threadIdx.x; j < cols; j += 256) y[(size_t)blockIdx.x * cols + j] = expf(in[j] - m) / s;
}
