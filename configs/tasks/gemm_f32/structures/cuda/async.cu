/* ridgepoint
direction: async-copies
launch:
  - kernel: gemm_async
    grid:  ["ceil_div(n, BN) * ceil_div(m, BM)"]
    block: ["BM * BN // (TM * TN)"]
    shared_bytes: "4 * STAGES * (BM * (BK + 4) + BK * BN)"
    args:  [a, b, c, m, n, k]
params:
  BM:     {values: [64, 128, 256]}     # the tile of c that a block computes
  BN:     {values: [64, 128, 256]}
  BK:     {values: [8, 16, 32]}        # depth of the tiles of a and b in shared memory
  TM:     {values: [4, 8]}             # the tile of c that a thread computes
  TN:     {values: [4, 8]}
  STAGES: {values: [2, 3, 4]}          # tiles on their way or in use
  GROUP:  {values: [1, 4, 8, 16]}      # rows of tiles that blocks walk together, for the sake of the L2 cache
  BLOCKS: {values: [1, 2]}             # blocks that should fit a processor: bounds the registers
constraints:
  - "BM * BN // (TM * TN) >= 64"
  - "BM * BN // (TM * TN) <= 512"
  - "BM * BN // (TM * TN) * BLOCKS <= 1024"
  - "4 * STAGES * (BM * (BK + 4) + BK * BN) * BLOCKS <= 229376"
default: {BM: 128, BN: 128, BK: 32, TM: 8, TN: 8, STAGES: 3, GROUP: 8, BLOCKS: 1}
*/

// Tiles of a and b are copied to shared memory without passing through registers (cp.async), STAGES deep; what lies outside the
// matrices is filled with zeros. The tile of a lies as it is, rows padded by a quad, and a thread reads four steps of its rows at once.

#define THREADS (BM * BN / (TM * TN))
#define WARPS_M (BM / (8 * TM))
#define PITCH (BK + 4)
#define STAGE (BM * PITCH + BK * BN)

template <int N> __device__ __forceinline__ void copy(float* to, const float* from, bool inside) {
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (N > 1) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(inside ? 4 : 0) : "memory");
    }
#else
    for (int i = 0; i < N; i++) to[i] = inside ? from[i] : 0.0f;
#endif
}

__device__ __forceinline__ void close_group() {
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the newest N groups of copies are under way.
template <int N> __device__ __forceinline__ void wait_groups() {
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// Four floats of row r from column c on.
__device__ __forceinline__ void copy_quad(float* to, const float* p, int r, int c, int rows, int cols, bool aligned) {
    bool inside = r < rows && c < cols;
    const float* from = p + (inside ? (size_t)r * cols + c : 0);
    if (aligned) {
        copy<4>(to, from, inside);
    } else {
        for (int i = 0; i < 4; i++) copy<1>(to + i, inside && c + i < cols ? from + i : p, inside && c + i < cols);
    }
}

__device__ __forceinline__ void copy_tiles(float* stage, const float* a, const float* b, int3 dims, int m0, int n0, int depth) {
    bool aligned_a = (dims.z & 3) < 1, aligned_b = (dims.y & 3) < 1;
    float* bs = stage + BM * PITCH;
#pragma unroll
    for (int e = threadIdx.x; e < BM * BK / 4; e += THREADS) {
        int r = e / (BK / 4), c = 4 * (e % (BK / 4));
        copy_quad(stage + r * PITCH + c, a, m0 + r, depth + c, dims.x, dims.z, aligned_a);
    }
#pragma unroll
    for (int e = threadIdx.x; e < BN * BK / 4; e += THREADS) {
        int r = e / (BN / 4), c = 4 * (e % (BN / 4));
        copy_quad(bs + r * BN + c, b, depth + r, n0 + c, dims.z, dims.y, aligned_b);
    }
}

__device__ __forceinline__ void multiply(float (*acc)[TN], const float* as, const float* bs) {
#pragma unroll
    for (int p = 0; p < BK; p += 4) {
        float x[TM][4];
#pragma unroll
        for (int i = 0; i < TM; i++) {
            float4 v = *reinterpret_cast<const float4*>(as + 8 * i * PITCH + p);
            x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
        }
#pragma unroll
        for (int s = 0; s < 4; s++) {
            float y[TN];
#pragma unroll
            for (int g = 0; g < TN / 4; g++) {
                float4 v = *reinterpret_cast<const float4*>(bs + (p + s) * BN + 16 * g);
                y[4 * g] = v.x, y[4 * g + 1] = v.y, y[4 * g + 2] = v.z, y[4 * g + 3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < TM; i++) {
#pragma unroll
                for (int j = 0; j < TN; j++) acc[i][j] += x[i][s] * y[j];
            }
        }
    }
}

__device__ __forceinline__ void write(const float (*acc)[TN], float* c, int m, int n, int row, int col) {
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int r = row + 8 * i;
#pragma unroll
        for (int g = 0; g < TN / 4; g++) {
            int q = col + 16 * g;
            if (r >= m || q >= n) continue;
            float* to = c + (size_t)r * n + q;
            if ((n & 3) < 1) {
                *reinterpret_cast<float4*>(to) = make_float4(acc[i][4 * g], acc[i][4 * g + 1], acc[i][4 * g + 2], acc[i][4 * g + 3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (q + j < n) to[j] = acc[i][4 * g + j];
                }
            }
        }
    }
}

// The block's tile: GROUP rows of tiles are walked column by column, so that blocks at work together share tiles of a and b.
__device__ __forceinline__ int2 tile_of(int block, int m, int n) {
    int down = (m + BM - 1) / BM, across = (n + BN - 1) / BN, band = block / (GROUP * across);
    int height = min(GROUP, down - band * GROUP), i = block - band * GROUP * across;
    return make_int2(band * GROUP + i % height, i / height);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemm_async(const float* __restrict__ a, const float* __restrict__ b,
                                                                         float* __restrict__ c, int m, int n, int k) {
    extern __shared__ float4 memory[];
    float* stages = reinterpret_cast<float*>(memory);
    int2 tile = tile_of(blockIdx.x, m, n);
    int m0 = tile.x * BM, n0 = tile.y * BN, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = warp % WARPS_M * (8 * TM) + lane / 4, col = warp / WARPS_M * (4 * TN) + lane % 4 * 4;
    int3 dims = make_int3(m, n, k);
    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    }
    for (int s = 0; s < STAGES - 1; s++) {
        if (s * BK < k) copy_tiles(stages + s * STAGE, a, b, dims, m0, n0, s * BK);
        close_group();
    }
    int at = 0, ahead = STAGES - 1;
    for (int depth = 0; depth < k; depth += BK) {
        wait_groups<STAGES - 2>();
        __syncthreads();  // the tile of this depth is there, and the stage that is filled next is no longer read
        if (depth + (STAGES - 1) * BK < k) copy_tiles(stages + ahead * STAGE, a, b, dims, m0, n0, depth + (STAGES - 1) * BK);
        close_group();
        multiply(acc, stages + at * STAGE + row * PITCH, stages + at * STAGE + BM * PITCH + col);
        at = at + 1 < STAGES ? at + 1 : 0;
        ahead = ahead + 1 < STAGES ? ahead + 1 : 0;
    }
    write(acc, c, m, n, m0 + row, n0 + col);
}
