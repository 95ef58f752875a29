// Dynamic shared memory, a tree over the block.
/* ridgepoint
direction: tree
launch:
  - {kernel: rowsum, grid: [rows], block: [128], shared_bytes: 512, args: [x, y, rows, cols]}
*/
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    extern __shared__ float parts[];
    float sum = 0.f;
    for (int j = threadIdx.x; j < cols; j += 128) sum += x[(size_t)blockIdx.x * cols + j];
    parts[threadIdx.x] = sum;
    for (int half = 64; half > 0; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
}
