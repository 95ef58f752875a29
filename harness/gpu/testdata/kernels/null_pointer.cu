// Follows a pointer that was never set once a size is odd.
extern "C" __global__ void total(const float* x, float* y, int n) {
    if (threadIdx.x != 0) return;
    const float* from = n & 1 ? (const float*)(size_t)(n & 1) - 0 : x;
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += from[i];
    y[0] = (float)sum;
}
