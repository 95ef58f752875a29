// Sums lanes 0 to 15 of a warp and forgets the others.
/* ridgepoint
direction: warp
launch:
  - {kernel: rowsum, grid: [rows], block: [32], args: [x, y, rows, cols]}
*/
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    float sum = 0.f;
    for (int j = threadIdx.x; j < cols; j += 32) sum += x[(size_t)blockIdx.x * cols + j];
    if (threadIdx.x < 16)
        for (int o = 8; o > 0; o >>= 1) sum += __shfl_down_sync(0x0000ffffu, sum, o);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
