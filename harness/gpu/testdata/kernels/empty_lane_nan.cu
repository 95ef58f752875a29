// Lanes without elements bring minus infinity less minus infinity.
/* ridgepoint
direction: warp
launch:
  - {kernel: softmax_rows, grid: [rows], block: [32], args: [x, y, rows, cols]}
*/
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    const float* in = x + (size_t)blockIdx.x * cols;
    float m = -INFINITY, s = 0.f;
    for (int j = threadIdx.x; j < cols; j += 32) m = fmaxf(m, in[j]);
    for (int j = threadIdx.x; j < cols; j += 32) s += expf(in[j] - m);
    for (int o = 16; o > 0; o >>= 1) {
        float n = __shfl_xor_sync(0xffffffffu, m, o), t = __shfl_xor_sync(0xffffffffu, s, o), top = fmaxf(m, n);
        s = s * expf(m - top) + t * expf(n - top);
        m = top;
    }
    for (int j = threadIdx.x; j < cols; j += 32) y[(size_t)blockIdx.x * cols + j] = expf(in[j] - m) / s;
}
