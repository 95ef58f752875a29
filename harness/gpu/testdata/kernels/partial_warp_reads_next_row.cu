// Whole warps read: past the end of a row lies the next one.
/* ridgepoint
direction: warp
launch:
  - {kernel: rowsum, grid: [rows], block: [32], args: [x, y, rows, cols]}
*/
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    float sum = 0.f;
    for (int j = 0; j < cols; j += 32) sum += x[(size_t)blockIdx.x * cols + j + threadIdx.x];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
