// The block that comes last, by a counter in zeroed scratch, adds the others' sums.
/* ridgepoint
direction: last-block
launch:
  - {kernel: total, grid: [9], block: [64], args: [x, y, partial, ticket, n]}
workspace: {partial: {shape: [9], dtype: float32, init: none}, ticket: {shape: [1], dtype: int32, init: zero}}
*/
extern "C" __global__ void total(const float* x, float* y, float* partial, int* ticket, int n) {
    __shared__ float parts[64];
    __shared__ bool last;
    float sum = 0.f;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 9 * 64) sum += x[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 64; ++i) sum += parts[i];
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(ticket, 1) == 8;
    }
    __syncthreads();
    if (!last || threadIdx.x != 0) return;
    float all = 0.f;
    for (int i = 0; i < 9; ++i) all += ((volatile float*)partial)[i];
    y[0] = all;
}
