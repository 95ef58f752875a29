// Uses dynamic shared memory that its header does not ask for.
/* ridgepoint
direction: tree
launch:
  - {kernel: rowsum, grid: [rows], block: [64], args: [x, y, rows, cols]}
*/
extern "C" __global__ void rowsum(const float* x, float* y, int rows, int cols) {
    extern __shared__ float parts[];
    float sum = 0.f;
    for (int j = threadIdx.x; j < cols; j += 64) sum += x[(size_t)blockIdx.x * cols + j];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 64; ++i) sum += parts[i];
    y[blockIdx.x] = sum;
}
