/* ridgepoint
direction: padded-tile
launch:
  - kernel: transpose_tiles
    grid:  ["ceil_div(cols, TILE)", "ceil_div(rows, TILE)"]
    block: [TILE, LINES]
    args:  [input, output, rows, cols]
params:
  TILE:  {values: [16, 32, 64]}
  LINES: {values: [1, 2, 4, 8, 16, 32]}    # rows of the tile that the block reads at once
  PAD:   {values: [0, 1, 2]}               # floats added to a line of the tile; 1 keeps columns off each other's banks
  STORE: {values: [0, 1]}                  # 1: stores are marked as not used again
constraints: ["LINES <= TILE", "TILE * LINES >= 32", "TILE * LINES <= 1024"]
default: {TILE: 32, LINES: 8, PAD: 1, STORE: 0}
*/

// A tile goes through shared memory, so that both sides are read and written along their rows.

extern "C" __global__ void __launch_bounds__(TILE * LINES) transpose_tiles(const float* __restrict__ input, float* __restrict__ output,
                                                                           int rows, int cols) {
    __shared__ float tile[TILE][TILE + PAD];
    int c0 = blockIdx.x * TILE, r0 = blockIdx.y * TILE, tx = threadIdx.x, ty = threadIdx.y;
#pragma unroll
    for (int i = 0; i < TILE; i += LINES) {
        int r = r0 + ty + i, c = c0 + tx;
        if (r < rows && c < cols) tile[ty + i][tx] = input[(size_t)r * cols + c];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; i += LINES) {
        int r = r0 + tx, c = c0 + ty + i;
        if (r < rows && c < cols) {
            float* at = output + (size_t)c * rows + r;
            if (STORE) __stcs(at, tile[tx][ty + i]);
            else *at = tile[tx][ty + i];
        }
    }
}
