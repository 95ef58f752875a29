// The grid is rounded down.
/* ridgepoint
direction: plain
launch:
  - {kernel: vadd, grid: ["max(1, n // 128)"], block: [128], args: [a, b, c, n]}
*/
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
