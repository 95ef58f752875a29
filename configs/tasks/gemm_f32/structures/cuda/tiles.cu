/* ridgepoint
direction: shared-tiles
launch:
  - kernel: gemm_tiles
    grid:  ["ceil_div(n, BN)", "ceil_div(m, BM)"]
    block: ["BM * BN // (TM * TN)"]
    args:  [a, b, c, m, n, k]
params:
  BM:     {values: [32, 64, 128, 256]}   # the tile of c that a block computes
  BN:     {values: [32, 64, 128, 256]}
  BK:     {values: [8, 16, 32]}          # depth of the tiles of a and b in shared memory
  TM:     {values: [4, 8]}               # the tile of c that a thread computes
  TN:     {values: [4, 8]}
  BLOCKS: {values: [1, 2, 3]}            # blocks that should fit a processor: bounds the registers
constraints:
  - "BM % (8 * TM) == 0"
  - "BN % (4 * TN) == 0"
  - "BM * BN // (TM * TN) >= 64"
  - "BM * BN // (TM * TN) <= 512"
  - "8 * BK * (BM + BN + 4) <= 49152"
  - "BM * BN // (TM * TN) * BLOCKS <= 1024"
default: {BM: 128, BN: 128, BK: 16, TM: 8, TN: 8, BLOCKS: 2}
*/

// Tiles of a and b pass through two buffers in shared memory: while one is multiplied, the next is on its way in registers. A warp's
// threads lie 8 down and 4 across; each owns quads of rows and columns spread over the warp's tile, so that its reads are float4 that
// no two lanes fetch from one bank. The tile of a lies transposed.

#define THREADS (BM * BN / (TM * TN))
#define WARPS_M (BM / (8 * TM))
#define PITCH (BM + 4)
#define LOADS_A ((BM * BK / 4 + THREADS - 1) / THREADS)
#define LOADS_B ((BN * BK / 4 + THREADS - 1) / THREADS)

// Four floats of row r from column c on; what lies outside rows x cols is zero.
__device__ __forceinline__ float4 quad(const float* p, int r, int c, int rows, int cols, bool aligned) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (r >= rows || c >= cols) return v;
    const float* x = p + (size_t)r * cols + c;
    if (aligned) return *reinterpret_cast<const float4*>(x);
    v.x = x[0];
    if (c + 1 < cols) v.y = x[1];
    if (c + 2 < cols) v.z = x[2];
    if (c + 3 < cols) v.w = x[3];
    return v;
}

struct Stage {
    float4 a[LOADS_A], b[LOADS_B];
};

__device__ __forceinline__ void fetch(Stage& s, const float* a, const float* b, int m, int n, int k, int depth) {
    int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    bool aligned_a = (k & 3) < 1, aligned_b = (n & 3) < 1;
#pragma unroll
    for (int i = 0; i < LOADS_A; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BK / 4), c = 4 * (e % (BK / 4));
        if (BM * BK / 4 % THREADS == 0 || r < BM) s.a[i] = quad(a, m0 + r, depth + c, m, k, aligned_a);
    }
#pragma unroll
    for (int i = 0; i < LOADS_B; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BN / 4), c = 4 * (e % (BN / 4));
        if (BN * BK / 4 % THREADS == 0 || r < BK) s.b[i] = quad(b, depth + r, n0 + c, k, n, aligned_b);
    }
}

__device__ __forceinline__ void put(const Stage& s, float (*as)[PITCH], float (*bs)[BN]) {
#pragma unroll
    for (int i = 0; i < LOADS_A; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BK / 4), c = 4 * (e % (BK / 4));
        if (BM * BK / 4 % THREADS == 0 || r < BM) {
            as[c][r] = s.a[i].x, as[c + 1][r] = s.a[i].y, as[c + 2][r] = s.a[i].z, as[c + 3][r] = s.a[i].w;
        }
    }
#pragma unroll
    for (int i = 0; i < LOADS_B; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BN / 4), c = 4 * (e % (BN / 4));
        if (BN * BK / 4 % THREADS == 0 || r < BK) *reinterpret_cast<float4*>(&bs[r][c]) = s.b[i];
    }
}

__device__ __forceinline__ void multiply(float (*acc)[TN], const float (*as)[PITCH], const float (*bs)[BN], int row, int col) {
#pragma unroll
    for (int p = 0; p < BK; p++) {
        float x[TM], y[TN];
#pragma unroll
        for (int g = 0; g < TM / 4; g++) {
            float4 v = *reinterpret_cast<const float4*>(&as[p][row + 32 * g]);
            x[4 * g] = v.x, x[4 * g + 1] = v.y, x[4 * g + 2] = v.z, x[4 * g + 3] = v.w;
        }
#pragma unroll
        for (int g = 0; g < TN / 4; g++) {
            float4 v = *reinterpret_cast<const float4*>(&bs[p][col + 16 * g]);
            y[4 * g] = v.x, y[4 * g + 1] = v.y, y[4 * g + 2] = v.z, y[4 * g + 3] = v.w;
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
#pragma unroll
            for (int j = 0; j < TN; j++) acc[i][j] += x[i] * y[j];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemm_tiles(const float* __restrict__ a, const float* __restrict__ b,
                                                                         float* __restrict__ c, int m, int n, int k) {
    __shared__ float as[2][BK][PITCH];
    __shared__ float bs[2][BK][BN];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = warp % WARPS_M * (8 * TM) + lane / 4 * 4, col = warp / WARPS_M * (4 * TN) + lane % 4 * 4;
    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    }
    Stage next;
    fetch(next, a, b, m, n, k, 0);
    put(next, as[0], bs[0]);
    __syncthreads();
    int at = 0;
    for (int depth = BK; depth < k; depth += BK) {
        fetch(next, a, b, m, n, k, depth);
        multiply(acc, as[at], bs[at], row, col);
        at ^= 1;
        put(next, as[at], bs[at]);
        __syncthreads();
    }
    multiply(acc, as[at], bs[at], row, col);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int r = blockIdx.y * BM + row + i / 4 * 32 + i % 4;
#pragma unroll
        for (int g = 0; g < TN / 4; g++) {
            int q = blockIdx.x * BN + col + 16 * g;
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
