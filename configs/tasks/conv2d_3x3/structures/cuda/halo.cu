/* ridgepoint
direction: shared-halo
launch:
  - kernel: conv_halo
    grid:  ["ceil_div(w, TILE_W)", "ceil_div(h, TILE_H)"]
    block: [TX, TY]
    args:  [input, weight, output, h, w]
params:
  TILE_W: {values: [32, 64, 128]}      # output columns of a block
  TILE_H: {values: [8, 16, 32, 64]}    # and rows
  TX:     {values: [16, 32, 64, 128]}  # threads side by side
  TY:     {values: [1, 2, 4, 8, 16]}   # and one below the other
  PAD:    {values: [0, 1]}             # floats added to a line of the tile
constraints:
  - "TX <= TILE_W"
  - "TY <= TILE_H"
  - "TX * TY >= 64"
  - "TX * TY <= 1024"
  - "4 * (TILE_H + 2) * (TILE_W + 2 + PAD) <= 49152"
default: {TILE_W: 128, TILE_H: 16, TX: 32, TY: 16, PAD: 1}
*/

// The input tile with its halo of one goes into shared memory, zeros where it leaves the image; every thread then runs down a column
// of it and keeps the last three lines of its window in registers.

#define LINES (TILE_H + 2)
#define PITCH (TILE_W + 2 + PAD)
#define STRETCH (TILE_H / TY)

extern "C" __global__ void __launch_bounds__(TX * TY) conv_halo(const float* __restrict__ input, const float* __restrict__ weight,
                                                                float* __restrict__ output, int h, int w) {
    __shared__ float tile[LINES][PITCH];
    int x0 = blockIdx.x * TILE_W, y0 = blockIdx.y * TILE_H;
    float k[9];
#pragma unroll
    for (int i = 0; i < 9; i++) k[i] = weight[i];
    for (int r = threadIdx.y; r < LINES; r += TY) {
        int y = y0 + r - 1;
        for (int c = threadIdx.x; c < TILE_W + 2; c += TX) {
            int x = x0 + c - 1;
            tile[r][c] = y >= 0 && y < h && x >= 0 && x < w ? input[(size_t)y * w + x] : 0.0f;
        }
    }
    __syncthreads();
    int top = threadIdx.y * STRETCH;
    for (int c = threadIdx.x; c < TILE_W; c += TX) {
        float a[3], b[3];  // two lines of the window
#pragma unroll
        for (int i = 0; i < 3; i++) {
            a[i] = tile[top][c + i];
            b[i] = tile[top + 1][c + i];
        }
#pragma unroll
        for (int r = 0; r < STRETCH; r++) {
            float n[3];
#pragma unroll
            for (int i = 0; i < 3; i++) n[i] = tile[top + r + 2][c + i];
            float sum = k[0] * a[0] + k[1] * a[1] + k[2] * a[2];
            sum += k[3] * b[0] + k[4] * b[1] + k[5] * b[2];
            sum += k[6] * n[0] + k[7] * n[1] + k[8] * n[2];
            int y = y0 + top + r, x = x0 + c;
            if (y < h && x < w) output[(size_t)y * w + x] = sum;
#pragma unroll
            for (int i = 0; i < 3; i++) {
                a[i] = b[i];
                b[i] = n[i];
            }
        }
    }
}
