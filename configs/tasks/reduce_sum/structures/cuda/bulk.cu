/* ridgepoint
direction: bulk-copies
launch:
  - kernel: sum_bulk
    grid:  ["min(ceil_div(rows, WARPS), BLOCKS)"]
    block: [32, WARPS]
    shared_bytes: "512 + WARPS * STAGES * CHUNK"
    args:  [input, output, rows, cols]
requires: {toolkit: ">=12.0"}
params:
  WARPS:  {values: [1, 2, 4, 8]}                # warps of a block: each takes whole rows
  STAGES: {values: [2, 3, 4, 6, 8]}             # chunks of a warp on their way or in use
  CHUNK:  {values: [1024, 2048, 4096, 8192]}    # bytes of one copy, at most
  BLOCKS: {values: [132, 264, 528, 1056]}       # at most; then warps take further rows
  FIRST:  {values: [0, 1]}                      # 1: what is read is the first to leave the L2 cache
constraints: ["512 + WARPS * STAGES * CHUNK <= 232448"]
default: {WARPS: 4, STAGES: 4, CHUNK: 4096, BLOCKS: 264, FIRST: 1}
*/

// Hopper's bulk copy engine streams every warp's rows through a ring of chunks in shared memory; the warp only adds. Few instructions,
// and as many bytes on their way as the rings hold. Rows that do not start on 16 bytes are read where they lie.

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ unsigned long long read_policy() {
    unsigned long long policy;
#if FIRST
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#else
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// Asks for `bytes` from global memory; the barrier's phase ends when they have arrived.
__device__ __forceinline__ void bulk_in(void* to, const void* from, unsigned bytes, void* barrier, unsigned long long policy) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
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

__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// The chunks of one warp in order: the rows first, first + step, ... cut into pieces of CHUNK bytes.
struct Cursor {
    long row, step;
    int rows, at, bytes;  // at: the next byte of the row; bytes: of a whole row
    __device__ __forceinline__ bool more() const { return row < rows; }
    __device__ __forceinline__ int size() const { return min(CHUNK, bytes - at); }
    __device__ __forceinline__ void next() {
        at += CHUNK;
        if (at >= bytes) {
            at = 0;
            row += step;
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS) sum_bulk(const float* __restrict__ input, float* __restrict__ output, int rows,
                                                                  int cols) {
    extern __shared__ __align__(128) unsigned char memory[];
    int warp = threadIdx.y, lane = threadIdx.x;
    Cursor ask = {(long)blockIdx.x * WARPS + warp, (long)gridDim.x * WARPS, rows, 0, 4 * cols}, take = ask;
    if ((cols & 3) > 0) {
        for (long r = ask.row; r < rows; r += ask.step) {
            float sum = 0.0f;
            for (int c = lane; c < cols; c += 32) sum += input[r * cols + c];
            sum = warp_sum(sum);
            if (lane < 1) output[r] = sum;
        }
        return;
    }
    unsigned long long* barriers = reinterpret_cast<unsigned long long*>(memory) + warp * STAGES;
    unsigned char* ring = memory + 512 + warp * STAGES * CHUNK;
    const unsigned char* source = reinterpret_cast<const unsigned char*>(input);
    unsigned long long policy = read_policy();
    if (lane < 1) {
        for (int s = 0; s < STAGES; s++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + s)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int s = 0; s < STAGES && ask.more(); s++, ask.next()) {
            bulk_in(ring + s * CHUNK, source + ask.row * ask.bytes + ask.at, ask.size(), barriers + s, policy);
        }
    }
    __syncwarp();
    int stage = 0;
    unsigned phase = 0;
    float sum = 0.0f;
    while (take.more()) {
        const float4* chunk = reinterpret_cast<const float4*>(ring + stage * CHUNK);
        int quads = take.size() / 16;
        bool last = take.at + CHUNK >= take.bytes;
        long row = take.row;
        barrier_wait(barriers + stage, phase);
#pragma unroll 4
        for (int q = lane; q < quads; q += 32) {
            float4 v = chunk[q];
            sum += (v.x + v.y) + (v.z + v.w);
        }
        __syncwarp();  // all lanes have read the chunk before it is filled again
        if (lane < 1 && ask.more()) {
            bulk_in(ring + stage * CHUNK, source + ask.row * ask.bytes + ask.at, ask.size(), barriers + stage, policy);
            ask.next();
        }
        if (last) {
            sum = warp_sum(sum);
            if (lane < 1) output[row] = sum;
            sum = 0.0f;
        }
        take.next();
        if (++stage >= STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
}
