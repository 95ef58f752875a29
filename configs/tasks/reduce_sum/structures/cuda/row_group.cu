/* ridgepoint
direction: threads-per-row
launch:
  - kernel: sum_row_group
    grid: ["ceil_div(rows, max(1, BLOCK // min(BLOCK, max(32, next_pow2(ceil_div(cols, 4 * PER))))))"]
    block:
      - "min(BLOCK, max(32, next_pow2(ceil_div(cols, 4 * PER))))"
      - "max(1, BLOCK // min(BLOCK, max(32, next_pow2(ceil_div(cols, 4 * PER)))))"
    args: [input, output, rows, cols]
params:
  PER:   {values: [1, 2, 4, 8, 16]}           # float4 that one thread should read of a row
  BLOCK: {values: [32, 64, 128, 256, 512, 1024]}
  BATCH: {values: [1, 2, 4, 8]}               # loads in flight a thread
  LOAD:  {values: [0, 1, 2]}                  # 1: marked as used once; 2: and first to leave the L2 cache
constraints: ["BATCH <= PER"]
default: {PER: 4, BLOCK: 128, BATCH: 4, LOAD: 2}
*/

// As many threads share a row as give each PER float4, at least a warp and at most a block; short rows share a block.

// What is read goes before anything else that the L2 cache holds: lines that wait there to be written need not make room for it.
__device__ __forceinline__ float4 load(const float4* p) {
#if LOAD == 2 && defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    float4 v;
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy;\n"
        "}\n"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(p));
    return v;
#else
    return LOAD ? __ldcs(p) : *p;
#endif
}
__device__ __forceinline__ float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }

extern "C" __global__ void __launch_bounds__(BLOCK) sum_row_group(const float* __restrict__ input, float* __restrict__ output,
                                                                  int rows, int cols) {
    __shared__ float parts[32];
    int t = threadIdx.x, step = blockDim.x;
    long row = (long)blockIdx.x * blockDim.y + threadIdx.y;
    bool live = row < rows;
    const float* x = input + row * cols;
    float sum = 0.0f;
    if (live && (cols & 3) < 1) {
        const float4* x4 = reinterpret_cast<const float4*>(x);
        int quads = cols >> 2, q = t;
        float part[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) part[b] = 0.0f;
        for (; q + (BATCH - 1) * step < quads; q += BATCH * step) {
            float4 v[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) v[b] = load(x4 + q + b * step);
#pragma unroll
            for (int b = 0; b < BATCH; b++) part[b] += sum4(v[b]);
        }
        for (; q < quads; q += step) part[0] += sum4(load(x4 + q));
#pragma unroll
        for (int b = 0; b < BATCH; b++) sum += part[b];
    } else if (live) {
        for (int c = t; c < cols; c += step) sum += x[c];
    }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    int warps = step >> 5;
    if (warps > 1) {
        float* mine = parts + threadIdx.y * warps;
        if ((t & 31) < 1) mine[t >> 5] = sum;
        __syncthreads();
        if (t < 32) {
            sum = t < warps ? mine[t] : 0.0f;
            for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        }
    }
    if (live && t < 1) output[row] = sum;
}
