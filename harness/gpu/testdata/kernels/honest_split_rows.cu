// Several blocks a row, joined over scratch by a second launch; the first thread of a block clears what it adds into.
/* ridgepoint
direction: split
launch:
  - {kernel: pieces, grid: [3, rows], block: [64], args: [x, piece, cols]}
  - {kernel: rowsum, grid: ["ceil_div(rows, 64)"], block: [64], args: [piece, y, rows]}
workspace: {piece: {shape: [rows, 3], dtype: float32, init: none}}
*/
extern "C" __global__ void pieces(const float* x, float* piece, int cols) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0.f;
    __syncthreads();
    float mine = 0.f;
    for (int j = blockIdx.x * 64 + threadIdx.x; j < cols; j += 192) mine += x[(size_t)blockIdx.y * cols + j];
    atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) piece[blockIdx.y * 3 + blockIdx.x] = sum;
}
extern "C" __global__ void rowsum(const float* piece, float* y, int rows) {
    int r = blockIdx.x * 64 + threadIdx.x;
    if (r < rows) y[r] = piece[3 * r] + piece[3 * r + 1] + piece[3 * r + 2];
}
