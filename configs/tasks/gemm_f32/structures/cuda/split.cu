/* ridgepoint
direction: split-depth
launch:
  - kernel: gemm_parts
    grid:  ["ceil_div(n, BN)", "ceil_div(m, BM)", "min(SPLITS, ceil_div(k, 4 * BK), ceil_div(FILL, ceil_div(n, BN) * ceil_div(m, BM)))"]
    block: ["BM * BN // (TM * TN)"]
    args:  [a, b, c, parts, m, n, k]
  - kernel: gemm_combine
    grid:  ["1 if min(SPLITS, ceil_div(k, 4 * BK), ceil_div(FILL, ceil_div(n, BN) * ceil_div(m, BM))) < 2 else ceil_div(m * n, 1024)"]
    block: [256]
    args:  [c, parts, m, n, k]
workspace:
  parts:
    shape: ["min(SPLITS, ceil_div(k, 4 * BK), ceil_div(FILL, ceil_div(n, BN) * ceil_div(m, BM)))", m, n]
    dtype: float32
    init: none
params:
  BM:     {values: [32, 64, 128]}        # the tile of c that a block computes
  BN:     {values: [32, 64, 128]}
  BK:     {values: [8, 16, 32]}          # depth of the tiles of a and b in shared memory
  TM:     {values: [4, 8]}               # the tile of c that a thread computes
  TN:     {values: [4, 8]}
  SPLITS: {values: [1, 2, 4, 8, 16]}     # blocks that share the depth of one tile of c, at most
  FILL:   {values: [132, 264, 528]}      # blocks below which the depth is shared
  BLOCKS: {values: [1, 2]}               # blocks that should fit a processor: bounds the registers
constraints:
  - "BM % (8 * TM) == 0"
  - "BN % (4 * TN) == 0"
  - "BM * BN // (TM * TN) >= 64"
  - "BM * BN // (TM * TN) <= 512"
  - "8 * BK * (BM + BN + 4) <= 49152"
  - "BM * BN // (TM * TN) * BLOCKS <= 1024"
default: {BM: 128, BN: 128, BK: 16, TM: 8, TN: 8, SPLITS: 8, FILL: 132, BLOCKS: 2}
*/

// As shared tiles, but where c has too few tiles to fill the card, several blocks share the depth of one: each writes its part to
// scratch memory, and a second kernel adds the parts.

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

__device__ __forceinline__ void fetch(Stage& s, const float* a, const float* b, int m, int n, int k, int depth, int end) {
    int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    bool aligned_a = (k & 3) < 1, aligned_b = (n & 3) < 1;
#pragma unroll
    for (int i = 0; i < LOADS_A; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BK / 4), c = 4 * (e % (BK / 4));
        if (BM * BK / 4 % THREADS == 0 || r < BM) s.a[i] = depth + c < end ? quad(a, m0 + r, depth + c, m, k, aligned_a) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int i = 0; i < LOADS_B; i++) {
        int e = i * THREADS + (int)threadIdx.x, r = e / (BN / 4), c = 4 * (e % (BN / 4));
        if (BN * BK / 4 % THREADS == 0 || r < BK) s.b[i] = quad(b, depth + r, n0 + c, end, n, aligned_b);
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

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemm_parts(const float* __restrict__ a, const float* __restrict__ b,
                                                                         float* __restrict__ c, float* __restrict__ parts, int m,
                                                                         int n, int k) {
    __shared__ float as[2][BK][PITCH];
    __shared__ float bs[2][BK][BN];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = warp % WARPS_M * (8 * TM) + lane / 4 * 4, col = warp / WARPS_M * (4 * TN) + lane % 4 * 4;
    // This block's depths: whole tiles of BK, as even as they go; a part may be empty and then is zero.
    int tiles = (k + BK - 1) / BK, share = (tiles + gridDim.z - 1) / gridDim.z;
    int from = min(k, (int)blockIdx.z * share * BK), end = min(k, from + share * BK);
    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    }
    Stage next;
    fetch(next, a, b, m, n, k, from, end);
    put(next, as[0], bs[0]);
    __syncthreads();
    int at = 0;
    for (int depth = from + BK; depth < end; depth += BK) {
        fetch(next, a, b, m, n, k, depth, end);
        multiply(acc, as[at], bs[at], row, col);
        at ^= 1;
        put(next, as[at], bs[at]);
        __syncthreads();
    }
    multiply(acc, as[at], bs[at], row, col);
    float* out = gridDim.z > 1 ? parts + (size_t)blockIdx.z * m * n : c;
    bool aligned = (n & 3) < 1;
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int r = blockIdx.y * BM + row + i / 4 * 32 + i % 4;
#pragma unroll
        for (int g = 0; g < TN / 4; g++) {
            int q = blockIdx.x * BN + col + 16 * g;
            if (r >= m || q >= n) continue;
            float* to = out + (size_t)r * n + q;
            if (aligned) {
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

// The number of parts, by the formula of the launch.
__device__ __forceinline__ int parts_of(int m, int n, int k) {
    int tiles = ((n + BN - 1) / BN) * ((m + BM - 1) / BM);
    return min(SPLITS, min((k + 4 * BK - 1) / (4 * BK), (FILL + tiles - 1) / tiles));
}

extern "C" __global__ void __launch_bounds__(256) gemm_combine(float* __restrict__ c, const float* __restrict__ parts, int m, int n,
                                                               int k) {
    int count = parts_of(m, n, k);
    if (count < 2) return;  // the first kernel wrote c itself
    size_t total = (size_t)m * n, i = 4 * ((size_t)blockIdx.x * 256 + threadIdx.x);
    if ((total & 3) < 1 && i < total) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int p = 0; p < count; p++) {
            float4 v = *reinterpret_cast<const float4*>(parts + p * total + i);
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        *reinterpret_cast<float4*>(c + i) = sum;
        return;
    }
    for (size_t e = i; e < i + 4 && e < total; e++) {
        float sum = 0.0f;
        for (int p = 0; p < count; p++) sum += parts[p * total + e];
        c[e] = sum;
    }
}
