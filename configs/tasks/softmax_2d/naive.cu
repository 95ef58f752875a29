// Row-wise softmax in three passes, one block of 256 threads a row: maximum, sum of exponentials, division. The textbook baseline.
__device__ float block_combine(float v, float* buf, bool maximum) {
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            float other = buf[threadIdx.x + half];
            buf[threadIdx.x] = maximum ? fmaxf(buf[threadIdx.x], other) : buf[threadIdx.x] + other;
        }
        __syncthreads();
    }
    float all = buf[0];
    __syncthreads();
    return all;
}

extern "C" __global__ void softmax(const float* input, float* output, int rows, int cols) {
    __shared__ float buf[256];
    const float* x = input + (size_t)blockIdx.x * cols;
    float* y = output + (size_t)blockIdx.x * cols;
    float top = -3.402823466e38f;
    for (int c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, x[c]);
    top = block_combine(top, buf, true);
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += expf(x[c] - top);
    sum = block_combine(sum, buf, false);
    for (int c = threadIdx.x; c < cols; c += 256) y[c] = expf(x[c] - top) / sum;
}
