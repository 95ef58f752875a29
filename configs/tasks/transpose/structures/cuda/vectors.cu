/* ridgepoint
direction: swizzled-vectors
launch:
  - kernel: transpose_vectors
    grid:
      - "ceil_div(cols, 32 if rows * cols <= SMALL else TILE_C)"
      - "ceil_div(rows, 32 if rows * cols <= SMALL else TILE_R)"
    block: ["256 if rows * cols <= SMALL else TILE_R * TILE_C // (16 * ITEMS)"]
    args:  [input, output, rows, cols]
params:
  TILE_R:  {values: [32, 64, 128]}
  TILE_C:  {values: [32, 64, 128]}
  ITEMS:   {values: [1, 2, 4]}             # 4x4 blocks of a thread
  SWIZZLE: {values: [0, 1]}                # 1: quads of a tile line are permuted so that lanes meet no bank twice
  STORE:   {values: [0, 1]}                # 1: stores are marked as not used again
  SMALL:   {values: [0, 65536, 262144, 1048576]}  # elements up to which 256 threads turn tiles of 32x32 by single floats
constraints:
  - "TILE_R * TILE_C <= 8192"
  - "TILE_R * TILE_C // (16 * ITEMS) >= 32"
  - "TILE_R * TILE_C // (16 * ITEMS) <= 1024"
default: {TILE_R: 64, TILE_C: 64, ITEMS: 2, SWIZZLE: 1, STORE: 0, SMALL: 1048576}
*/

// Every thread reads 4x4 blocks as four float4, turns them in its registers, and puts them as float4 into a tile of the output, which
// is then written along its rows: only 16-byte accesses everywhere. Matrices whose sides are no multiples of 4 go by single floats.
// So do small ones, in small tiles: there latency counts, and blocks for every multiprocessor.

#define THREADS (TILE_R * TILE_C / (16 * ITEMS))

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
__device__ __forceinline__ void turn(const float* __restrict__ input, float* __restrict__ output, int rows, int cols, float4* tile) {
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
            float4* at = reinterpret_cast<float4*>(output + (size_t)(c0 + c) * rows + r0 + 4 * q);
            if (STORE) __stcs(at, tile[place(c, q, QUADS_R)]);
            else *at = tile[place(c, q, QUADS_R)];
        }
    }
}

// A 32x32 tile by 256 threads, its lines padded by one.
__device__ __forceinline__ void small_tile(const float* __restrict__ input, float* __restrict__ output, int rows, int cols, float* tile) {
    int x = threadIdx.x & 31, y = threadIdx.x >> 5, c0 = blockIdx.x * 32, r0 = blockIdx.y * 32;
#pragma unroll
    for (int j = 0; j < 32; j += 8) {
        if (r0 + y + j < rows && c0 + x < cols) tile[(y + j) * 33 + x] = input[(size_t)(r0 + y + j) * cols + c0 + x];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 32; j += 8) {
        if (c0 + y + j < cols && r0 + x < rows) output[(size_t)(c0 + y + j) * rows + r0 + x] = tile[x * 33 + y + j];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS > 256 ? THREADS : 256) transpose_vectors(const float* __restrict__ input, float* __restrict__ output,
                                                                                              int rows, int cols) {
    __shared__ float4 tile[TILE_C * TILE_R / 4 > 264 ? TILE_C * TILE_R / 4 : 264];  // at least 32 x 33 floats
    if ((long long)rows * cols <= SMALL) small_tile(input, output, rows, cols, reinterpret_cast<float*>(tile));
    else turn<TILE_R, TILE_C, ITEMS>(input, output, rows, cols, tile);
}
