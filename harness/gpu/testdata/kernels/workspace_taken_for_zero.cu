// Adds into scratch that nobody set.
/* ridgepoint
direction: atomics
launch:
  - {kernel: gather, grid: ["ceil_div(n, 256)"], block: [256], args: [x, acc, n]}
  - {kernel: total, grid: [1], block: [1], args: [acc, y]}
workspace: {acc: {shape: [1], dtype: float32, init: none}}
*/
extern "C" __global__ void gather(const float* x, float* acc, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(acc, x[i]);
}
extern "C" __global__ void total(float* acc, float* y) {
    y[0] = *acc;
    *acc = 0.f;
}
