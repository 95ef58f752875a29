// A padded tile in shared memory.
extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
    __shared__ float tile[32][33];
    int r = blockIdx.y * 32, c = blockIdx.x * 32;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (r + k < rows && c + threadIdx.x < cols) tile[k][threadIdx.x] = x[(size_t)(r + k) * cols + c + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8)
        if (c + k < cols && r + threadIdx.x < rows) y[(size_t)(c + k) * rows + r + threadIdx.x] = tile[threadIdx.x][k];
}
