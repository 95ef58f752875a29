/* ridgepoint
direction: warp-per-row
launch:
  - kernel: softmax_warp_rows
    grid:  ["min(ceil_div(rows, WARPS), BLOCKS)"]
    block: [32, WARPS]
    args:  [input, output, rows, cols]
params:
  WARPS:  {values: [1, 2, 4, 8, 16]}           # rows of a block at a time
  UNROLL: {values: [1, 2, 4, 8]}               # float4 that a lane loads before it uses the first
  ONLINE: {values: [0, 1]}                     # 1: maximum and sum in one pass; 0: in two, the second from the cache
  BLOCKS: {values: [264, 528, 1056, 4096]}     # at most; then blocks take further rows
  STORE:  {values: [0, 1]}                     # 1: stores are marked as not used again
default: {WARPS: 4, UNROLL: 4, ONLINE: 1, BLOCKS: 528, STORE: 1}
*/

// One warp a row and nothing shared: lanes stride over the row, combine by shuffles, and read the row again from the cache to write.

__device__ __forceinline__ float exp2_fast(float x) {  // two units in the last place; results below 2^-126 are zero
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

#define LOG2E 1.44269504f
#define LOWEST (-3.402823466e38f)

__device__ __forceinline__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ __forceinline__ float max4(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }
__device__ __forceinline__ float4 exp4(float4 v, float offset) {
    return make_float4(exp2_fast((v.x - offset) * LOG2E), exp2_fast((v.y - offset) * LOG2E), exp2_fast((v.z - offset) * LOG2E),
                       exp2_fast((v.w - offset) * LOG2E));
}
__device__ __forceinline__ float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// UNROLL float4 from column c on, 128 columns apart; what lies past the row is the lowest float.
__device__ __forceinline__ void load(float4* v, const float* x, int c, int cols) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        int at = c + 128 * u;
        v[u] = at < cols ? *reinterpret_cast<const float4*>(x + at) : make_float4(LOWEST, LOWEST, LOWEST, LOWEST);
    }
}

__device__ __forceinline__ void statistics(const float* x, int cols, float& top, float& sum) {
    int lane = threadIdx.x;
    float4 v[UNROLL];
    top = LOWEST;
    sum = 0.0f;
#if ONLINE
    for (int c = 4 * lane; c < cols; c += 128 * UNROLL) {
        load(v, x, c, cols);
        float high = top;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) high = fmaxf(high, max4(v[u]));
        float offset = high, part = 0.0f;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (c + 128 * u < cols) part += sum4(exp4(v[u], offset));
        }
        sum = sum * exp2_fast((top - high) * LOG2E) + part;
        top = high;
    }
    float high = warp_max(top);
    sum = warp_sum(sum * exp2_fast((top - high) * LOG2E));
    top = high;
#else
    for (int c = 4 * lane; c < cols; c += 128 * UNROLL) {
        load(v, x, c, cols);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) top = fmaxf(top, max4(v[u]));
    }
    top = warp_max(top);
    for (int c = 4 * lane; c < cols; c += 128 * UNROLL) {
        load(v, x, c, cols);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (c + 128 * u < cols) sum += sum4(exp4(v[u], top));
        }
    }
    sum = warp_sum(sum);
#endif
}

__device__ __forceinline__ void vector_row(const float* x, float* y, int cols) {
    float top, sum;
    statistics(x, cols, top, sum);
    float offset = top, factor = 1.0f / sum;
    for (int c = 4 * (int)threadIdx.x; c < cols; c += 128 * UNROLL) {
        float4 v[UNROLL];
        load(v, x, c, cols);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            float4 e = exp4(v[u], offset);
            e = make_float4(e.x * factor, e.y * factor, e.z * factor, e.w * factor);
            float4* at = reinterpret_cast<float4*>(y + c + 128 * u);
            if (c + 128 * u < cols) {
                if (STORE) __stcs(at, e);
                else *at = e;
            }
        }
    }
}

__device__ __forceinline__ void scalar_row(const float* x, float* y, int cols) {
    float top = LOWEST, sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, x[c]);
    top = warp_max(top);
    float offset = top;
    for (int c = threadIdx.x; c < cols; c += 32) sum += exp2_fast((x[c] - offset) * LOG2E);
    float factor = 1.0f / warp_sum(sum);
    for (int c = threadIdx.x; c < cols; c += 32) y[c] = exp2_fast((x[c] - offset) * LOG2E) * factor;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) softmax_warp_rows(const float* __restrict__ input,
                                                                           float* __restrict__ output, int rows, int cols) {
    bool aligned = (cols & 3) < 1;  // else rows start anywhere
    for (long r = (long)blockIdx.x * WARPS + threadIdx.y; r < rows; r += (long)gridDim.x * WARPS) {
        if (aligned) vector_row(input + r * cols, output + r * cols, cols);
        else scalar_row(input + r * cols, output + r * cols, cols);
    }
}
