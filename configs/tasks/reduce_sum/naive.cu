// Row sums, one block of 256 threads a row and a tree in shared memory. The textbook baseline.
extern "C" __global__ void reduce_sum(const float* input, float* output, int rows, int cols) {
    __shared__ float buf[256];
    const float* x = input + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += x[c];
    buf[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) buf[threadIdx.x] += buf[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) output[blockIdx.x] = buf[0];
}
