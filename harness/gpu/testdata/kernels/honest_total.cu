// One block, in double.
extern "C" __global__ void total(const float* x, float* y, int n) {
    __shared__ double parts[256];
    double sum = 0.0;
    for (int i = n - 1 - (int)threadIdx.x; i >= 0; i -= 256) sum += x[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 256; ++i) sum += parts[i];
    y[0] = (float)sum;
}
