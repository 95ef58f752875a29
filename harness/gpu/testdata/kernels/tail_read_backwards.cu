// The tail that does not fill a vector is read in the wrong order.
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4 * 4;
    if (i < whole) c[i] = a[i] + b[i];
    else if (i < n) c[i] = a[n - 1 - (i - whole)] + b[n - 1 - (i - whole)];
}
