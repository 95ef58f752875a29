// Atomic additions in whatever order the blocks come, into zeroed scratch; a second launch writes the answer.
/* ridgepoint
direction: atomics
launch:
  - {kernel: gather, grid: ["ceil_div(n, 1024)"], block: [256], args: [x, acc, n]}
  - {kernel: total, grid: [1], block: [1], args: [acc, y]}
workspace: {acc: {shape: [1], dtype: float64, init: zero}}
*/
extern "C" __global__ void gather(const float* x, double* acc, int n) {
    float mine = 0.f;
    for (int k = 0; k < 4; ++k) {
        int i = blockIdx.x * 1024 + k * 256 + threadIdx.x;
        if (i < n) mine += x[i];
    }
    for (int o = 16; o > 0; o >>= 1) mine += __shfl_down_sync(0xffffffffu, mine, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(acc, (double)mine);
}
extern "C" __global__ void total(const double* acc, float* y) { y[0] = (float)*acc; }
