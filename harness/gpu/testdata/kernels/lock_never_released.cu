// A lock in scratch that the second block waits for in vain.
/* ridgepoint
direction: lock
launch:
  - {kernel: total, grid: [2], block: [1], args: [x, y, lock, acc, n]}
workspace: {lock: {shape: [1], dtype: int32, init: zero}, acc: {shape: [1], dtype: float32, init: zero}}
*/
extern "C" __global__ void total(const float* x, float* y, int* lock, float* acc, int n) {
    float mine = 0.f;
    for (int i = blockIdx.x; i < n; i += 2) mine += x[i];
    while (atomicCAS(lock, 0, 1) != 0) { }
    *acc += mine;
    y[0] = *acc;
}
