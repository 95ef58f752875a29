/* ridgepoint
direction: online
launch:
  - kernel: softmax_online
    grid:  ["min(rows, BLOCKS)"]
    block: [THREADS]
    args:  [input, output, rows, cols]
params:
  THREADS: {values: [32, 64, 128, 256, 512, 1024]}
  UNROLL:  {values: [1, 2, 4]}                       # float4 that a thread takes between two looks at the maximum
  BLOCKS:  {values: [132, 264, 528, 1056, 4096]}     # at most; then a block takes further rows
  STORE:   {values: [0, 1]}                          # 1: stores are marked as not used again
default: {THREADS: 128, UNROLL: 4, BLOCKS: 4096, STORE: 1}
*/

// One block a row of any length. Each thread keeps the maximum it has seen and the sum of exponentials below it (Milakov and
// Gimelshein, arXiv 1805.02867); pairs are combined by shuffles and once through shared memory.

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

// Adds the pair (top, sum) of others to this one; maxima are finite, so that nothing is infinity minus infinity.
__device__ __forceinline__ void combine(float& top, float& sum, float other_top, float other_sum) {
    float high = fmaxf(top, other_top);
    sum = sum * exp2_fast((top - high) * LOG2E) + other_sum * exp2_fast((other_top - high) * LOG2E);
    top = high;
}

__device__ __forceinline__ void warp_combine(float& top, float& sum) {
    for (int o = 16; o > 0; o >>= 1) {
        float t = __shfl_xor_sync(0xffffffffu, top, o), s = __shfl_xor_sync(0xffffffffu, sum, o);
        combine(top, sum, t, s);
    }
}

__device__ __forceinline__ void take(float& top, float& sum, const float* v, int count) {
    float high = top, part = 0.0f;
    for (int i = 0; i < count; i++) high = fmaxf(high, v[i]);
    for (int i = 0; i < count; i++) part += exp2_fast((v[i] - high) * LOG2E);
    sum = sum * exp2_fast((top - high) * LOG2E) + part;
    top = high;
}

__device__ __forceinline__ float4 scaled(float4 v, float offset, float factor) {
    return make_float4(exp2_fast((v.x - offset) * LOG2E) * factor, exp2_fast((v.y - offset) * LOG2E) * factor,
                       exp2_fast((v.z - offset) * LOG2E) * factor, exp2_fast((v.w - offset) * LOG2E) * factor);
}

extern "C" __global__ void __launch_bounds__(THREADS) softmax_online(const float* __restrict__ input, float* __restrict__ output,
                                                                     int rows, int cols) {
    __shared__ float2 pairs[32];
    int t = threadIdx.x, quads = (cols & 3) < 1 ? cols >> 2 : 0;  // float4 of a row that starts aligned
    for (long r = blockIdx.x; r < rows; r += gridDim.x) {
        const float* x = input + r * cols;
        float* y = output + r * cols;
        const float4* x4 = reinterpret_cast<const float4*>(x);
        float4* y4 = reinterpret_cast<float4*>(y);
        float top = LOWEST, sum = 0.0f;
        int q = t;
        for (; q + (UNROLL - 1) * THREADS < quads; q += UNROLL * THREADS) {
            float v[4 * UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                float4 f = x4[q + u * THREADS];
                v[4 * u] = f.x, v[4 * u + 1] = f.y, v[4 * u + 2] = f.z, v[4 * u + 3] = f.w;
            }
            take(top, sum, v, 4 * UNROLL);
        }
        for (; q < quads; q += THREADS) {
            float4 f = x4[q];
            float v[4] = {f.x, f.y, f.z, f.w};
            take(top, sum, v, 4);
        }
        for (int c = 4 * quads + t; c < cols; c += THREADS) {
            float v = x[c];
            take(top, sum, &v, 1);
        }
        warp_combine(top, sum);
        if (THREADS > 32) {
            if ((t & 31) < 1) pairs[t >> 5] = make_float2(top, sum);
            __syncthreads();
            float2 p = (t & 31) < THREADS / 32 ? pairs[t & 31] : make_float2(LOWEST, 0.0f);
            __syncthreads();  // before the next row writes pairs
            top = p.x, sum = p.y;
            warp_combine(top, sum);
        }
        float offset = top, factor = 1.0f / sum;
        for (int i = t; i < quads; i += THREADS) {
            float4 e = scaled(x4[i], offset, factor);
            if (STORE) __stcs(y4 + i, e);
            else y4[i] = e;
        }
        for (int c = 4 * quads + t; c < cols; c += THREADS) y[c] = exp2_fast((x[c] - offset) * LOG2E) * factor;
    }
}
