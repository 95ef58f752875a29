/* ridgepoint
direction: swizzled-vectors
launch:
  - kernel: transpose_vectors
    grid:  ["ceil_div(cols, TILE_C)", "ceil_div(rows, TILE_R)"]
    block: ["TILE_R * TILE_C // (16 * ITEMS)"]
    args:  [input, output, rows, cols]
params:
  TILE_R:  {values: [32, 64, 128]}
  TILE_C:  {values: [32, 64, 128]}
  ITEMS:   {values: [1, 2, 4]}             # 4x4 blocks of a thread
  SWIZZLE: {values: [0, 1]}                # 1: quads of a tile line are permuted so that lanes meet no bank twice
  STORE:   {values: [0, 1]}                # 1: stores are marked as not used again
constraints:
  - "TILE_R * TILE_C <= 8192"
  - "TILE_R * TILE_C // (16 * ITEMS) >= 32"
  - "TILE_R * TILE_C // (16 * ITEMS) <= 1024"
default: {TILE_R: 64, TILE_C: 64, ITEMS: 1, SWIZZLE: 1, STORE: 1}
*/

// Every thread reads 4x4 blocks as four float4, turns them in its registers, and puts them as float4 into a tile of the output, which
// is then written along its rows: only 16-byte accesses everywhere. Matrices whose sides are no multiples of 4 go by single floats.

#define THREADS (TILE_R * TILE_C / (16 * ITEMS))
#define QUADS_R (TILE_R / 4)
#define QUADS_C (TILE_C / 4)

// Where the quad `q` of line `c` of the output tile lies.
__device__ __forceinline__ int place(int c, int q) { return c * QUADS_R + (SWIZZLE ? q ^ ((c >> 2) & (QUADS_R - 1)) : q); }

__device__ __forceinline__ void scalar_tile(const float* input, float* output, int rows, int cols, float* tile) {
    int c0 = blockIdx.x * TILE_C, r0 = blockIdx.y * TILE_R;
    for (int part = 0; part < TILE_C; part += 16) {  // 16 columns at a time, a line of the tile padded by one
        for (int i = threadIdx.x; i < TILE_R * 16; i += THREADS) {
            int r = i / 16, c = part + i % 16;
            if (r0 + r < rows && c0 + c < cols) tile[r * 17 + i % 16] = input[(size_t)(r0 + r) * cols + c0 + c];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < TILE_R * 16; i += THREADS) {
            int c = part + i / TILE_R, r = i % TILE_R;
            if (r0 + r < rows && c0 + c < cols) output[(size_t)(c0 + c) * rows + r0 + r] = tile[r * 17 + i / TILE_R];
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) transpose_vectors(const float* __restrict__ input, float* __restrict__ output,
                                                                        int rows, int cols) {
    __shared__ float4 tile[TILE_C * QUADS_R];
    if (((rows | cols) & 3) > 0) {
        scalar_tile(input, output, rows, cols, reinterpret_cast<float*>(tile));
        return;
    }
    int c0 = blockIdx.x * TILE_C, r0 = blockIdx.y * TILE_R;
    float4 v[ITEMS][4];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = k * THREADS + (int)threadIdx.x, c = c0 + 4 * (i % QUADS_C), r = r0 + 4 * (i / QUADS_C);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[k][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (r < rows && c < cols) v[k][j] = *reinterpret_cast<const float4*>(input + (size_t)(r + j) * cols + c);
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = k * THREADS + (int)threadIdx.x, c = 4 * (i % QUADS_C), q = i / QUADS_C;
        tile[place(c, q)] = make_float4(v[k][0].x, v[k][1].x, v[k][2].x, v[k][3].x);
        tile[place(c + 1, q)] = make_float4(v[k][0].y, v[k][1].y, v[k][2].y, v[k][3].y);
        tile[place(c + 2, q)] = make_float4(v[k][0].z, v[k][1].z, v[k][2].z, v[k][3].z);
        tile[place(c + 3, q)] = make_float4(v[k][0].w, v[k][1].w, v[k][2].w, v[k][3].w);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4 * ITEMS; k++) {
        int i = k * THREADS + (int)threadIdx.x, c = i / QUADS_R, q = i % QUADS_R;
        if (c0 + c < cols && r0 + 4 * q < rows) {
            float4* at = reinterpret_cast<float4*>(output + (size_t)(c0 + c) * rows + r0 + 4 * q);
            if (STORE) __stcs(at, tile[place(c, q)]);
            else *at = tile[place(c, q)];
        }
    }
}
