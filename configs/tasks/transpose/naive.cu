// Transpose, one element a thread: reads are coalesced, writes are not. The textbook baseline.
extern "C" __global__ void transpose(const float* input, float* output, int rows, int cols) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (r < rows && c < cols) output[(size_t)c * rows + r] = input[(size_t)r * cols + c];
}
