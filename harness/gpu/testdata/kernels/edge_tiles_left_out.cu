// Tiles that do not fit whole are left out.
extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
    if ((int)blockIdx.y * 32 + 32 > rows || (int)blockIdx.x * 32 + 32 > cols) return;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int r = blockIdx.y * 32 + k, c = blockIdx.x * 32 + threadIdx.x;
        y[(size_t)c * rows + r] = x[(size_t)r * cols + c];
    }
}
