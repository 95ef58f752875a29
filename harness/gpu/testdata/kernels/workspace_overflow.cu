// Its scratch has an element fewer than it writes.
/* ridgepoint
direction: split
launch:
  - {kernel: pieces, grid: [rows], block: [1], args: [x, piece, rows, cols]}
  - {kernel: rowsum, grid: ["ceil_div(rows, 64)"], block: [64], args: [piece, y, rows]}
workspace: {piece: {shape: [rows], dtype: float32, init: none}}
*/
extern "C" __global__ void pieces(const float* x, float* piece, int rows, int cols) {
    float sum = 0.f;
    for (int j = 0; j < cols; ++j) sum += x[(size_t)blockIdx.x * cols + j];
    piece[blockIdx.x] = sum;
    if (blockIdx.x == 0) piece[rows] = 0.f;
}
extern "C" __global__ void rowsum(const float* piece, float* y, int rows) {
    int r = blockIdx.x * 64 + threadIdx.x;
    if (r < rows) y[r] = piece[r];
}
