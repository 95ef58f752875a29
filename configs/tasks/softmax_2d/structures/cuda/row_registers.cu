/* ridgepoint
direction: row-in-registers
launch:
  - kernel: softmax_registers
    grid: ["ceil_div(rows, ROWS * max(1, BLOCK // min(1024, max(32, next_pow2(ceil_div(cols, 4 * PER))))))"]
    block:
      - "min(1024, max(32, next_pow2(ceil_div(cols, 4 * PER))))"
      - "max(1, BLOCK // min(1024, max(32, next_pow2(ceil_div(cols, 4 * PER)))))"
    args: [input, output, rows, cols]
params:
  PER:   {values: [1, 2, 4, 8]}                # float4 of a row that one thread holds
  ROWS:  {values: [1, 2, 4]}                   # rows that one group of threads loads before it works on the first
  BLOCK: {values: [32, 64, 128, 256, 512]}     # threads of a block, where a row takes fewer
  LOAD:  {values: [0, 1]}                      # 1: loads are marked as used once
  STORE: {values: [0, 1]}                      # 1: stores are marked as not used again
constraints: ["PER * ROWS <= 8"]
default: {PER: 4, ROWS: 1, BLOCK: 128, LOAD: 0, STORE: 0}
*/

// A row stays in the registers of the threads that share it: a power of two of them, at least a warp, so that each holds PER float4.
// One read, one write, one barrier: every warp works with its own maximum, and the warps' (maximum, sum) pairs meet once.
// Rows too long for that are read three times.

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
#define MINUS_INFINITY (-__int_as_float(0x7f800000))

__device__ __forceinline__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// What is subtracted before the exponential: the maximum; 0 where there was no element, so that exp2(-inf - 0) gives 0 and not NaN.
__device__ __forceinline__ float offset_of(float top) { return top == MINUS_INFINITY ? 0.0f : top; }

// From a warp's maximum and sum to the factor of its exponentials: exp(warp maximum - row maximum) / row sum.
__device__ __forceinline__ float factor_of(float top, float sum, float2* pairs) {
    int warps = blockDim.x >> 5, warp = threadIdx.x >> 5;
    if (warps > 1) {
        float2* mine = pairs + threadIdx.y * warps;
        if ((threadIdx.x & 31) < 1) mine[warp] = make_float2(top, sum);
        __syncthreads();
        float high = MINUS_INFINITY, total = 0.0f;
        for (int i = 0; i < warps; i++) high = fmaxf(high, mine[i].x);
        float offset = offset_of(high);
        for (int i = 0; i < warps; i++) total += mine[i].y * exp2_fast((mine[i].x - offset) * LOG2E);
        return exp2_fast((top - offset) * LOG2E) / total;
    }
    return 1.0f / sum;
}

__device__ __forceinline__ float4 load(const float4* p) { return LOAD ? __ldcs(p) : *p; }
__device__ __forceinline__ float load(const float* p) { return LOAD ? __ldcs(p) : *p; }
__device__ __forceinline__ void store(float4* p, float4 v) {
    if (STORE) __stcs(p, v);
    else *p = v;
}
__device__ __forceinline__ void store(float* p, float v) {
    if (STORE) __stcs(p, v);
    else *p = v;
}

__device__ __forceinline__ void load_row(float* v, const float* x, int cols, bool live) {
    int t = threadIdx.x, step = blockDim.x;
    if ((cols & 3) < 1) {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            int c = 4 * (i * step + t);
            float4 q = make_float4(MINUS_INFINITY, MINUS_INFINITY, MINUS_INFINITY, MINUS_INFINITY);
            if (live && c < cols) q = load(reinterpret_cast<const float4*>(x + c));
            v[4 * i] = q.x, v[4 * i + 1] = q.y, v[4 * i + 2] = q.z, v[4 * i + 3] = q.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4 * PER; i++) {
            int c = i * step + t;
            v[i] = live && c < cols ? load(x + c) : MINUS_INFINITY;
        }
    }
}

__device__ __forceinline__ void store_row(const float* v, float* y, int cols, float factor) {
    int t = threadIdx.x, step = blockDim.x;
    if ((cols & 3) < 1) {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            int c = 4 * (i * step + t);
            float4 q = make_float4(v[4 * i] * factor, v[4 * i + 1] * factor, v[4 * i + 2] * factor, v[4 * i + 3] * factor);
            if (c < cols) store(reinterpret_cast<float4*>(y + c), q);
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4 * PER; i++) {
            int c = i * step + t;
            if (c < cols) store(y + c, v[i] * factor);
        }
    }
}

__device__ void long_row(const float* x, float* y, int cols, float2* pairs) {
    float top = MINUS_INFINITY, sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) top = fmaxf(top, x[c]);
    top = warp_max(top);
    float offset = offset_of(top);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += exp2_fast((x[c] - offset) * LOG2E);
    float factor = factor_of(top, warp_sum(sum), pairs);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] = exp2_fast((x[c] - offset) * LOG2E) * factor;
}

extern "C" __global__ void __launch_bounds__(1024) softmax_registers(const float* __restrict__ input, float* __restrict__ output,
                                                                     int rows, int cols) {
    __shared__ float2 pairs[ROWS][32];
    float v[ROWS][4 * PER];
    long first = ((long)blockIdx.x * blockDim.y + threadIdx.y) * ROWS;
    if (cols > (int)blockDim.x * 4 * PER) {
        for (int r = 0; r < ROWS; r++) {
            if (first + r < rows) long_row(input + (first + r) * cols, output + (first + r) * cols, cols, pairs[r]);
        }
        return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) load_row(v[r], input + (first + r) * cols, cols, first + r < rows);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float top = MINUS_INFINITY, sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 4 * PER; i++) top = fmaxf(top, v[r][i]);
        top = warp_max(top);
        float offset = offset_of(top);
#pragma unroll
        for (int i = 0; i < 4 * PER; i++) {
            v[r][i] = exp2_fast((v[r][i] - offset) * LOG2E);
            sum += v[r][i];
        }
        float factor = factor_of(top, warp_sum(sum), pairs[r]);
        if (first + r < rows) store_row(v[r], output + (first + r) * cols, cols, factor);
    }
}
