/* ridgepoint
direction: block-per-row
launch:
  - kernel: softmax_block
    grid: [rows]
    block: [32]
    args: [input, output, rows, cols]
params:
  UNROLL: {values: [1, 2, 4]}
default: {UNROLL: 2}
*/
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ __forceinline__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

extern "C" __global__ void softmax_block(const float *input, float *output, int rows, int cols) {
    int row = blockIdx.x;
    if (row >= rows) return;
    const float *x = input + (size_t)row * cols;
    float *y = output + (size_t)row * cols;
    float top = -INFINITY, sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, x[c]);
    top = warp_max(top);
#pragma unroll UNROLL
    for (int c = threadIdx.x; c < cols; c += 32) sum += __expf(x[c] - top);
    sum = warp_sum(sum);
    for (int c = threadIdx.x; c < cols; c += 32) y[c] = __expf(x[c] - top) / sum;
}
