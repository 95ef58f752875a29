/* ridgepoint
direction: warp-per-row
launch:
  - kernel: sum_warp_rows
    grid:  ["min(ceil_div(rows, WARPS * ROWS), BLOCKS)"]
    block: [32, WARPS]
    args:  [input, output, rows, cols]
params:
  WARPS:  {values: [1, 2, 4, 8, 16]}
  ROWS:   {values: [1, 2, 4]}                  # rows that a warp reads side by side
  UNROLL: {values: [1, 2, 4, 8]}               # float4 of a row in flight
  BLOCKS: {values: [264, 1056, 4096]}          # at most; then warps take further rows
constraints: ["ROWS * UNROLL <= 16"]
default: {WARPS: 1, ROWS: 1, UNROLL: 2, BLOCKS: 4096}
*/

// One warp reads ROWS rows side by side and nothing is shared between warps.

__device__ __forceinline__ float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }

extern "C" __global__ void __launch_bounds__(32 * WARPS) sum_warp_rows(const float* __restrict__ input, float* __restrict__ output,
                                                                       int rows, int cols) {
    int lane = threadIdx.x, quads = (cols & 3) < 1 ? cols >> 2 : 0;  // float4 of a row that starts aligned
    for (long r = ((long)blockIdx.x * WARPS + threadIdx.y) * ROWS; r < rows; r += (long)gridDim.x * WARPS * ROWS) {
        const float* x[ROWS];
        float sum[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = input + (r + i < rows ? r + i : rows - 1) * (long)cols;  // past the end: the last row again
            sum[i] = 0.0f;
        }
        for (int q = lane; q < quads; q += 32 * UNROLL) {
            float4 v[ROWS][UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    v[i][u] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if (q + 32 * u < quads) v[i][u] = reinterpret_cast<const float4*>(x[i])[q + 32 * u];
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                float part = 0.0f;
#pragma unroll
                for (int u = 0; u < UNROLL; u++) part += sum4(v[i][u]);
                sum[i] += part;
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            for (int c = 4 * quads + lane; c < cols; c += 32) sum[i] += x[i][c];
            for (int o = 16; o > 0; o >>= 1) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], o);
            if (lane < 1 && r + i < rows) output[r + i] = sum[i];
        }
    }
}
