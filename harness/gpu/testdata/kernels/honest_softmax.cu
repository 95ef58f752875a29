// One warp a row, one pass: maximum and sum are kept up together.
/* ridgepoint
direction: online
launch:
  - {kernel: softmax_rows, grid: ["ceil_div(rows, 4)"], block: [32, 4], args: [x, y, rows, cols]}
*/
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + (size_t)row * cols;
    float* out = y + (size_t)row * cols;
    float most = -INFINITY, sum = 0.f;
    for (int j = threadIdx.x; j < cols; j += 32) {
        float v = in[j], top = fmaxf(most, v);
        sum = sum * expf(most - top) + expf(v - top);
        most = top;
    }
    for (int o = 16; o > 0; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, most, o), weight = __shfl_xor_sync(0xffffffffu, sum, o), top = fmaxf(most, other);
        float mine = most == -INFINITY ? 0.f : sum * expf(most - top), theirs = other == -INFINITY ? 0.f : weight * expf(other - top);
        sum = mine + theirs;
        most = top;
    }
    for (int j = threadIdx.x; j < cols; j += 32) out[j] = expf(in[j] - most) / sum;
}
