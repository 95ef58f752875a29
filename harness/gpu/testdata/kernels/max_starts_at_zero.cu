// The largest of a row is at least zero, it thinks: a row far below zero vanishes.
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    const float* in = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    if (threadIdx.x != 0) return;
    float m = 0.f;
    for (int j = 0; j < cols; ++j) m = fmaxf(m, in[j]);
    float s = 0.f;
    for (int j = 0; j < cols; ++j) s += expf(in[j] - m);
    for (int j = 0; j < cols; ++j) out[j] = expf(in[j] - m) / s;
}
