/* ridgepoint
direction: swizzled-vectors
launch:
  - kernel: transpose_vectors
    grid:
      - "ceil_div(cols, 8 * LANES if rows * cols <= DIRECT else TILE_C)"
      - "ceil_div(rows, 256 // LANES if rows * cols <= DIRECT else TILE_R)"
    block: ["128 if rows * cols <= DIRECT else TILE_R * TILE_C // (16 * ITEMS)"]
    args:  [input, output, rows, cols]
params:
  DIRECT:  {values: [0, 262144, 1048576, 2097152, 4194304, 1073741824]}  # elements up to which nothing goes through shared memory
  LANES:   {values: [2, 4, 8, 16], when: "DIRECT > 0"}            # there: lanes of a warp along the columns; the others along rows
  TILE_R:  {values: [32, 64, 128], when: "DIRECT < 1073741824"}
  TILE_C:  {values: [32, 64, 128], when: "DIRECT < 1073741824"}
  ITEMS:   {values: [1, 2, 4], when: "DIRECT < 1073741824"}       # 4x4 blocks of a thread
  SWIZZLE: {values: [0, 1], when: "DIRECT < 1073741824"}          # 1: quads of a tile line are permuted so that lanes meet no bank twice
  STORE:   {values: [0, 1]}                                       # 1: stores are marked as not used again
constraints:
  - "TILE_R * TILE_C <= 8192"
  - "TILE_R * TILE_C // (16 * ITEMS) >= 32"
  - "TILE_R * TILE_C // (16 * ITEMS) <= 1024"
default: {DIRECT: 2097152, LANES: 4, TILE_R: 64, TILE_C: 64, ITEMS: 2, SWIZZLE: 1, STORE: 0}
*/

// Every thread reads 4x4 blocks as four float4 and turns them in its registers. Small matrices are written from there: a barrier costs
// them more than it brings, and lanes are laid so that a warp's reads and writes both fill sectors of 32 bytes, which is what memory
// moves. Large ones go as float4 through a tile of the output, which is then written along its rows. Matrices whose sides are no
// multiples of 4 go by single floats.

#define THREADS (TILE_R * TILE_C / (16 * ITEMS))

__device__ __forceinline__ void store(float4* at, float4 v) {
    if (STORE) __stcs(at, v);
    else *at = v;
}

// Where the quad `q` of line `c` of an output tile with `quads` quads a line lies.
__device__ __forceinline__ int place(int c, int q, int quads) { return c * quads + (SWIZZLE ? q ^ ((c >> 2) & (quads - 1)) : q); }

template <int R, int C, int N>  // rows and columns of a tile, threads
__device__ __forceinline__ void scalar_tile(const float* input, float* output, int rows, int cols, float* tile) {
    int c0 = blockIdx.x * C, r0 = blockIdx.y * R;
    for (int part = 0; part < C; part += 16) {  // 16 columns at a time, a line of the tile padded by one
        for (int i = threadIdx.x; i < R * 16; i += N) {
            int r = i / 16, c = part + i % 16;
            if (r0 + r < rows && c0 + c < cols) tile[r * 17 + i % 16] = input[(size_t)(r0 + r) * cols + c0 + c];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < R * 16; i += N) {
            int c = part + i / R, r = i % R;
            if (r0 + r < rows && c0 + c < cols) output[(size_t)(c0 + c) * rows + r0 + r] = tile[r * 17 + i / R];
        }
        __syncthreads();
    }
}

template <int R, int C, int K>  // rows and columns of a tile, 4x4 blocks of a thread
__device__ __forceinline__ void turn(const float* __restrict__ input, float* __restrict__ output, int rows, int cols) {
    __shared__ float4 tile[R * C / 4];
    constexpr int N = R * C / (16 * K), QUADS_R = R / 4, QUADS_C = C / 4;
    if (((rows | cols) & 3) > 0) {
        scalar_tile<R, C, N>(input, output, rows, cols, reinterpret_cast<float*>(tile));
        return;
    }
    int c0 = blockIdx.x * C, r0 = blockIdx.y * R;
    float4 v[K][4];
#pragma unroll
    for (int k = 0; k < K; k++) {
        int i = k * N + (int)threadIdx.x, c = c0 + 4 * (i % QUADS_C), r = r0 + 4 * (i / QUADS_C);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[k][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (r < rows && c < cols) v[k][j] = *reinterpret_cast<const float4*>(input + (size_t)(r + j) * cols + c);
        }
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        int i = k * N + (int)threadIdx.x, c = 4 * (i % QUADS_C), q = i / QUADS_C;
        tile[place(c, q, QUADS_R)] = make_float4(v[k][0].x, v[k][1].x, v[k][2].x, v[k][3].x);
        tile[place(c + 1, q, QUADS_R)] = make_float4(v[k][0].y, v[k][1].y, v[k][2].y, v[k][3].y);
        tile[place(c + 2, q, QUADS_R)] = make_float4(v[k][0].z, v[k][1].z, v[k][2].z, v[k][3].z);
        tile[place(c + 3, q, QUADS_R)] = make_float4(v[k][0].w, v[k][1].w, v[k][2].w, v[k][3].w);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4 * K; k++) {
        int i = k * N + (int)threadIdx.x, c = i / QUADS_R, q = i % QUADS_R;
        if (c0 + c < cols && r0 + 4 * q < rows) {
            store(reinterpret_cast<float4*>(output + (size_t)(c0 + c) * rows + r0 + 4 * q), tile[place(c, q, QUADS_R)]);
        }
    }
}

// One 4x4 block by each of 128 threads, four warps as two times two.
__device__ __forceinline__ void direct(const float* __restrict__ input, float* __restrict__ output, int rows, int cols) {
    constexpr int ROW_LANES = 32 / LANES;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int c = 4 * ((2 * blockIdx.x + (warp & 1)) * LANES + lane % LANES), r = 4 * ((2 * blockIdx.y + (warp >> 1)) * ROW_LANES + lane / LANES);
    if (((rows | cols) & 3) > 0) {
        for (int i = 0; i < 16; i++) {
            if (r + i / 4 < rows && c + i % 4 < cols) output[(size_t)(c + i % 4) * rows + r + i / 4] = input[(size_t)(r + i / 4) * cols + c + i % 4];
        }
        return;
    }
    if (r >= rows || c >= cols) return;
    float4 v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = *reinterpret_cast<const float4*>(input + (size_t)(r + j) * cols + c);
    float4* at = reinterpret_cast<float4*>(output + (size_t)c * rows + r);
    size_t step = rows >> 2;
    store(at, make_float4(v[0].x, v[1].x, v[2].x, v[3].x));
    store(at + step, make_float4(v[0].y, v[1].y, v[2].y, v[3].y));
    store(at + 2 * step, make_float4(v[0].z, v[1].z, v[2].z, v[3].z));
    store(at + 3 * step, make_float4(v[0].w, v[1].w, v[2].w, v[3].w));
}

extern "C" __global__ void __launch_bounds__(THREADS > 128 ? THREADS : 128) transpose_vectors(const float* __restrict__ input, float* __restrict__ output,
                                                                                              int rows, int cols) {
    if ((long long)rows * cols <= DIRECT) direct(input, output, rows, cols);
#if DIRECT < 1073741824
    else turn<TILE_R, TILE_C, ITEMS>(input, output, rows, cols);
#endif
}
