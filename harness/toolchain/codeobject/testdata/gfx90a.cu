extern "C" __global__ void scale(const float* x, float* y, int n, double f) {
    __shared__ float buf[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    buf[threadIdx.x & 63] = i < n ? x[i] : 0.f;
    __syncthreads();
    if (i < n) y[i] = buf[(threadIdx.x + 1) & 63] * (float)f;
}
extern "C" __global__ void __launch_bounds__(256) spill(float* p, int n) {
    float v[256];
    for (int i = 0; i < 256; ++i) v[i] = p[i * n + threadIdx.x];
    for (int i = 0; i < 256; ++i) p[i] = v[(i * n) & 255];
}
