/* ridgepoint
direction: bulk-copies
launch:
  - kernel: softmax_bulk
    grid:  ["min(ceil_div(rows, WARPS), BLOCKS)"]
    block: [32, WARPS]
    shared_bytes: "256 + WARPS * STAGES * min(ceil_div(cols, 4) * 16, ROW_BYTES)"
    args:  [input, output, rows, cols]
requires: {toolkit: ">=12.0"}
params:
  WARPS:     {values: [1, 2, 4, 6, 8]}             # warps of a block: each takes whole rows
  STAGES:    {values: [2, 3, 4]}                   # rows of a warp on their way or in use
  BLOCKS:    {values: [132, 264, 528, 1056, 2112]} # at most; then warps take further rows
  UNROLL:    {values: [1, 2, 4, 8]}                # float4 that a lane reads from the row's copy at once
  ROW_BYTES: {values: [4096, 8192, 16640]}         # longest row that is copied; longer ones are read where they lie
  BULK_OUT:  {values: [0, 1]}                      # 1: results leave by bulk copies too, from where the row lay
constraints: ["256 + WARPS * STAGES * ROW_BYTES <= 232448"]
default: {WARPS: 4, STAGES: 3, BLOCKS: 264, UNROLL: 8, ROW_BYTES: 16640, BULK_OUT: 0}
*/

// Hopper's bulk copy engine brings whole rows into shared memory while the warp works on an earlier one: one lane asks for a row, and a
// barrier in shared memory counts its bytes. Every warp has its own ring of rows and its own barriers, so that no block ever waits.
// Rows that do not start on 16 bytes, or are too long, are read where they lie.

#define LOG2E 1.44269504f
#define LOWEST (-3.402823466e38f)

__device__ __forceinline__ float exp2_fast(float x) {  // two units in the last place; results below 2^-126 are zero
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(void* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

// Asks for `bytes` from global memory; the barrier's phase ends when they have arrived.
__device__ __forceinline__ void bulk_in(void* to, const void* from, unsigned bytes, void* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(void* barrier, unsigned phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(phase)
        : "memory");
}

__device__ __forceinline__ void bulk_out(void* to, const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
__device__ __forceinline__ float4 exp4(float4 v, float offset) {
    return make_float4(exp2_fast((v.x - offset) * LOG2E), exp2_fast((v.y - offset) * LOG2E), exp2_fast((v.z - offset) * LOG2E),
                       exp2_fast((v.w - offset) * LOG2E));
}

// The row that lies in shared memory: maximum; exponentials, put back, and their sum; results.
__device__ __forceinline__ void copied_row(float4* row, float4* out, int quads) {
    int lane = threadIdx.x;
    float top = LOWEST, sum = 0.0f;
#pragma unroll UNROLL
    for (int q = lane; q < quads; q += 32) {
        float4 v = row[q];
        top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    top = warp_max(top);
    float offset = top;
#pragma unroll UNROLL
    for (int q = lane; q < quads; q += 32) {
        float4 e = exp4(row[q], offset);
        sum += (e.x + e.y) + (e.z + e.w);
        row[q] = e;
    }
    float factor = 1.0f / warp_sum(sum);
#pragma unroll UNROLL
    for (int q = lane; q < quads; q += 32) {
        float4 e = row[q];
        e = make_float4(e.x * factor, e.y * factor, e.z * factor, e.w * factor);
        if (BULK_OUT) row[q] = e;
        else __stcs(out + q, e);
    }
}

__device__ __forceinline__ void plain_row(const float* x, float* y, int cols) {
    float top = LOWEST, sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, x[c]);
    top = warp_max(top);
    for (int c = threadIdx.x; c < cols; c += 32) sum += exp2_fast((x[c] - top) * LOG2E);
    float factor = 1.0f / warp_sum(sum);
    for (int c = threadIdx.x; c < cols; c += 32) y[c] = exp2_fast((x[c] - top) * LOG2E) * factor;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) softmax_bulk(const float* __restrict__ input, float* __restrict__ output,
                                                                      int rows, int cols) {
    extern __shared__ __align__(128) unsigned char memory[];
    int warp = threadIdx.y, lane = threadIdx.x, bytes = 4 * cols;
    long step = (long)gridDim.x * WARPS, first = (long)blockIdx.x * WARPS + warp;
    if ((cols & 3) > 0 || bytes > ROW_BYTES) {
        for (long r = first; r < rows; r += step) plain_row(input + r * cols, output + r * cols, cols);
        return;
    }
    unsigned long long* barriers = reinterpret_cast<unsigned long long*>(memory) + warp * STAGES;
    unsigned char* ring = memory + (8 * WARPS * STAGES + 127) / 128 * 128 + (size_t)warp * STAGES * bytes;
    if (lane < 1) {
        for (int s = 0; s < STAGES; s++) barrier_init(barriers + s);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int s = 0; s < STAGES; s++) {
            if (first + s * step < rows) bulk_in(ring + s * bytes, input + (first + s * step) * cols, bytes, barriers + s);
        }
    }
    __syncwarp();
    int stage = 0;
    unsigned phase = 0;
    for (long r = first; r < rows; r += step) {
        float4* row = reinterpret_cast<float4*>(ring + stage * bytes);
        barrier_wait(barriers + stage, phase);
        copied_row(row, reinterpret_cast<float4*>(output + r * cols), cols >> 2);
        // The copy engine reads and writes the row next: what the lanes did to it comes first.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane < 1) {
            long ahead = r + STAGES * step;
            if (BULK_OUT) {
                bulk_out(output + r * cols, row, bytes);
                if (ahead < rows) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            }
            if (ahead < rows) bulk_in(row, input + ahead * cols, bytes, barriers + stage);
        }
        if (++stage >= STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    if (BULK_OUT && lane < 1) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
